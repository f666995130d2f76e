import math

import pytest

from totune.report import formatting


@pytest.mark.parametrize(
    ("metric", "value", "signed", "expected"),
    [
        ("accuracy", 0.8466, False, "84.7"),
        ("accuracy", 1.0, False, "100.0"),
        ("accuracy", 0.012, True, "+1.2"),
        ("accuracy", -0.012, True, "−1.2"),
        ("accuracy", -0.0001, True, "0.0"),
        ("matthews", -0.31, False, "−31.0"),
        ("mse", 0.73124, False, "0.731"),
        ("mse", 1234.5, False, "1,234"),
        ("mse", 0.5, True, "+0.500"),
        ("perplexity", 3.14159, False, "3.14"),
        ("span-f1", 0.9122, False, "91.2"),
        ("f1:PER", 0.9122, False, "91.2"),
        ("accuracy", None, False, "–"),
        ("accuracy", math.nan, False, "–"),
    ],
)
def test_scores(metric: str, value: float | None, signed: bool, expected: str):
    assert formatting.score(metric, value, signed=signed) == expected


def test_an_interval_with_an_unknown_end_is_a_dash():
    assert formatting.interval("accuracy", 0.841, 0.862) == "84.1 to 86.2"
    assert formatting.interval("accuracy", -0.003, 0.012) == "−0.3 to 1.2"
    assert formatting.interval("accuracy", math.nan, 0.862) == "–"
    assert formatting.interval("accuracy", None, None) == "–"
    assert formatting.interval("accuracy", -math.inf, math.inf) == "–"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (0.0421, "0.042 s"),
        (4.1, "4.1 s"),
        (48.2, "48 s"),
        (59.4, "59 s"),
        (59.7, "1 min"),
        (200, "3 min 20 s"),
        (3599.7, "1 h"),
        (3900, "1 h 5 min"),
        (None, "–"),
    ],
)
def test_durations(seconds: float | None, expected: str):
    assert formatting.duration(seconds) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1.00 kB"),
        (3080, "3.08 kB"),
        (90_855_944, "90.9 MB"),
        (999_600_000, "1.00 GB"),
        (5e12, "5.00 TB"),
        (None, "–"),
    ],
)
def test_byte_sizes(size: float | None, expected: str):
    assert formatting.byte_size(size) == expected


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (0, "0%"),
        (770, "<0.01%"),
        (3_550_466, "15.6%"),
        (22_713_985, ">99.9%"),
        (22_713_986, "100%"),
    ],
)
def test_shares(part: int, expected: str):
    assert formatting.share(part, 22_713_986) == expected


def test_a_share_of_nothing_is_unknown():
    assert formatting.share(3, 0) == "–"


@pytest.mark.parametrize(
    ("p", "expected"),
    [(0.0004, "<0.001"), (0.0123, "0.012"), (0.27, "0.27"), (1.0, "1.00"), (math.nan, "–")],
)
def test_p_values(p: float, expected: str):
    assert formatting.p_value(p) == expected


def test_plain_values_carry_their_units():
    assert formatting.plain(16_500_000_000, "memory_bytes") == "16.5 GB"
    assert formatting.plain({"train": 6824, "dev": 853}) == "train 6,824, dev 853"
    assert formatting.plain({"text": "review", "pair": None}) == "text: review"
    assert formatting.plain([0, 1], "seeds") == "0, 1"
    assert formatting.plain(20300102, "split_seed") == "20300102"
    assert formatting.plain(True) == "yes"
    assert formatting.plain([]) == "–"
    assert formatting.plain(2e-05) == "2e-05"


def test_metric_names_fit_their_place():
    assert formatting.metric_label("accuracy") == "Accuracy"
    assert formatting.metric_name("accuracy") == "accuracy"
    assert formatting.metric_label("f1") == formatting.metric_name("f1") == "F1"
    assert formatting.metric_label("mse") == "Mean squared error"
    assert formatting.tolerance("accuracy", 0.005) == "0.5 points"
    assert formatting.tolerance("mse", 0.02) == "0.02"


@pytest.mark.parametrize(
    ("value", "expected"), [(84.3, "84.3"), (31_274.0, "31,300"), (0.5, "0.500")]
)
def test_rates(value: float, expected: str):
    assert formatting.rate(value) == expected


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("span-f1", "Span F1"),
        ("token-accuracy", "Token accuracy"),
        ("f1:PER", "F1 of PER"),
        ("f1:a:b", "F1 of a:b"),
    ],
)
def test_metrics_of_words_have_names(metric: str, expected: str):
    assert formatting.metric_label(metric) == expected
