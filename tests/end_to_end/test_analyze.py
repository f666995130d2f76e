"""`totune analyze`: from data and trained models to findings, tables and pages."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.end_to_end.conftest import Run

from totune.analyses.base import ANALYSES


def test_adapter_ablation_of_a_trained_model(totune: Run, data: Path, tmp_path: Path) -> None:
    reviews, model, out = data / "reviews.csv", tmp_path / "model", tmp_path / "found"
    settings = ("--model", data / "encoder", "--precision", "fp32", "--num-train-epochs", "1")
    ended = totune("train", reviews, "--strategy", "adapters", "--out", model, *settings, "--json")
    assert ended.code == 0, ended.err
    asked = ("analyze", "adapter-ablation", reviews, "--split", "test", "--out", out)
    found = totune(*asked, "--model-dir", model, "--json")
    assert found.code == 0, found.err
    values = found.json["values"]
    spans = [(row["first"], row["last"]) for row in values["rows"]]
    assert spans == [(first, last) for first in range(1, 5) for last in range(first, 5)]
    intact = ended.json["metrics"]["test"]["accuracy"]
    assert [row["intact"] for row in values["rows"]] == pytest.approx([intact] * 10, abs=1e-6)
    assert (out / "analyses" / "adapter-ablation.parquet").is_file()
    assert "First layer without adapters" in Path(found.json["page"]).read_text(encoding="utf-8")
    neither = totune(*asked)
    assert neither.code == 2
    assert "--model-dir FOLDER, or a study of the data" in neither.err
    alone = totune(*asked, "--model-dir", model, "--strategies", "adapters")
    assert alone.code == 2
    assert "name it with --study" in alone.err


EPOCHS = 5  # so that neither strategy's run is degenerate


@pytest.fixture(scope="module")
def compared(totune: Run, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of reviews.csv with a run of feature-extraction and one of fine-tuning."""
    out = tmp_path_factory.mktemp("compared") / "study"
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", out)
    few = ("--strategies", "feature-extraction,fine-tuning", "--seeds", 1)
    steps = ("--num-train-epochs", EPOCHS, "--set", "feature-extraction.solver=gradient")
    kept = (*steps, "--keep-weights", "all", "--quiet")
    ended = totune("compare", *where, *few, *kept)
    assert ended.code == 0, ended.err
    return out


@pytest.fixture
def analyzed_study(compared: Path, tmp_path: Path) -> Path:
    """A copy of that study."""
    return Path(shutil.copytree(compared, tmp_path / "study"))


def test_gap_of_a_study_and_divergence_of_its_texts(
    totune: Run, data: Path, analyzed_study: Path, tmp_path: Path
) -> None:
    reviews, wiki = data / "reviews.csv", tmp_path / "wiki.txt"
    wiki.write_text("w0 w1 w2\n\nw9 w10 w11 unseen\n", encoding="utf-8")

    gap = totune("analyze", "overfitting-gap", analyzed_study, "--set", "tolerance=0.02", "--json")
    assert gap.code == 0, gap.err
    rows = gap.json["values"]["rows"]
    epochs = [(row["strategy"], row["epoch"]) for row in rows]
    strategies = ("feature-extraction", "fine-tuning")
    assert epochs == [(name, epoch) for name in strategies for epoch in range(1, EPOCHS + 1)]
    assert "Over-fitting gap" in (analyzed_study / "report.md").read_text(encoding="utf-8")

    asked = ("analyze", "divergence", reviews, wiki, "--reference", wiki)
    found = totune(
        *asked, "--study", f"reviews={analyzed_study}", "--out", analyzed_study, "--json"
    )
    assert found.code == 0, found.err
    first, second = found.json["values"]["rows"]
    assert (first["corpus"], first["texts"]) == ("reviews", 200)
    assert second["divergence"] == 0
    records = [
        json.loads(path.read_text("utf-8")) for path in analyzed_study.glob("runs/*/record.json")
    ]
    test = {record["strategy"]: record["test"]["accuracy"] for record in records}
    assert (first["frozen"], first["tuned"]) == (test["feature-extraction"], test["fine-tuning"])
    assert "Distance between corpora" in (analyzed_study / "report.md").read_text(encoding="utf-8")

    by = totune(*asked, "--by", "label", "--quiet", "--out", tmp_path / "by")
    assert by.code == 0, by.err
    assert "praise" in by.out
    unnamed = totune(*asked, "--study", str(analyzed_study))
    assert unnamed.code == 2
    assert "not of the form NAME=DIR" in unnamed.err
    lost = totune("analyze", "overfitting-gap", tmp_path)
    assert lost.code == 2
    assert "holds no study" in lost.err


