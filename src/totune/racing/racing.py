"""The race itself: rounds of runs, a look after each, until nothing is left to settle."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from totune.advice.standings import Arrays
from totune.racing.looks import Look, Terms, look
from totune.racing.records import Ending, Race, Round
from totune.runs.records import RunRecord

LEAST_ROUNDS = 2


@dataclass(frozen=True)
class Leg:
    """What is run in a round: on which share of the training rows, with which seeds."""

    fraction: float
    seeds: tuple[int, ...]


def find_legs(seeds: Sequence[int], fraction: float | None) -> list[Leg]:
    """One seed more per round; before, where asked for, two seeds on a part of the rows."""
    part = [] if fraction is None else [Leg(fraction, tuple(seeds[:2]))]
    return [*part, *(Leg(1.0, (seed,)) for seed in seeds)]


def find_terms(
    metric: str, tolerance: float, seeds: Sequence[int], fraction: float | None
) -> Terms:
    """The terms of a race over these legs; one seed alone cannot be tested."""
    tests = sum(len(leg.seeds) > 1 for leg in find_legs(seeds, fraction)) + len(seeds) - 1
    return Terms(metric, tolerance, len(seeds), max(1, tests))


@dataclass(frozen=True)
class Ran:
    """What a round brought.

    Attributes:
        records: all runs on its share of the training rows so far, of earlier rounds too.
        arrays: their targets and predictions, by fingerprint.
        whole: whether all runs of the round were made; a budget may leave some out.
    """

    records: Sequence[RunRecord]
    arrays: Arrays
    whole: bool = True


Perform = Callable[[Leg, Sequence[str]], Ran]


def conduct(
    strategies: Sequence[str],
    legs: Sequence[Leg],
    terms: Terms,
    perform: Perform,
    on_round: Callable[[Race], None] = lambda _: None,
) -> Race:
    """Races strategies until one is left, nothing can be settled, or the legs end.

    Args:
        strategies: by name.
        legs: the rounds there are at the most.
        terms: of the race.
        perform: runs what is missing of a leg for these strategies, and gives the runs so far.
        on_round: told the race after each round.
    """
    race = Race(terms.metric, terms.tolerance, terms.seeds, terms.alpha)
    racing = list(strategies)
    seen: dict[float, Sequence[RunRecord]] = {}  # by share of the training rows
    for leg in legs:
        ran = perform(leg, racing)
        seen[leg.fraction] = ran.records
        found = Look(None, (), race.open)
        if ran.whole:
            left = {name: gone.reason for name, gone in race.left.items()}
            part = leg.fraction < 1
            found = look(racing, left, ran.records, ran.arrays, terms, part)
        seconds = _seconds(ran.records, leg, racing)
        made = Round(leg.fraction, leg.seeds, tuple(racing), seconds, found.best, found.left)
        gone = {departure.strategy for departure in found.left}
        racing = [strategy for strategy in racing if strategy not in gone]
        race = replace(race, rounds=(*race.rounds, made), open=found.open)
        full = _full_seconds(strategies, seen, terms.seeds)
        ended = _ending(race, racing, ran.whole, leg is legs[-1])
        race = replace(race, full_seconds=full, ended=ended)
        on_round(race)
        if ended:
            break
    return race


def _ending(race: Race, racing: Sequence[str], whole: bool, last: bool) -> Ending:
    """Why the race ends, or ""; the best runs at least twice, to know how far seeds move it."""
    if not whole:
        return "budget used up"
    rounds = sum(made.fraction == 1 for made in race.rounds)
    if rounds and not set(racing) - {race.rounds[-1].best} and (rounds >= LEAST_ROUNDS or last):
        return "settled"
    return "seeds used up" if last else ""


def _cost(record: RunRecord) -> float:
    """Seconds of a run, features included; 0 for one that failed."""
    return record.costs.train_seconds + record.costs.feature_seconds if record.costs else 0.0


def _seconds(records: Sequence[RunRecord], leg: Leg, racing: Sequence[str]) -> float:
    return sum(_cost(r) for r in records if r.seed in leg.seeds and r.strategy in racing)


def _means(records: Sequence[RunRecord]) -> dict[str, float]:
    """The mean seconds of each strategy's runs."""
    costs: dict[str, list[float]] = {}
    for record in records:
        if record.costs is not None:
            costs.setdefault(record.strategy, []).append(_cost(record))
    return {strategy: fmean(found) for strategy, found in costs.items()}


def _full_seconds(
    strategies: Sequence[str], seen: Mapping[float, Sequence[RunRecord]], seeds: int
) -> float:
    """What the full study would cost.

    For a strategy that only ran on a part of the rows, its seconds there count, times what the
    others took longer on all of them.
    """
    means = [_means(records) for fraction, records in sorted(seen.items())]
    whole, part = means[-1], means[0]
    both = whole.keys() & part.keys()
    longer = sum(whole[s] for s in both) / (sum(part[s] for s in both) or math.nan)
    return seeds * sum(whole.get(s, longer * part.get(s, 0.0)) for s in strategies)
