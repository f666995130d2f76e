"""Learning curves over sizes of the training set."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.recorder import Recorder
from tests.tiny_data import save_encoder, write_reviews
from tests.unit.analyses.small_inputs import settings_in, setup_in

from totune import api
from totune.analyses.base import AnalysisResult
from totune.analyses.findings import SIZES
from totune.analyses.inputs.learning_curves import (
    LearningCurveSetup,
    open_learning_curves,
    subset,
)
from totune.analyses.label_cost import NAME, LabelCost, RunsBySize, begins, gains
from totune.analyses.label_cost_section import BEST, curve_rows
from totune.baselines.base import BASELINES
from totune.errors import ConfigError, DataError
from totune.metrics import METRICS
from totune.progress import Progress
from totune.runs.run import Run

LABELS = ("tf-idf", "feature-extraction", "fine-tuning")


@pytest.fixture(scope="module")
def label_cost_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("label-cost")
    write_reviews(folder / "reviews.csv", rows=100)
    save_encoder(folder / "encoder")
    return folder


@pytest.fixture(scope="module")
def measured(label_cost_folder: Path) -> tuple[LabelCost, LearningCurveSetup, AnalysisResult]:
    analysis = LabelCost((20, 5_000, "all"), LABELS, 2)
    setup = setup_in(label_cost_folder, label_cost_folder / "out", analysis)
    return analysis, setup, analysis.run(setup, Progress())


def test_every_strategy_runs_at_every_size_with_every_seed(
    measured: tuple[LabelCost, LearningCurveSetup, AnalysisResult],
) -> None:
    values = measured[2]
    found = [(row["size"], row["seed"], row["strategy"]) for row in values.rows]
    assert found == [(n, seed, name) for n in (20, 80) for seed in (0, 1) for name in LABELS]
    assert {row["strategy"] for row in values.rows if row["tuned"]} == {"fine-tuning"}
    assert [row["steps"] for row in values.rows[:3]] == [None, 2, 2]
    assert values.facts["untuned"] == ["tf-idf", "feature-extraction"]
    assert {gain["pair"] for gain in values.facts["gains"]} >= {NAME}
    again = json.loads(json.dumps({"rows": values.rows, "facts": values.facts}))
    assert again["facts"]["sizes"] == [20, 80]


def test_what_is_finished_is_not_run_again(
    measured: tuple[LabelCost, LearningCurveSetup, AnalysisResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis, setup, values = measured
    monkeypatch.setattr(Run, "execute", lambda *_: pytest.fail("ran again"))
    assert analysis.run(setup, Progress()) == values


def test_records_lie_by_size_and_weights_nowhere(
    measured: tuple[LabelCost, LearningCurveSetup, AnalysisResult],
) -> None:
    sizes = measured[1].folder / SIZES
    found = {size.name: len(list(size.glob("runs/*/record.json"))) for size in sizes.iterdir()}
    assert found == {"20": 6, "80": 6}
    assert not list(sizes.glob("*/runs/*/weights"))


def test_finished_runs_of_a_study_count(
    label_cost_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = label_cost_folder / "reviews.csv"
    names = ["tf-idf"]
    study = api.compare(
        data, out=tmp_path, strategies=names, seeds=1, folds=1, **settings_in(label_cost_folder)
    )
    analysis = LabelCost(("all",), ("tf-idf",), 1)
    setup = setup_in(label_cost_folder, tmp_path, analysis)
    monkeypatch.setattr(Run, "execute", lambda *_: pytest.fail("ran again"))
    (row,) = analysis.run(setup, Progress()).rows
    assert row["test"] == study.records[0].test["accuracy"]


def test_sets_of_one_seed_are_nested_and_stratified(
    measured: tuple[LabelCost, LearningCurveSetup, AnalysisResult],
) -> None:
    context = measured[1].context
    small, large, other = (
        subset(context, size, seed).dataset.train for size, seed in ((10, 0), (40, 0), (10, 1))
    )
    assert len(small) == 10
    assert set(small.rows) < set(large.rows)
    assert set(small.rows) != set(other.rows)
    assert sorted(small.labels or ()) == ["blame"] * 5 + ["praise"] * 5
    assert subset(context, len(context.dataset.train), 1) is context


def test_sizes_that_the_data_does_not_have_are_told(
    label_cost_folder: Path, tmp_path: Path
) -> None:
    told = Recorder()
    analysis = LabelCost((1, 2, 5_000), ("tf-idf",), 1)
    values = analysis.run(setup_in(label_cost_folder, tmp_path, analysis), told)
    assert values.facts["sizes"] == [2]
    assert told.said == [
        "Size 1 is left out: sizes from 2 to 80 fit this data.",
        "Size 5,000 is left out: sizes from 2 to 80 fit this data.",
    ]
    analysis = LabelCost((500,), ("tf-idf",), 1)
    with pytest.raises(ConfigError, match=r"None of the sizes 500 fits: there are 80 training"):
        analysis.run(setup_in(label_cost_folder, tmp_path, analysis), told)


def test_where_every_run_failed_the_first_message_is_told(
    label_cost_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis = LabelCost((20,), ("tf-idf",), 1)
    setup = setup_in(label_cost_folder, tmp_path, analysis)

    def broken(*_: Any) -> Any:
        raise DataError("it broke")

    monkeypatch.setattr("totune.runs.run._run_baseline", broken)
    with pytest.raises(DataError, match=r"No run finished\. The first one's message: it broke"):
        analysis.run(setup, Progress())


def test_unknown_strategies_are_told_before_anything_is_read(label_cost_folder: Path) -> None:
    with pytest.raises(ConfigError, match="fine-tunning"):
        open_learning_curves(
            "nowhere.csv", label_cost_folder, Progress(), strategies=("fine-tunning",), seeds=1
        )


def test_options_of_the_baseline_that_is_not_named_are_taken(
    label_cost_folder: Path, tmp_path: Path
) -> None:
    options = {"tf-idf.max_features": 9}
    place = {
        "model": str(label_cost_folder / "encoder"),
        "cache_dir": label_cost_folder / "cache",
        "options": options,
    }
    setup = open_learning_curves(
        label_cost_folder / "reviews.csv", tmp_path, Progress(), strategies=None, seeds=1, **place
    )
    candidates, _ = setup.candidates(None, 1)
    assert candidates[0].create() == BASELINES.create("tf-idf", {"max_features": 9})


def runs_of(scores: dict[tuple[int, str], list[float]], metric: str = "accuracy") -> RunsBySize:
    """Runs of these scores on 400 rows, the errors at random."""
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, 400)
    found: RunsBySize = {}
    for place, values in scores.items():
        for value in values:
            wrong = rng.permutation(400) >= 400 * value
            arrays = {"targets": targets, "predictions": np.where(wrong, 1 - targets, targets)}
            found.setdefault(place, []).append((value, arrays))
    return found


def test_tuning_begins_to_pay_where_its_interval_leaves_zero() -> None:
    scores = {
        (100, "feature-extraction"): [0.70, 0.71],
        (100, "fine-tuning"): [0.60, 0.61],
        (300, "feature-extraction"): [0.72, 0.73],
        (300, "fine-tuning"): [0.90, 0.91],
        (900, "feature-extraction"): [0.73, 0.73],
        (900, "fine-tuning"): [0.95, 0.95],
    }
    labels = ("feature-extraction", "fine-tuning")
    found = gains(runs_of(scores), labels, labels[:1], METRICS["accuracy"])
    assert [gain["pair"] for gain in found] == [NAME] * 3
    assert found[0]["high"] < 0 < found[1]["low"]
    assert found[0]["gain"] == pytest.approx(-0.1, abs=0.005)
    assert begins(found) == [{"pair": NAME, "size": 300, "stays": True}]


def test_with_labels_at_random_tuning_never_pays() -> None:
    rng = np.random.default_rng(3)
    places = [(n, name) for n in (100, 300) for name in ("feature-extraction", "fine-tuning")]
    scores = {place: list(0.5 + rng.normal(0, 0.02, 3)) for place in places}
    found = gains(runs_of(scores), LABELS[1:], LABELS[1:2], METRICS["accuracy"])
    assert begins(found) == [{"pair": NAME, "size": None, "stays": False}]


def test_of_errors_less_is_a_gain() -> None:
    targets = np.arange(50.0)
    runs: RunsBySize = {
        (100, "tf-idf"): [(4.0, {"targets": targets, "predictions": targets + 2.0})] * 2,
        (100, "last-2"): [(1.0, {"targets": targets, "predictions": targets + 1.0})] * 2,
    }
    (found,) = gains(runs, ("tf-idf", "last-2"), ("tf-idf",), METRICS["mse"])
    assert (found["pair"], found["gain"]) == (BEST, pytest.approx(3.0))


def test_the_best_of_each_kind_is_chosen_by_dev_scores() -> None:
    scores = {
        (100, "tf-idf"): [0.9],
        (100, "feature-extraction"): [0.7],
        (100, "fine-tuning"): [0.8],
    }
    found = gains(runs_of(scores), LABELS, LABELS[:2], METRICS["accuracy"])
    assert [(gain["pair"], gain["untuned"]) for gain in found] == [
        (NAME, "feature-extraction"),
        (BEST, "tf-idf"),
    ]
    assert found[0]["low"] is None  # one seed has no interval
    assert begins(found)[0]["size"] is None


def values_of(scores: dict[tuple[int, str], list[float]]) -> AnalysisResult:
    """What an analysis with these test scores gives."""
    labels = list(dict.fromkeys(name for _, name in scores))
    untuned = [name for name in labels if name != "fine-tuning"]
    rows = [
        {
            "strategy": name,
            "tuned": name not in untuned,
            "size": size,
            "rows": size,
            "seed": seed,
            "dev": value,
            "test": value,
            "seconds": 1.0,
            "steps": 12,
            "trouble": "predicts only 'a'" if value < 0.4 else None,
        }
        for (size, name), values in scores.items()
        for seed, value in enumerate(values)
    ]
    found = gains(runs_of(scores), labels, untuned, METRICS["accuracy"])
    facts = {
        "metric": "accuracy",
        "sizes": sorted({size for size, _ in scores}),
        "strategies": labels,
        "untuned": untuned,
        "seeds": 2,
        "train_rows": 900,
        "test_rows": 400,
        "gains": found,
        "begins": begins(found),
    }
    return AnalysisResult(rows, facts)


def test_the_first_sentence_says_where_tuning_begins_to_pay() -> None:
    low, high = [0.70, 0.71], [0.90, 0.91]
    names = LABELS[1:]
    later = {
        (100, names[0]): low,
        (100, names[1]): low,
        (300, names[0]): low,
        (300, names[1]): high,
    }
    section = LabelCost().section(values_of(later), ())
    assert section.paragraphs[0].startswith("Tuning begins to pay at 300 training rows: there")
    always = {(100, names[0]): low, (100, names[1]): high}
    section = LabelCost().section(values_of(always), ())
    assert section.paragraphs[0].startswith("Tuning pays at every size that was tried, from 100")
    never = {(100, names[0]): high, (100, names[1]): [0.3, 0.31]}
    section = LabelCost().section(values_of(never), ())
    assert section.paragraphs[0].startswith("At none of these sizes is fine-tuning credibly better")
    assert section.warnings == (
        "fine-tuning at 100 training rows: 2 runs failed or gave one answer for every row.",
    )
    alone = LabelCost().section(values_of({(100, "tf-idf"): low}), ())
    assert alone.paragraphs[0].startswith("No strategy here tunes the encoder")
    assert len(alone.pictures) == 1


def test_runs_that_failed_are_not_told_as_a_lack_of_strategies() -> None:
    values = values_of({(100, "feature-extraction"): [0.7, 0.8]})
    failed = {**values.facts, "strategies": ["feature-extraction", "fine-tuning"]}
    section = LabelCost().section(AnalysisResult(values.rows, failed), ())
    assert section.paragraphs[0].startswith("At no size has a strategy that tunes the encoder and")


def test_tables_and_pictures_show_every_size() -> None:
    scores = {(n, name): [0.7, 0.7 + n / 2000] for n in (100, 300) for name in LABELS}
    values = values_of(scores)
    section = LabelCost().section(values, ())
    first, second = section.tables
    assert first.values("Training rows") == [100, 300]
    assert first.values("tf-idf")[0] == pytest.approx(0.725)
    assert second.values("Training rows") == [100, 300]
    curves = curve_rows(values.rows, values.facts)
    shown = [(row["strategy"], row["size"]) for row in curves]
    assert shown == [(name, size) for name in LABELS for size in (100, 300)]
    assert curves[0]["mean"] == pytest.approx(72.5)
    assert curves[0]["low"] < 72.5 < curves[0]["high"]
    assert all(picture.svg.startswith("<svg") for picture in section.pictures)
    assert ">300<" in section.pictures[0].svg
