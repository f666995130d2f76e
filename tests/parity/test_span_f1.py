"""Spans against conlleval.pl and seqeval, by way of the tagging task.

`oracles/span_f1.npz` holds what the Perl script of 2004 printed and what seqeval 1.2.2 returned for
eight cases. The script does not know S and half knows E, so IOBES is compared with seqeval alone.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seqeval import metrics as seqeval

from totune.metrics import METRICS, SpanScore, span_scores
from totune.tasks.tagging import Tagging

ORACLE = dict(np.load(Path(__file__).parent / "oracles/span_f1.npz"))
CASES = range(8)
READ_BY_CONLLEVAL = [n for n in CASES if ORACLE[f"case{n}.scheme"] != "IOBES"]
KINDS = ("LOC", "ORG", "PER")
LETTERS = {"iob1": "BI", "iob2": "BI", "iobes": "BIES"}

Sentences = list[tuple[str, ...]]


def task(scheme: Any) -> Tagging:
    tags = [f"{letter}-{kind}" for kind in KINDS for letter in "BIES"]
    return Tagging(("O", *tags), scheme)


def case(number: int) -> tuple[np.ndarray, np.ndarray, Tagging]:
    """The codes of the gold and the predicted tags of a case, [N, W], and their task."""
    found = {name: ORACLE[f"case{number}.{name}"] for name in ("gold", "pred", "sentence")}
    edges = np.flatnonzero(np.diff(found["sentence"])) + 1
    tagging = task(str(ORACLE[f"case{number}.scheme"]).lower())
    sides = (np.split(found[side], edges) for side in ("gold", "pred"))
    gold, pred = (tagging.targets([tuple(map(str, row)) for row in side]) for side in sides)
    return gold, pred, tagging


def totals(scores: list[SpanScore]) -> list[int]:
    return [sum(getattr(s, name) for s in scores) for name in ("correct", "found", "gold")]


@pytest.mark.parametrize("number", READ_BY_CONLLEVAL)
def test_conlleval_prints_the_same(number: int):
    gold, pred, tagging = case(number)
    by_type = span_scores(gold, pred, len(tagging.types))
    told = ORACLE[f"case{number}.conlleval.counts_correct_found_gold"]
    assert totals(by_type) == told.tolist()
    found = tagging.evaluate(gold, pred)
    names = ("token-accuracy", "span-precision", "span-recall", "span-f1")
    printed = ORACLE[f"case{number}.conlleval.accuracy_precision_recall_f1_percent"]
    assert [round(100 * found[name], 2) for name in names] == printed.tolist()
    for kind, score in zip(tagging.types, by_type, strict=True):
        ratios = [round(100 * r, 2) for r in (score.precision, score.recall, score.f1)]
        key = f"case{number}.conlleval.{kind}.precision_recall_f1_percent_found"
        assert [*ratios, score.found] == ORACLE[key].tolist()
        assert found[f"f1:{kind}"] == score.f1


@pytest.mark.parametrize("number", CASES)
def test_seqeval_counts_the_same(number: int):
    gold, pred, tagging = case(number)
    by_type = span_scores(gold, pred, len(tagging.types))
    told = ORACLE[f"case{number}.seqeval.counts_correct_found_gold"]
    assert totals(by_type) == told.tolist()
    found = [METRICS[f"span-{name}"](gold, pred) for name in ("precision", "recall", "f1")]
    expected = ORACLE[f"case{number}.seqeval.precision_recall_f1"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    met = [score for score in by_type if score.found or score.gold]
    macro = [np.mean([getattr(s, name) for s in met]) for name in ("precision", "recall", "f1")]
    expected = ORACLE[f"case{number}.seqeval.macro_precision_recall_f1"]
    np.testing.assert_allclose(macro, expected, rtol=0, atol=1e-12)


def random_sentences(letters: str, seed: int, rows: int = 40) -> tuple[Sentences, Sentences]:
    """Gold and predicted tags without any order: every damage there can be."""
    rng = np.random.default_rng(seed)
    tags = ["O", "O", "O", *(f"{letter}-{kind}" for letter in letters for kind in KINDS)]
    gold, pred = [], []
    for length in rng.integers(1, 13, rows):
        row = rng.choice(tags, length)
        gold.append(tuple(map(str, row)))
        pred.append(
            tuple(map(str, np.where(rng.random(length) < 0.7, row, rng.choice(tags, length))))
        )
    return gold, pred


@pytest.mark.filterwarnings("ignore::UserWarning")  # seqeval says where it writes 0 for 0 / 0
@pytest.mark.parametrize("scheme", LETTERS)
@pytest.mark.parametrize("seed", range(5))
def test_random_tags_score_as_in_seqeval(scheme: str, seed: int):
    gold, pred = random_sentences(LETTERS[scheme], seed)
    tagging = task(scheme)
    found = tagging.evaluate(tagging.targets(gold), tagging.targets(pred))
    rows = [list(row) for row in gold], [list(row) for row in pred]
    report = seqeval.classification_report(*rows, output_dict=True, zero_division=0)
    expected = {
        "span-f1": seqeval.f1_score(*rows),
        "span-precision": seqeval.precision_score(*rows),
        "span-recall": seqeval.recall_score(*rows),
        "token-accuracy": seqeval.accuracy_score(*rows),
        **{f"f1:{kind}": report[kind]["f1-score"] for kind in KINDS},
    }
    assert found == pytest.approx(expected, abs=1e-12)
    drawn = np.random.default_rng(seed).integers(0, len(gold), len(gold))
    weights = np.bincount(drawn, minlength=len(gold))[None]
    codes = tagging.targets(gold), tagging.targets(pred)[None]
    resampled = METRICS["span-f1"].resampled(*codes, weights)[0, 0]
    again = seqeval.f1_score([rows[0][i] for i in drawn], [rows[1][i] for i in drawn])
    assert resampled == pytest.approx(again, abs=1e-12)
