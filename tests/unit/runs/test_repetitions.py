"""Folds pooled into repetitions: rows in order, one score, nothing lost."""

from typing import Any

import numpy as np
import pytest
from tests.tiny_runs import classes

from totune.metrics import PADDING
from totune.runs.records import Costs, RunRecord
from totune.runs.repetitions import pool_folds, runs_of
from totune.tasks.tagging import Tagging

ROWS = {1: [3, 0], 2: [1, 2, 4]}
TARGETS = np.array([0, 1, 0, 1, 1])


def record(fold: int, seed: int = 0, strategy: str = "tf-idf", **fields: Any) -> RunRecord:
    costs = Costs(10, 20, float(fold), 0.0, 1.0, 100, 50, 1.0)
    given = {"status": "finished", "costs": costs, "dev": {"accuracy": fold / 10}, **fields}
    name = f"{strategy} {seed} {fold}"
    return RunRecord(name, strategy, seed, config={"fold": fold}, seeds={}, precision="", **given)


def arrays(fold: int, predictions: list[int]) -> dict[str, np.ndarray]:
    rows = np.array(ROWS[fold])
    return {"rows": rows, "targets": TARGETS[rows], "predictions": np.array(predictions)}


def pooled(*records: RunRecord, **changes: Any) -> tuple[list[RunRecord], dict[str, Any]]:
    known = {
        run.fingerprint: arrays(run.fold or 0, [0] * len(ROWS[run.fold or 0])) for run in records
    }
    return pool_folds(records, {**known, **changes}, 2, classes(2))


def test_a_repetition_predicts_every_row_in_order() -> None:
    runs = [record(2), record(1)]
    found = {"tf-idf 0 1": arrays(1, [1, 0]), "tf-idf 0 2": arrays(2, [1, 0, 0])}
    [one], together = pooled(*runs, **found)
    rows = together[one.fingerprint]
    assert rows["targets"].tolist() == TARGETS.tolist()
    assert rows["predictions"].tolist() == [0, 1, 0, 1, 0]
    assert rows["folds"].tolist() == [1, 2, 2, 1, 2]
    assert one.test["accuracy"] == 0.8  # of all rows, not the mean of 1 and 2/3
    assert one.dev["accuracy"] == pytest.approx(0.15)
    assert one.costs is not None
    assert one.costs.train_seconds == 1.5
    assert [run.fold for run in one.parts] == [1, 2]
    assert runs_of([one]) == list(one.parts)
    assert "parts" not in one.to_json()


def test_strategies_and_repetitions_keep_their_order() -> None:
    names = [("b", 0), ("a", 0), ("b", 1), ("a", 1)]
    found, _ = pooled(*(record(fold, seed, name) for name, seed in names for fold in (1, 2)))
    assert [(one.strategy, one.seed) for one in found] == [("b", 0), ("b", 1), ("a", 0), ("a", 1)]


def test_a_repetition_that_is_not_whole_has_failed() -> None:
    [one], together = pooled(record(1))
    assert (one.status, one.error) == ("failed", "1 of its 2 folds have not run")
    [one], _ = pooled(record(1), record(2, status="failed", error="no memory"))
    assert one.error == "fold 2: no memory"
    assert not together


def test_a_repetition_is_degenerate_where_all_its_folds_are() -> None:
    [one], _ = pooled(record(1, degenerate="predicts only 'a'"), record(2))
    assert one.degenerate is None
    [one], _ = pooled(record(1, degenerate="predicts only 'a'"), record(2, degenerate="b"))
    assert one.degenerate == "predicts only 'a'"


def test_tags_are_padded_to_the_longest_sentence() -> None:
    short, long = np.array([[0, 1]]), np.array([[1, 0, 0]])
    known = {
        "tf-idf 0 1": {"rows": np.array([1]), "targets": short, "predictions": short},
        "tf-idf 0 2": {"rows": np.array([0]), "targets": long, "predictions": long},
    }
    [one], together = pool_folds([record(1), record(2)], known, 2, Tagging(("O", "A")))
    assert together[one.fingerprint]["targets"].tolist() == [[1, 0, 0], [0, 1, PADDING]]
    assert one.test["token-accuracy"] == 1.0
