"""Findings written by the version before the rebuild still load and draw the same section."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from totune.analyses.base import ANALYSES
from totune.analyses.findings import FOLDER, Findings, read_findings
from totune.io import read_checked_json

OLDER = Path(__file__).resolve().parents[2] / "fixtures" / "before_one_house" / "findings"
# Each analysis's first sentence, as that version drew it, and its numbers of tables and pictures.
DRAWN = {
    "adapter-ablation": (
        "Removing all adapters does accuracy on dev no harm (0.0%): taken together they do not "
        "help there.",
        *(2, 1),
    ),
    "divergence": (
        "chat lies furthest from wiki with 0.495 nats, wiki too nearest with 0.000, on a scale "
        "from 0 (every term as frequent) to 0.693 (no term in common).",
        *(1, 1),
    ),
    "forecast": (
        "Likeliest to win: adapters, LoRA and their like (32%, between 13 and 53), then tuning the "
        "whole encoder (27%, between 10 and 48). No family is likelier to win than not to.",
        *(2, 1),
    ),
    "label-cost": (
        "At none of these sizes is the best tuned strategy credibly better than the best that is "
        "not: at 48 training rows fine-tuning against tf-idf gains −58.3 points (95% interval "
        "−100.0 to 55.9).",
        *(2, 2),
    ),
    "layer-probe": (
        "Pretrained, the top layer tells a linear probe most about the labels (accuracy 100.0); "
        "after fine-tuning, the top layer does (100.0).",
        *(1, 1),
    ),
    "mutual-information": (
        "Pretrained, no layer shows more information than permuted labels do (at best 0.64 bits, "
        "against 0.59), by EDGE.",
        *(2, 2),
    ),
    "overfitting-gap": (
        "At the epochs that runs keep, the gap between train and dev under stack-and-finetune is "
        "−1.0 points of accuracy.",
        *(2, 1),
    ),
}


@pytest.fixture(scope="module")
def older() -> dict[str, Findings]:
    return {findings.analysis: findings for findings in read_findings(OLDER)}


def test_there_are_findings_of_every_analysis(older: dict[str, Findings]) -> None:
    assert set(older) == set(DRAWN) == set(ANALYSES.names())


@pytest.mark.parametrize("name", DRAWN)
def test_they_are_drawn_as_before(older: dict[str, Findings], name: str) -> None:
    section = older[name].section()
    drawn = section.paragraphs[0], len(section.tables), len(section.pictures)
    assert drawn == DRAWN[name]


@pytest.mark.parametrize("name", DRAWN)
def test_they_are_written_as_they_were(
    older: dict[str, Findings], name: str, tmp_path: Path
) -> None:
    before = OLDER / FOLDER / f"{name}.json"
    after = older[name].save(tmp_path)
    # But for the hash, which older files lack; order included.
    assert [*read_checked_json(after).items()] == [*json.loads(before.read_text("utf-8")).items()]
    if before.with_suffix(".parquet").exists():
        tables = [pq.read_table(path.with_suffix(".parquet")) for path in (before, after)]
        assert tables[0] == tables[1]
        assert tables[0].to_pylist() == json.loads(before.read_text("utf-8"))["values"]["rows"]
