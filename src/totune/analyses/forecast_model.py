"""Probabilities that each family of strategies wins: results of papers, and what they say here.

The forecast rests on the results below: one that is added changes its prior and its weights.
Sources: Peters et al. 2019 (Table 2), Hart (Table 2), Mohebbi and Rajaee (their adapters that are
not shared, the only ones tried on all sets), and `docs/results.md` (MiniLM), where a family's
score is that of its best strategy; RTE, where nothing was clearly above a constant answer, is left
out.

In four steps, each of which can be followed by hand:

1. Prior odds of each family against tuning the whole encoder: results of the same kind of encoder
   and data, counted (`prior_of`). With Peters et al. 2019 (Table 1) this says: a language model
   on pairs, keep it frozen; a transformer on pairs, tune it; else they are close.
2. Headroom, the share of a constant answer's errors that the best linear probe leaves, moves the
   log odds of all that tunes against frozen features: `headroom_weight` per unit, fitted to
   the same results; for transformers only. More headroom, more tuning.
3. Few rows move them back: one unit per factor of ten below 1,000 training rows. No result has so
   few, so this is a judgement, after the cautions of Wang et al. 2019 on small data.
4. Certainty is bounded by evidence: one more result per family, spread evenly, joins those that
   were counted, and below the fewest rows of any result these count half. The interval is that of
   a Dirichlet distribution of so many results.

Left out one by one, the results of frozen features against the whole encoder are forecast with a
mean squared error of 0.10; equal chances would have 0.15.

Three signals are reported and not weighed, since results show no relation: how much better the
probe is than tf-idf, which block it reads, and the divergence from a pretraining corpus (Peters et
al. 2019, Table 6: "no significant correlation").
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

Family = Literal["frozen", "top layers", "whole encoder", "inserted modules"]
Kind = Literal["transformer", "language model"]
Shape = Literal["single texts", "pairs", "scores", "tagged words"]
# Of frozen features, top layers, the whole encoder, inserted modules.
FamilyScores = tuple[float | None, float | None, float | None, float | None]

FAMILIES: dict[Family, tuple[str, ...]] = {
    "frozen": ("feature-extraction", "sentence-embedding"),
    "top layers": ("last-k",),
    "whole encoder": (
        *("fine-tuning", "gradual-unfreezing", "stack-and-finetune", "frozen-embeddings"),
        "contrastive",
    ),
    "inserted modules": ("adapters", "lora", "bitfit", "peft"),
}
REFERENCE: Family = "whole encoder"  # the family that every other is compared with
FEW_ROWS = 1_000
MOST_HEADROOM = 1.5  # a probe may be worse than a constant answer; how much says nothing more
CONFIDENCE = 0.9
_PRIOR_SD = 2.5
ALIKE = 1.0  # points: results this near count half for each side


class PublishedResult(NamedTuple):
    """One dataset with one encoder, scores in points; None where not run or not reported.

    Attributes:
        source: paper and dataset.
        kind: kind of encoder.
        shape: shape of the data.
        rows: training rows.
        frozen: score of frozen features.
        top: score of tuning a few top layers.
        whole: score of tuning the whole encoder.
        inserted: score of adapters, LoRA and the like.
        floor: score of a constant answer.
    """

    source: str
    kind: Kind
    shape: Shape
    rows: int | None = None
    frozen: float | None = None
    top: float | None = None
    whole: float | None = None
    inserted: float | None = None
    floor: float | None = None

    def score(self, family: Family) -> float | None:
        scores = (self.frozen, self.top, self.whole, self.inserted)
        return dict(zip(FAMILIES, scores, strict=True))[family]

    @property
    def headroom(self) -> float | None:
        """The share of a constant answer's errors that frozen features leave."""
        if self.frozen is None or self.floor is None:
            return None
        return (100 - self.frozen) / (100 - self.floor)

    def beats(self, family: Family) -> float | None:
        """1 where `family` beats tuning the whole encoder, 0.5 where they are alike, else 0."""
        one, other = self.score(family), self.score(REFERENCE)
        if one is None or other is None:
            return None
        return 0.5 if abs(one - other) <= ALIKE else float(one > other)


def _peters(
    name: str, shape: Shape, rows: int, floor: float | None, *scores: float
) -> list[PublishedResult]:
    """The rows of ELMo and BERT for a dataset: frozen and fine-tuned each."""
    kinds: tuple[Kind, Kind] = ("language model", "transformer")
    return [
        PublishedResult(
            f"Peters et al., {name}", kind, shape, rows, frozen, None, whole, None, floor
        )
        for kind, (frozen, whole) in zip(kinds, (scores[:2], scores[2:]), strict=True)
    ]


def _mohebbi(name: str, shape: Shape, whole: float, inserted: float) -> PublishedResult:
    """Full fine-tuning and adapters of BERT."""
    source = f"Mohebbi and Rajaee, {name}"
    return PublishedResult(source, "transformer", shape, whole=whole, inserted=inserted)


