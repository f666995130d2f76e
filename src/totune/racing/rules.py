"""The rules by which strategies are eliminated after a round.

1. "worse": a strategy that is credibly worse than the best by more than the tolerance leaves.
2. "keeps up", "more expensive": one that is credibly within the tolerance of the best needs no more
   seeds. What costs more than it cannot be recommended any more and leaves too, except for the
   best, which the others are compared with.
3. "cannot win", "stays open", "changes nothing" (futility): a strategy whose remaining seeds would
   change the outcome with a probability below 10% leaves. One that costs more than the best so far
   would have to come out ahead of it by more than the tolerance; a cheaper one, as credibly worse
   or as good. Once a cheaper one stays open the verdict does, whichever others are worse, so the
   others must come out as good.
4. "constant answer": one that does not beat a constant answer over two seeds leaves, unless the
   best does not either. It can be neither the answer nor what keeps the verdict open
   (`totune.advice.decide`), so what it costs limits no other.
5. "no usable run": one whose runs of two rounds all failed leaves.

A strategy that is possibly under-trained (`totune.advice.screening`) might be better if it trained
longer, so nothing found or expected against it eliminates it: only 2, "keeps up", and 5.

On a part of the training rows less is known: see `part_reasons`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scipy import stats

from totune.advice.compare import Comparison
from totune.advice.summary import StrategySummary
from totune.racing.records import Elimination, Reason
from totune.statistics import Paired

FUTILITY = 0.1  # probability of changing the outcome below which a strategy leaves
LOST_ROUNDS = 2
SEEDS_TO_CLOSE = 2

Cost = tuple[float, float, str]
NO_COST: Cost = (math.inf, math.inf, "")
_NO_SPREAD = 1e-12  # the normal distribution takes no standard deviation of 0


@dataclass(frozen=True)
class ConditionalPower:
    """Probabilities of the findings on a strategy after all the seeds, given the seeds so far.

    Attributes:
        worse: that it is credibly worse than the best by more than the tolerance.
        good: that it is credibly within the tolerance of the best.
        ahead: that it is ahead of the best by more than the tolerance, credibly or not.
    """

    worse: float
    good: float
    ahead: float


def conditional_power(pair: Paired, tolerance: float, seeds: int, level: float) -> ConditionalPower:
    """The probabilities of what a comparison finds after all the seeds.

    Conditional power (Lan, Simon and Halperin 1982) with a flat prior: the mean difference over all
    seeds is normal around the present one, with the variance of the seeds still to come. The test
    rows stay the same, so their part of the interval stays too. Where the variance over seeds is
    not known, it is taken to be as large as that over rows.

    Args:
        pair: how far the best is ahead.
        tolerance: how much worse is still good enough.
        seeds: number of seeds in the end.
        level: error of the last analysis for this comparison.
    """
    spread = pair.spread
    if not spread.is_known:
        spread = replace(spread, seeds=(spread.examples / 2, spread.examples / 2))
    reach = spread.reach(level, (seeds, seeds))
    to_come = (
        variance * max(0.0, 1 / n - 1 / seeds) / spread.folds
        for variance, n in zip(spread.seeds, spread.n_seeds, strict=True)
    )
    around = stats.norm(pair.difference, math.sqrt(sum(to_come)) or _NO_SPREAD)
    return ConditionalPower(
        worse=float(around.sf(tolerance + reach)),
        good=float(around.cdf(tolerance - reach)),
        ahead=float(around.cdf(-tolerance)),
    )


@dataclass(frozen=True)
class Rival:
    """A strategy in the race other than the best.

    Attributes:
        comparison: the comparison with the best.
        power: probabilities of the findings after all the seeds.
        cheaper: whether it costs less than the best.
        is_undertrained: whether it is possibly under-trained.
        is_constant: whether it does not beat a constant answer, and the best does.
    """

    summary: StrategySummary
    comparison: Comparison
    power: ConditionalPower
    cheaper: bool
    is_undertrained: bool
    is_constant: bool

    @property
    def strategy(self) -> str:
        return self.summary.strategy

    def chance(self, reason: Reason) -> float | None:
        """The probability that the remaining seeds change the outcome, where that is the reason."""
        either = self.power.worse + self.power.good
        chances = {"cannot win": self.power.ahead, "stays open": either}
        return (chances | {"changes nothing": self.power.good}).get(reason)

    def is_futile(self, reason: Reason) -> bool:
        """Whether that probability is too small to go on."""
        chance = self.chance(reason)
        return chance is not None and chance < FUTILITY

    def eliminate(self, best: StrategySummary, reason: Reason) -> Elimination:
        """The record of its elimination."""
        chance = self.chance(reason)
        return Elimination(
            self.strategy, reason, best.strategy, self.summary.seeds, chance, self.comparison
        )


def part_reasons(
    best: StrategySummary, rivals: Sequence[Rival], sign: int, floor: float
) -> dict[str, Reason]:
    """The strategies eliminated after a round on a part of the training rows, with the reasons.

    More rows change scores, so a strategy leaves only if it is credibly worse than one that is also
    cheaper; this supposes that more rows do not turn the two around. They do where few rows are too
    few steps: on 175 tweets fine-tuning and LoRA still give the answer of most rows, and on 700
    they are among the best. So a strategy stays that is not yet half as far above a constant answer
    as the best is.

    Args:
        best: the best of those in the race.
        rivals: the others.
        sign: the metric's sign.
        floor: score of the best constant answer, times the sign.
    """
    learnt = floor + (sign * best.score.mean - floor) / 2
    return {
        rival.strategy: "worse"
        for rival in rivals
        if rival.comparison.verdict == "credibly worse"
        and not rival.cheaper
        and sign * rival.summary.score.mean > learnt
    }


def find_reasons(
    best: StrategySummary,
    rivals: Sequence[Rival],
    earlier: Mapping[str, Reason],
    costs: Mapping[str, Cost],
    final: bool,
) -> dict[str, Reason]:
    """The strategies eliminated after a round on all training rows, with the reasons.

    Args:
        best: the best of those in the race.
        rivals: the others.
        earlier: reasons of earlier eliminations, by strategy.
        costs: cost order of each strategy that beats a constant answer.
        final: whether no seeds remain.
    """
    reasons: dict[str, Reason] = {}
    rivals = [r for r in rivals if not r.is_undertrained or r.comparison.verdict == "as good"]
    for rival in rivals:
        if rival.comparison.verdict != "open":
            worse = rival.comparison.verdict == "credibly worse"
            reasons[rival.strategy] = "worse" if worse else "keeps up"
        elif rival.is_constant and rival.summary.seeds >= SEEDS_TO_CLOSE:
            reasons[rival.strategy] = "constant answer"
    limit = _cheapest("keeps up", {**earlier, **reasons}, costs)
    rest = [rival for rival in rivals if rival.strategy not in reasons]
    reasons |= {r.strategy: "more expensive" for r in rest if r.summary.cost_order > limit}
    if not final:
        rest = [rival for rival in rest if rival.strategy not in reasons]
        reasons |= _futile(rest, earlier, costs, min(limit, best.cost_order))
    return reasons


def _futile(
    rivals: Sequence[Rival], earlier: Mapping[str, Reason], costs: Mapping[str, Cost], limit: Cost
) -> dict[str, Reason]:
    """Rule 3; `limit` is the cost of the cheapest strategy known to be good enough."""
    reasons: dict[str, Reason] = {}
    for rival in rivals:
        if not rival.cheaper and rival.is_futile("cannot win"):
            reasons[rival.strategy] = "cannot win"
        known = rival.summary.seeds >= SEEDS_TO_CLOSE
        if rival.cheaper and known and rival.is_futile("stays open"):
            reasons[rival.strategy] = "stays open"
    if _cheapest("stays open", {**earlier, **reasons}, costs) < limit:
        for rival in rivals:
            if rival.cheaper and rival.is_futile("changes nothing"):
                reasons.setdefault(rival.strategy, "changes nothing")
    return reasons


def _cheapest(why: Reason, reasons: Mapping[str, Reason], costs: Mapping[str, Cost]) -> Cost:
    """The cost of the cheapest strategy eliminated for one reason."""
    those = [costs[name] for name, reason in reasons.items() if reason == why and name in costs]
    return min(those, default=NO_COST)
