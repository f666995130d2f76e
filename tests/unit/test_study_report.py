"""The report of a study: how to use its model, and what it gets wrong, with texts or without."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import totune
from totune.errors import ConfigError
from totune.study.study import SHOWN_ROWS, Study

NASTY = "<script>alert(1)</script>"

pytestmark = pytest.mark.usefixtures("cache")


def write_noisy(path: Path) -> Path:
    """Texts that a word tells apart, of which two in twelve have the other label."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(90):
            good = number % 2 == 0
            text = f"{'fine' if good else 'dull'} {NASTY} text {number} " + f"long{number}" * 30
            if number == 5:
                text += "x" * 1_000_000
            writer.writerow([text, "pos" if good != (number % 12 in (5, 8)) else NASTY])
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("noisy")
    write_noisy(folder / "noisy.csv")
    return folder


def compare(place: Path, out: str, **settings: Any) -> Study:
    strategies = ["majority", "tf-idf"]
    data = place / "noisy.csv"
    return totune.compare(data, out=place / out, strategies=strategies, seeds=1, **settings)


@pytest.fixture(scope="module")
def study(place: Path) -> Study:
    return compare(place, "study", folds=5)


def page_of(study: Study) -> str:
    return (study.folder / "report.html").read_text(encoding="utf-8")


def test_mistakes_stand_on_the_page_with_their_lines_and_texts(study: Study) -> None:
    assert study.errors is not None
    rows = study.errors.rows["mistakes"]
    assert rows
    lines = (study.folder.parent / "noisy.csv").read_text(encoding="utf-8").splitlines()
    kept = json.loads((study.folder / SHOWN_ROWS).read_text(encoding="utf-8"))["rows"]
    for row in rows:
        shown = kept[str(row["place"])]
        text, _, label = lines[shown["row"] - 1].rpartition(",")
        assert label == row["label"]
        assert shown["text"][:-1] == text[:199]
    page = page_of(study)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; text" in page
    assert "<script" not in page
    assert len(page) < 5_000_000


def test_the_page_says_how_to_use_the_model(study: Study) -> None:
    text = (study.folder / "report.md").read_text(encoding="utf-8")
    assert "    totune predict best new.csv" in text
    assert '    model = totune.load("best")' in text
    assert 'Only totune loads it, in Python as totune.load("best")' in text
    assert str(study.folder) not in text
    assert "| Size on disk |" in text
    assert "ms per text, in batches" in text
    assert "Classes (2): pos 46, \\<script\\>alert(1)\\</script\\> 44." in text


def test_a_report_without_texts_has_the_lines_alone(study: Study) -> None:
    study.report(texts=False)
    without = page_of(study)
    study.report()
    assert "alert(1)&lt;/script&gt; text" not in without
    assert "Texts are not shown." in without
    assert "Most confident mistakes" in without
    assert "alert(1)&lt;/script&gt; text" in page_of(study)


def test_a_study_without_texts_keeps_none(place: Path) -> None:
    study = compare(place, "confidential", folds=1, test_size=0.3, texts=False)
    assert "Most confident mistakes" in page_of(study)
    for path in (study.folder / SHOWN_ROWS, study.folder / "report.html"):
        assert "text 5" not in path.read_text(encoding="utf-8")
        assert "long5" not in path.read_text(encoding="utf-8")


def test_kept_rows_that_cannot_be_read_are_named(study: Study) -> None:
    path = study.folder / SHOWN_ROWS
    kept = path.read_text(encoding="utf-8")
    path.write_text('{"rows": [1]}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"shown_rows\.json cannot be read"):
        study.report()
    path.write_text(kept, encoding="utf-8")


def test_a_damaged_model_does_not_cost_the_report(study: Study) -> None:
    path = study.best / "totune.json"
    kept = path.read_text(encoding="utf-8")
    path.write_text("{}", encoding="utf-8")
    study.report()
    text = (study.folder / "report.md").read_text(encoding="utf-8")
    path.write_text(kept, encoding="utf-8")
    assert "totune predict" not in text
    assert "## At a glance" in text