def _result(
    source: str, shape: Shape, rows: int, scores: FamilyScores, floor: float | None = None
) -> PublishedResult:
    """Of a transformer."""
    return PublishedResult(source, "transformer", shape, rows, *scores, floor)


def _own(
    name: str, shape: Shape, rows: int, scores: FamilyScores, floor: float | None = None
) -> PublishedResult:
    return _result(f"docs/results.md, {name}", shape, rows, scores, floor)


RESULTS: tuple[PublishedResult, ...] = (
    *_peters("CoNLL-2003", "tagged words", 14_041, None, 91.7, 91.9, 92.2, 92.4),
    *_peters("SST-2", "single texts", 67_349, 50.1, 91.8, 91.2, 93.0, 93.5),
    *_peters("MNLI", "pairs", 392_702, 35.4, 79.6, 76.4, 84.6, 84.6),
    *_peters("SICK-E", "pairs", 4_439, 56.7, 86.3, 83.3, 84.8, 85.8),
    *_peters("MRPC", "pairs", 3_668, 66.5, 76.0, 74.7, 78.1, 84.8),
    *_peters("SICK-R", "scores", 4_439, 0.0, 86.1, 83.3, 86.4, 88.7),
    *_peters("STS-B", "scores", 5_749, 0.0, 75.9, 75.5, 82.9, 87.1),
    _result("Hart, disaster tweets", "single texts", 6_091, (82.4, 83.1, 83.3, None), 57.0),
    _mohebbi("CoLA", "single texts", 52.1, 55.6),
    _mohebbi("SST-2", "single texts", 93.5, 93.4),
    _mohebbi("MRPC", "pairs", 88.9, 87.8),
    _mohebbi("STS-B", "scores", 87.1, 83.9),
    _mohebbi("QQP", "pairs", 71.2, 71.4),
    _mohebbi("MNLI", "pairs", 84.6, 84.0),
    _mohebbi("QNLI", "pairs", 90.5, 90.7),
    _mohebbi("RTE", "pairs", 66.4, 66.0),
    _mohebbi("airline", "single texts", 83.6, 83.3),
    _mohebbi("corporate messaging", "single texts", 92.5, 92.2),
    _mohebbi("disasters", "single texts", 85.3, 84.0),
    _mohebbi("economic news", "single texts", 82.1, 84.6),
    _mohebbi("emotion", "single texts", 38.4, 41.6),
    _mohebbi("political audience", "single texts", 80.9, 78.5),
    _mohebbi("political bias", "single texts", 75.2, 76.5),
    _mohebbi("political message", "single texts", 38.9, 79.3),
    _mohebbi("primary emotions", "single texts", 36.9, 35.1),
    _mohebbi("progressive opinion", "single texts", 71.6, 81.4),
    _mohebbi("news aggregator", "single texts", 96.3, 92.2),
    _mohebbi("US economic performance", "single texts", 75.3, 71.0),
    _own("film reviews", "single texts", 3_412, (78.2, 80.4, 83.2, None), 50.0),
    _own("disaster tweets", "single texts", 6_091, (80.3, 82.4, 83.0, None), 57.0),
    _own("CoLA", "single texts", 3_848, (10.9, 12.2, 21.6, 24.3), 0.0),
    _own("MRPC", "pairs", 1_834, (70.0, 69.6, 73.7, 75.3), 66.5),
    _own("SICK-R", "scores", 2_220, (73.0, 79.8, 84.9, 82.9), 0.0),
    _own("CoNLL-2003, a tenth", "tagged words", 1_397, (60.9, 43.6, 74.5, 64.4)),
    _own("CoNLL-2003, BiLSTM and CRF", "tagged words", 14_041, (87.2, None, 86.2, None)),
)
FEWEST_ROWS = min(result.rows for result in RESULTS if result.rows is not None)


class Prior(NamedTuple):
    """What results of the same kind of encoder and data say, before anything is measured.

    Attributes:
        odds: odds of each family against tuning the whole encoder.
        wins: results that each family won and lost against it; a half for either where alike.
        results: number of results.
    """

    odds: Mapping[Family, float]
    wins: Mapping[Family, tuple[float, float]]
    results: int


def prior_of(kind: Kind, shape: Shape, results: Sequence[PublishedResult] = RESULTS) -> Prior:
    """Odds from counted results: (won + 1) / (lost + 1), Laplace's rule.

    Families that the kind of encoder cannot have are left out: nothing is inserted into a
    language model over characters.
    """
    alike = [one for one in results if (one.kind, one.shape) == (kind, shape)]
    wins: dict[Family, tuple[float, float]] = {}
    for family in FAMILIES:
        if family == "inserted modules" and kind == "language model":
            continue
        found = [value for one in alike if (value := one.beats(family)) is not None]
        won = 0.0 if family == REFERENCE else sum(found)
        wins[family] = (won, 0.0 if family == REFERENCE else len(found) - won)
    odds = {family: (won + 1) / (lost + 1) for family, (won, lost) in wins.items()}
    return Prior(odds, wins, len(alike))


