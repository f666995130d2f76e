import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from totune.metrics import METRICS, PADDING, span_scores
from totune.metrics.spans import find_spans

SPANS = ("span-f1", "span-precision", "span-recall")
WORDS = sorted(name for name, metric in METRICS.items() if metric.per_word)
B, I, E, S = 1, 2, 3, 4  # noqa: E741 - the prefixes of type 0
OTHER = 4  # added to a code of type 0 it is that of type 1

codes = st.integers(0, 8)
sentences = st.lists(st.lists(st.tuples(codes, codes), min_size=1, max_size=6), min_size=1)
# Each metric draws examples of its own: few of each are some hundred together.
of_each = settings(max_examples=40)


def pad(rows: list[list[int]]) -> np.ndarray:
    width = max(map(len, rows))
    return np.array([row + [PADDING] * (width - len(row)) for row in rows], dtype=np.int16)


def sides(rows: list[list[tuple[int, int]]]) -> tuple[np.ndarray, np.ndarray]:
    return tuple(pad([[pair[side] for pair in row] for row in rows]) for side in (0, 1))


def spans(*row: int) -> list[tuple[int, int, int]]:
    found = find_spans(pad([list(row)]))
    return list(zip(found.first.tolist(), found.last.tolist(), found.kind.tolist(), strict=True))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param((0, 0), [], id="none"),
        pytest.param((B, I, I), [(0, 2, 0)], id="begun and gone on"),
        pytest.param((0, I, I), [(1, 2, 0)], id="I after O"),
        pytest.param((I, B, B), [(0, 0, 0), (1, 1, 0), (2, 2, 0)], id="B parts"),
        pytest.param((B, I + OTHER, I), [(0, 0, 0), (1, 1, 1), (2, 2, 0)], id="types change"),
        pytest.param((B, E, I, E), [(0, 1, 0), (2, 3, 0)], id="E ends"),
        pytest.param((S, I, S, S), [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 0)], id="S alone"),
        pytest.param((E, E), [(0, 0, 0), (1, 1, 0)], id="E after E"),
        pytest.param((B, PADDING, PADDING), [(0, 0, 0)], id="padding ends"),
    ],
)
def test_where_spans_are(row: tuple[int, ...], expected: list[tuple[int, int, int]]):
    assert spans(*row) == expected


def test_a_span_does_not_cross_the_edge_of_a_sentence():
    found = find_spans(pad([[0, B], [I, I], [I, 0]]))
    assert found.first.tolist() == [1, 2, 4]
    assert found.last.tolist() == [1, 3, 4]


def test_a_span_is_right_as_a_whole():
    gold = pad([[B, I, 0, B + OTHER], [B]])
    pred = pad([[B, I, I, B], [B]])
    assert METRICS["span-precision"](gold, pred) == pytest.approx(1 / 3)
    assert METRICS["span-recall"](gold, pred) == pytest.approx(1 / 3)
    assert METRICS["span-f1"](gold, pred) == pytest.approx(1 / 3)
    assert METRICS["token-accuracy"](gold, pred) == pytest.approx(3 / 5)
    first, second = span_scores(gold, pred, 2)
    assert (first.correct, first.found, first.gold) == (1, 3, 2)
    assert (second.precision, second.recall, second.f1) == (0.0, 0.0, 0.0)
    assert (second.found, second.gold) == (0, 1)


def test_a_type_that_training_never_saw_counts_as_missed():
    gold = pad([[B, 0, B + 5 * OTHER]])
    pred = pad([[B, 0, 0]])
    assert METRICS["span-recall"](gold, pred, 5) == 0.5
    assert len(span_scores(gold, pred, 1)) == 1


@pytest.mark.parametrize("name", SPANS)
def test_nothing_by_nothing_is_nothing(name: str):
    gold, none = pad([[B, I]]), pad([[0, 0]])
    assert METRICS[name](gold, none) == 0.0
    assert METRICS[name](none, gold) == 0.0
    assert METRICS[name](none, none) == 0.0


@of_each
@given(sentences)
@pytest.mark.parametrize("name", WORDS)
def test_what_is_all_right_scores_one(name: str, rows: list[list[tuple[int, int]]]):
    gold, _ = sides(rows)
    expected = 0.0 if name in SPANS and (gold <= 0).all() else 1.0
    assert METRICS[name](gold, gold) == expected


@of_each
@given(sentences, st.data())
@pytest.mark.parametrize("name", WORDS)
def test_weights_are_repeated_sentences(
    name: str, rows: list[list[tuple[int, int]]], data: st.DataObject
):
    gold, pred = sides(rows)
    n = len(rows)
    counts = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any))
    both = np.stack([pred, gold])
    weighted = METRICS[name].resampled(gold, both, np.array([counts, [1] * n]))
    repeated = [np.repeat(side, counts, axis=0) for side in (gold, pred, gold)]
    expected = [[METRICS[name](repeated[0], one) for one in repeated[1:]]]
    np.testing.assert_allclose(weighted[:, :1].T, expected, rtol=0, atol=1e-12)
    assert weighted[0, 1] == pytest.approx(METRICS[name](gold, pred))


@given(sentences)
def test_token_f1_is_the_macro_mean_of_all_words(rows: list[list[tuple[int, int]]]):
    gold, pred = sides(rows)
    words = gold != PADDING
    expected = f1_score(gold[words], pred[words], average="macro", zero_division=0)
    assert METRICS["token-f1"](gold, pred) == pytest.approx(expected)


@of_each
@given(sentences, st.integers(1, 4))
@pytest.mark.parametrize("name", WORDS)
def test_more_padding_changes_nothing(name: str, rows: list[list[tuple[int, int]]], more: int):
    gold, pred = sides(rows)
    wide = [np.pad(side, ((0, 0), (0, more)), constant_values=PADDING) for side in (gold, pred)]
    assert METRICS[name](*wide) == METRICS[name](gold, pred)


@pytest.mark.parametrize(
    ("gold", "pred", "told"),
    [
        (np.zeros((2, 3)), np.zeros((2, 4)), "as many predictions as targets"),
        (np.zeros((0, 3)), np.zeros((0, 3)), "as many predictions as targets"),
        (np.zeros(3), np.zeros(3), "takes a row per sentence"),
        (pad([[1, 0], [1]]), pad([[1], [1, 0]]), "the same words on both sides"),
    ],
)
@pytest.mark.parametrize("name", WORDS)
def test_arrays_that_do_not_fit_are_refused(
    name: str, gold: np.ndarray, pred: np.ndarray, told: str
):
    with pytest.raises(ValueError, match=told):
        METRICS[name](gold, pred)


def test_metrics_of_rows_refuse_sentences():
    with pytest.raises(ValueError, match="one target per row"):
        METRICS["accuracy"](pad([[0, 1]]), pad([[0, 1]]))
    with pytest.raises(ValueError, match="3 weights for 2 rows"):
        METRICS["accuracy"].resampled(np.zeros(2), np.zeros((1, 2)), np.ones((1, 3)))
