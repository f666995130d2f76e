"""Guidelines are judged by the results of other recipes, and by nothing that is not there."""

import json
from pathlib import Path

import pytest

from totune.errors import DataError
from totune.recipes.judgement import judge
from totune.recipes.loading import load_recipe
from totune.recipes.recipe import Judgement
from totune.recipes.reproduce import reproduce

LABELS = ("BERT, fine-tuning", "BERT, feature extraction", "ELMo, feature extraction")


def write_results(folder: Path, scores: dict[str, dict[str, list[float]]]) -> None:
    """`results.json` of peters-adaptation: values by data set and row."""
    groups = [
        {
            "data": data,
            "metrics": ["accuracy"],
            "outcomes": [
                {"label": label, "scores": {"accuracy": values}, "absent": ""}
                for label, values in rows.items()
            ],
        }
        for data, rows in scores.items()
    ]
    place = folder / "peters-adaptation"
    place.mkdir()
    content = {"recipe": {"metrics": ["accuracy"]}, "groups": groups, "versions": {}}
    (place / "results.json").write_text(json.dumps(content), encoding="utf-8")


def verdicts(folder: Path) -> dict[str, str]:
    plan = load_recipe("peters-guidelines").run
    assert isinstance(plan, Judgement)
    return {one.guideline.rule: one.verdict for one in judge(plan, folder)}


FAR, NEAR = [0.90, 0.91, 0.92], [0.80, 0.81, 0.82]
PAIRS, ALIKE = "BERT, sentence pairs: use fine-tuning", "Any encoder, sequence labelling"


def test_an_interval_on_the_expected_side_confirms(tmp_path: Path) -> None:
    write_results(tmp_path, {"mrpc": {LABELS[0]: FAR, LABELS[1]: NEAR}})
    assert verdicts(tmp_path)[PAIRS] == "confirmed"


def test_an_interval_on_the_other_side_contradicts(tmp_path: Path) -> None:
    write_results(tmp_path, {"mrpc": {LABELS[0]: NEAR, LABELS[1]: FAR}})
    assert verdicts(tmp_path)[PAIRS] == "contradicted"


def test_opposite_findings_and_wide_intervals_leave_it_undecided(tmp_path: Path) -> None:
    write_results(
        tmp_path,
        {
            "mrpc": {LABELS[0]: FAR, LABELS[1]: NEAR},
            "sts-b": {LABELS[0]: NEAR, LABELS[1]: FAR},
        },
    )
    assert verdicts(tmp_path)[PAIRS] == "undecided"


def test_alike_means_within_the_margin(tmp_path: Path) -> None:
    close = [0.9000, 0.9005, 0.9010]
    write_results(tmp_path, {"sst-2": {LABELS[0]: close, LABELS[1]: close}})
    found = verdicts(tmp_path)
    assert next(v for rule, v in found.items() if rule.startswith(ALIKE)) == "confirmed"


def test_the_report_says_what_was_not_run(tmp_path: Path) -> None:
    write_results(tmp_path, {"mrpc": {LABELS[0]: FAR, LABELS[1]: NEAR}})
    folder = reproduce("peters-guidelines", out=tmp_path / "guidelines")
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert "Of 5 guidelines: 1 confirmed, 0 contradicted, 4 undecided." in report
    assert "not run: totune reproduce peters-ner" in report
    assert "+0.100 (+0.07" in report
    kept = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert len(kept["guidelines"]) == 5
    reproduce("peters-guidelines", out=folder)  # its own folder is written again


def test_without_any_results_it_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"totune reproduce peters-adaptation; totune reproduce"):
        reproduce("peters-guidelines", out=tmp_path / "guidelines")
    assert not (tmp_path / "guidelines").exists()