def headroom_weight(results: Sequence[PublishedResult] = RESULTS) -> tuple[float, float]:
    """How much headroom moves the log odds of tuning against frozen features.

    Logistic regression of "tuning the whole encoder won" on headroom, over the results with
    transformers that know both; a result that is alike counts half for each side. Twelve results
    would fit any slope, so it has a prior: normal with deviation 2.5 per two standard
    deviations of headroom (the scale of Gelman et al. 2008). Language models are left out: with
    ELMo frozen features win whatever the headroom.

    Returns:
        The slope per unit of headroom, and the mean headroom, at which the prior stays as it is.
    """
    known = [
        (result.headroom, 1 - value)
        for result in results
        if result.kind == "transformer"
        and result.headroom is not None
        and (value := result.beats("frozen")) is not None
    ]
    from sklearn.linear_model import LogisticRegression

    headroom = np.array([value for value, _ in known])
    tuned = np.array([won for _, won in known])
    unit, middle = 2 * float(headroom.std()), float(headroom.mean())
    features = np.tile((headroom - middle) / unit, 2)[:, None]
    labels = np.repeat([1, 0], len(known))
    weights = np.concatenate([tuned, 1 - tuned])
    fitted = LogisticRegression(C=_PRIOR_SD**2).fit(features, labels, weights)
    return float(fitted.coef_[0, 0]) / unit, middle


def family_of(strategy: str) -> Family | None:
    """The family of a strategy, by its registered name; None for those that read no encoder."""
    return next((family for family, names in FAMILIES.items() if strategy in names), None)


class Signals(NamedTuple):
    """What is known before anything is trained.

    Attributes:
        kind: kind of encoder.
        shape: shape of the data.
        rows: rows of the training set.
        headroom: the share of a constant answer's errors that the best probe leaves; None where
            nothing can be probed.
    """

    kind: Kind
    shape: Shape
    rows: int
    headroom: float | None = None


class Chance(NamedTuple):
    """How likely a family is to win.

    Attributes:
        probability: that it wins.
        low: lower end of the 90% interval.
        high: upper end of the 90% interval.
        prior: the probability before headroom and rows are considered.
    """

    probability: float
    low: float
    high: float
    prior: float


def forecast(
    signals: Signals, results: Sequence[PublishedResult] = RESULTS
) -> dict[Family, Chance]:
    """The chances of the families that the encoder can have; they sum to 1.

    Args:
        signals: what was measured.
        results: the results that the forecast rests on.
    """
    prior = prior_of(signals.kind, signals.shape, results)
    shift = tuning_shift(signals, results)
    moved = {
        family: odds * (1.0 if family == "frozen" else math.exp(shift))
        for family, odds in prior.odds.items()
    }
    before, after = _bounded(prior.odds, prior, signals), _bounded(moved, prior, signals)
    size = counted_results(prior, signals) + len(moved)
    return {
        family: Chance(chance, *_interval(chance, size), before[family])
        for family, chance in after.items()
    }


def tuning_shift(signals: Signals, results: Sequence[PublishedResult] = RESULTS) -> float:
    """What headroom and rows add to the log odds of tuning against frozen features."""
    shift = 0.0
    if signals.headroom is not None and signals.kind == "transformer":
        slope, middle = headroom_weight(results)
        shift += slope * (min(max(signals.headroom, 0.0), MOST_HEADROOM) - middle)
    return shift - max(0.0, math.log10(FEW_ROWS / signals.rows))


def counted_results(prior: Prior, signals: Signals) -> float:
    """How many results the forecast may count on."""
    return prior.results * (0.5 if signals.rows < FEWEST_ROWS else 1.0)


def brier(chances: Mapping[str, float], winner: str) -> float:
    """The squared distance of probabilities from what happened (Brier 1950): 0 best, 2 worst."""
    return sum((chance - (family == winner)) ** 2 for family, chance in chances.items())


def _bounded(odds: Mapping[Family, float], prior: Prior, signals: Signals) -> dict[Family, float]:
    """Odds as probabilities, shrunk towards equal ones by one result per family."""
    total, results = sum(odds.values()), counted_results(prior, signals)
    return {
        family: (results * value / total + 1) / (results + len(odds))
        for family, value in odds.items()
    }


def _interval(chance: float, size: float) -> tuple[float, float]:
    from scipy import stats

    tail = (1 - CONFIDENCE) / 2
    beta = stats.beta(chance * size, (1 - chance) * size)
    return float(beta.ppf(tail)), float(beta.ppf(1 - tail))