@pytest.mark.parametrize("name", ["layer-probe", "mutual-information"])
def test_blocks_of_a_study_are_shown_in_its_report(
    totune: Run, data: Path, analyzed_study: Path, name: str
) -> None:
    where = (data / "reviews.csv", "--study", analyzed_study, "--model", data / "encoder")
    fast = ("--set", "draws=1", "--set", "split=train") if name == "mutual-information" else ()
    ended = totune("analyze", name, *where, *fast, "--json")
    assert ended.code == 0, ended.err
    rows = ended.json["values"]["rows"]
    subjects = {(row["subject"], row["seed"]) for row in rows if row["subject"] is not None}
    assert subjects == {("pretrained", None), ("fine-tuning", 0)}
    assert {row["block"] for row in rows} == set(range(5))
    title = ANALYSES.get(name).title
    for page in (Path(ended.json["page"]), analyzed_study / "report.html"):
        text = page.read_text(encoding="utf-8")
        assert title in text
        assert "after fine-tuning" in text


def test_blocks_are_shown_as_a_table(totune: Run, data: Path, tmp_path: Path) -> None:
    where = (data / "scores.csv", "--model", data / "encoder", "--out", tmp_path)
    ended = totune("analyze", "layer-probe", *where)
    assert ended.code == 0, ended.err
    for words in ("Probe score by block", "layer 4", "Pearson correlation", "Page: "):
        assert words in ended.out
    assert (tmp_path / "analyses" / "layer-probe.parquet").is_file()


def test_options_of_an_analysis_are_checked(totune: Run, data: Path) -> None:
    ended = totune("analyze", "layer-probe", data / "reviews.csv", "--set", "fold=3")
    assert ended.code == 2
    assert "layer-probe has no option 'fold'. Did you mean 'folds'?" in ended.err


def test_cost_of_labels_runs_only_what_is_missing(totune: Run, data: Path, tmp_path: Path) -> None:
    asked = ("analyze", "label-cost", data / "reviews.csv", "--model", data / "encoder")
    asked = (*asked, "--strategies", "tf-idf,feature-extraction", "--num-train-epochs", "2")
    first = totune(*asked, "--sizes", "30", "--seeds", "1", "--out", tmp_path, "--json")
    assert first.code == 0, first.err
    more = totune(*asked, "--sizes", "30,60", "--seeds", "1", "--out", tmp_path)
    assert more.code == 0, more.err
    assert "60 training rows, seed 0" in more.err
    assert "30 training rows, seed 0" not in more.err
    assert "Test accuracy by training rows" in more.out
    rows = pq.read_table(tmp_path / "analyses" / "label-cost.parquet").to_pylist()
    assert [row["size"] for row in rows] == [30, 30, 60, 60]
    assert rows[0]["test"] == first.json["values"]["rows"][0]["test"]
    wrong = totune(*asked, "--sizes", "some")
    assert wrong.code == 2
    assert "--sizes 'some' is no list of numbers or all" in wrong.err


def test_advice_before_a_study_and_what_came_true(
    totune: Run, data: Path, analyzed_study: Path, tmp_path: Path
) -> None:
    reviews, encoder = data / "reviews.csv", data / "encoder"
    asked = ("advise", reviews, "--set", "rows=60")
    alone = totune(*asked, "--model", encoder, "--out", tmp_path / "alone")
    assert alone.code == 0, alone.err
    assert "Likeliest to win: " in alone.out
    assert f"Next: totune compare {reviews} --model {encoder} --strategies tf-idf," in alone.out

    found = totune(*asked, "--study", analyzed_study, "--json")
    assert found.code == 0, found.err
    assert f"--model {encoder}" in found.json["values"]["facts"]["command"]  # the study's own
    chances = [row["probability"] for row in found.json["values"]["rows"]]
    assert sum(chances) == pytest.approx(1)
    assert "The Brier score is" in (analyzed_study / "report.md").read_text(encoding="utf-8")
