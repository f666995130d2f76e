"""Who leaves a race after a round, and why.

1. "worse": a strategy that is credibly worse than the best by more than the tolerance leaves.
2. "keeps up", "dearer": one that is credibly within the tolerance of the best needs no more seeds;
   what costs more than it cannot be recommended any more and leaves too, but for the best, which
   the others are compared with.
3. "cannot win", "stays open", "changes nothing": a strategy whose remaining seeds would change the
   outcome with a probability below 10% leaves. One that costs more than the best so far would have
   to come out ahead of it by more than the tolerance; a cheaper one, as credibly worse or as good.
   Once a cheaper one stays open the verdict does, whoever else is worse, so the others must come
   out as good.
4. "constant answer": one that does not beat a constant answer over two seeds leaves, unless the
   best does not either. It can be neither the answer nor what keeps the verdict open
   (`totune.advice.deciding`), so what it costs limits nobody.
5. "no usable run": one whose runs of two rounds all failed leaves.

A strategy that is possibly under-trained (`totune.advice.undertraining`) might be better if it
trained longer, so nothing found or expected against it makes it leave: only 2, "keeps up", and 5.

On a part of the training rows less is known: see `part_reasons`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from totune.advice.comparing import Comparison
from totune.advice.standings import Entrant
from totune.racing.forecast import Forecast
from totune.racing.records import Departure, Reason

LEAST_CHANCE = 0.1
LOST_ROUNDS = 2
SEEDS_TO_CLOSE = 2

Cost = tuple[float, float, str]
NO_COST: Cost = (math.inf, math.inf, "")


@dataclass(frozen=True)
class Rival:
    """Another strategy beside the best: how it stands, and what the seeds left may bring.

    Attributes:
        cheaper: than the best.
        is_undertrained: whether it is possibly under-trained.
        is_constant: whether it does not beat a constant answer, and the best does.
    """

    entrant: Entrant
    comparison: Comparison
    cheaper: bool
    forecast: Forecast
    is_undertrained: bool
    is_constant: bool

    @property
    def strategy(self) -> str:
        return self.entrant.strategy

    def chance(self, reason: Reason) -> float | None:
        """The probability that is too small to go on for, where that is the reason."""
        either = self.forecast.worse + self.forecast.good
        chances = {"cannot win": self.forecast.ahead, "stays open": either}
        return (chances | {"changes nothing": self.forecast.good}).get(reason)

    def is_idle(self, reason: Reason) -> bool:
        """Whether the seeds left have too small a chance."""
        chance = self.chance(reason)
        return chance is not None and chance < LEAST_CHANCE


def part_reasons(
    best: Entrant, rivals: Sequence[Rival], sign: int, floor: float
) -> dict[str, Reason]:
    """Who leaves after a round on a part of the training rows.

    More rows change scores, so those alone leave that are credibly worse than one that is cheaper
    too; this supposes that more rows do not turn the two around. They do where few rows are too few
    steps: on 175 tweets fine-tuning and LoRA still give the answer of most rows, and on 700 they
    are among the best. So those stay that are not yet half as far above a constant answer
    as the best is.

    Args:
        best: the best of those in the race.
        rivals: the others.
        sign: of the metric.
        floor: what the best constant answer scores, times the sign.
    """
    learnt = floor + (sign * best.standing.mean - floor) / 2
    return {
        rival.strategy: "worse"
        for rival in rivals
        if rival.comparison.verdict == "credibly worse"
        and not rival.cheaper
        and sign * rival.entrant.standing.mean > learnt
    }


def find_reasons(
    best: Entrant,
    rivals: Sequence[Rival],
    left: Mapping[str, Reason],
    costs: Mapping[str, Cost],
    final: bool,
) -> dict[str, Reason]:
    """Who leaves after a round on all training rows, and why.

    Args:
        best: the best of those in the race.
        rivals: the others.
        left: why others have left it before.
        costs: of each strategy that beats a constant answer.
        final: whether there are no seeds left that anything could be hoped of.
    """
    reasons: dict[str, Reason] = {}
    rivals = [r for r in rivals if not r.is_undertrained or r.comparison.verdict == "as good"]
    for rival in rivals:
        if rival.comparison.verdict != "open":
            worse = rival.comparison.verdict == "credibly worse"
            reasons[rival.strategy] = "worse" if worse else "keeps up"
        elif rival.is_constant and rival.entrant.standing.seeds >= SEEDS_TO_CLOSE:
            reasons[rival.strategy] = "constant answer"
    limit = _cheapest("keeps up", {**left, **reasons}, costs)
    rest = [rival for rival in rivals if rival.strategy not in reasons]
    reasons |= {r.strategy: "dearer" for r in rest if r.entrant.standing.cost > limit}
    if not final:
        rest = [rival for rival in rest if rival.strategy not in reasons]
        reasons |= _forecast_reasons(rest, left, costs, min(limit, best.standing.cost))
    return reasons


def _forecast_reasons(
    rivals: Sequence[Rival], left: Mapping[str, Reason], costs: Mapping[str, Cost], limit: Cost
) -> dict[str, Reason]:
    """Who leaves because of what is to be expected; `limit` is what is known to do costs."""
    reasons: dict[str, Reason] = {}
    for rival in rivals:
        if not rival.cheaper and rival.is_idle("cannot win"):
            reasons[rival.strategy] = "cannot win"
        seen = rival.entrant.standing.seeds >= SEEDS_TO_CLOSE
        if rival.cheaper and seen and rival.is_idle("stays open"):
            reasons[rival.strategy] = "stays open"
    if _cheapest("stays open", {**left, **reasons}, costs) < limit:
        for rival in rivals:
            if rival.cheaper and rival.is_idle("changes nothing"):
                reasons.setdefault(rival.strategy, "changes nothing")
    return reasons


def _cheapest(why: Reason, reasons: Mapping[str, Reason], costs: Mapping[str, Cost]) -> Cost:
    """What the cheapest costs that left for this reason."""
    those = [costs[name] for name, reason in reasons.items() if reason == why and name in costs]
    return min(those, default=NO_COST)


def departure(best: Entrant, rival: Rival, reasons: Mapping[str, Reason]) -> Departure:
    """A rival that leaves, as it stands."""
    reason, seeds = reasons[rival.strategy], rival.entrant.standing.seeds
    chance = rival.chance(reason)
    return Departure(rival.strategy, reason, best.strategy, seeds, chance, rival.comparison)
