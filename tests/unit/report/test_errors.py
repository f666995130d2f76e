import numpy as np
import pytest

from totune.metrics import METRICS
from totune.report import errors

LABELS = ["bad", "good", "rare"]
TARGETS = np.array([0, 0, 0, 1, 1, 0, -100])
ANSWERS = np.array([0, 1, 0, 1, 0, 1, 1])
SCORES = np.array(
    [
        [0.9, 0.1, 0.0],
        [0.1, 0.9, 0.0],
        [0.8, 0.2, 0.0],
        [0.3, 0.7, 0.0],
        [0.6, 0.4, 0.0],
        [0.05, 0.95, 0.0],
        [0.4, 0.6, 0.0],
    ]
)


def test_confusion_counts_pairs_with_their_share_of_both_sides():
    rows = errors.confusion_rows(TARGETS, ANSWERS, LABELS)
    found = {(row["label"], row["predicted"]): row for row in rows}
    assert sum(row["rows"] for row in rows) == len(TARGETS)
    assert found["bad", "good"]["rows"] == 2
    assert found["bad", "good"]["share"] == 0.5
    assert found["bad", "good"]["share_of_predicted"] == 0.5
    assert found[errors.NOT_TRAINED, "good"]["share"] == 1
    assert ("rare", "rare") not in found


def test_classes_have_support_precision_recall_and_f1():
    bad, good, rare = errors.class_rows(TARGETS, ANSWERS, LABELS)
    assert bad == {
        "label": "bad",
        "support": 4,
        "precision": pytest.approx(2 / 3),
        "recall": 0.5,
        "f1": pytest.approx(4 / 7),
    }
    assert (good["support"], good["precision"], good["recall"]) == (2, 0.25, 0.5)
    assert (rare["support"], rare["f1"]) == (0, 0)


def test_the_calibration_error_is_that_of_the_bins():
    rows = errors.calibration_rows(TARGETS, SCORES)
    assert sum(row["rows"] for row in rows) == len(TARGETS)
    gaps = sum(row["rows"] * abs(row["right"] - row["confidence"]) for row in rows)
    metric = METRICS["calibration-error"]
    assert gaps / len(TARGETS) == pytest.approx(metric(TARGETS, SCORES, 3))


def test_where_strategies_agree_the_label_may_be_the_mistake():
    agreeing = np.array([0, 0, 0, 1, 1, 1, 1])
    doubtful, mistakes = errors.mistake_rows(TARGETS, ANSWERS, SCORES, [agreeing], LABELS)
    assert [row["place"] for row in doubtful] == [5]
    assert doubtful[0]["agreeing"] == doubtful[0]["strategies"] == 2
    assert [row["place"] for row in mistakes] == [1, 4]  # most confident first
    assert mistakes[0] | {"confidence": 0.9} == {
        "place": 1,
        "label": "bad",
        "predicted": "good",
        "confidence": 0.9,
        "agreeing": 1,
        "strategies": 2,
    }


def test_a_single_strategy_doubts_no_label():
    doubtful, mistakes = errors.mistake_rows(TARGETS, ANSWERS, SCORES, [], LABELS)
    assert doubtful == []
    assert len(mistakes) == 3


def test_lists_of_mistakes_are_short():
    targets, answers = np.zeros(500, int), np.ones(500, int)
    scores = np.tile([0.2, 0.8], (500, 1))
    for others in ([], [answers]):
        doubtful, mistakes = errors.mistake_rows(targets, answers, scores, others, LABELS[:2])
        assert len(doubtful) + len(mistakes) in (20, 40)


def test_the_rival_gets_other_rows_right():
    theirs = np.array([0, 0, 1, 1, 0, 0, 1])
    rows = {row["right"]: row for row in errors.rival_rows(TARGETS, ANSWERS, theirs)}
    assert {kind: row["rows"] for kind, row in rows.items()} == {
        "both": 2,
        "only the recommended": 1,
        "only the other": 2,
        "neither": 2,
    }
    assert rows["only the other"]["places"] == [1, 5]
    assert errors.places_shown(list(rows.values())) == {1, 2, 5}


def test_a_row_of_tags_is_right_if_all_of_it_is():
    targets = np.array([[1, 2, -1], [0, 0, 0]])
    mine, theirs = np.array([[1, 2, -1], [0, 0, 1]]), np.array([[1, 0, -1], [0, 0, 0]])
    counts = [row["rows"] for row in errors.rival_rows(targets, mine, theirs)]
    assert counts == [0, 1, 1, 0]


def test_residuals_are_signed_and_furthest_first():
    targets, answers = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.5, 2.0, 1.0, 4.25])
    rows = errors.residual_rows(targets, answers)
    assert [row["place"] for row in rows] == [2, 0, 3, 1]
    assert rows[0]["residual"] == -2
    bands = errors.band_rows(targets, answers)
    assert [(band["low"], band["mean"]) for band in bands] == [
        (1.0, 0.5),
        (2.0, 0.0),
        (3.0, -2.0),
        (4.0, 0.25),
    ]
    assert sum(band["rows"] for band in errors.band_rows(targets[:2], answers[:2])) == 2


def test_spans_are_right_missed_or_of_other_type_or_boundaries():
    # Codes of IOB2: B-LOC 1, I-LOC 2, B-PER 5, I-PER 6.
    targets = np.array(
        [
            [1, 2, 0, 5, 0, 1],
            [1, 2, 0, 5, 6, 0],
            [5, 0, 1, 2, -1, -1],
        ]
    )
    answers = np.array(
        [
            [1, 2, 0, 1, 0, 0],  # right, other type, missed
            [1, 0, 5, 0, 1, 2],  # other boundaries; met by another type with other boundaries
            [5, 0, 0, 0, -1, -1],
        ]
    )
    loc, per = errors.span_rows(targets, answers, ("LOC", "PER"))
    fates = ("right", "boundaries", "type", "both", "missed", "spurious")
    assert [loc[fate] for fate in fates] == [1, 1, 0, 0, 2, 0]
    assert [per[fate] for fate in fates] == [1, 0, 1, 1, 0, 1]
    assert (loc["support"], loc["precision"], loc["recall"]) == (4, 0.25, 0.25)
    assert (per["support"], per["precision"], per["recall"]) == (3, 0.5, pytest.approx(1 / 3))
    confused = {
        (row["label"], row["predicted"]): row["rows"]
        for row in errors.type_confusion(targets, answers, ("LOC", "PER"))
    }
    assert confused == {
        ("LOC", "LOC"): 2,
        ("LOC", errors.NO_SPAN): 2,
        ("PER", "LOC"): 2,
        ("PER", "PER"): 1,
    }
