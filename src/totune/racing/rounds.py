"""The rounds of a race, with an interim analysis after each, until nothing is left to settle."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from totune.advice.summary import Arrays, run_seconds
from totune.racing.interim import Design, InterimAnalysis, interim_analysis
from totune.racing.records import Ending, Race, Round
from totune.runs.records import RunRecord

LEAST_ROUNDS = 2


def plan_rounds(seeds: Sequence[int], fraction: float | None) -> list[Round]:
    """One more seed per round; before them, if asked for, two seeds on a part of the rows."""
    part = [] if fraction is None else [Round(fraction, tuple(seeds[:2]))]
    return [*part, *(Round(1.0, (seed,)) for seed in seeds)]


def make_design(
    metric: str, tolerance: float, seeds: Sequence[int], fraction: float | None
) -> Design:
    """The design of a race over these rounds; one seed alone cannot be tested."""
    rounds = plan_rounds(seeds, fraction)
    analyses = sum(len(each.seeds) > 1 for each in rounds) + len(seeds) - 1
    return Design(metric, tolerance, len(seeds), max(1, analyses))


@dataclass(frozen=True)
class RoundRuns:
    """The runs after a round.

    Attributes:
        records: all runs on its share of the training rows so far, of earlier rounds too.
        arrays: their targets and predictions, by fingerprint.
        complete: whether all runs of the round were made; a budget may leave some out.
    """

    records: Sequence[RunRecord]
    arrays: Arrays
    complete: bool = True


Perform = Callable[[Round, Sequence[str]], RoundRuns]


def run_rounds(
    strategies: Sequence[str],
    rounds: Sequence[Round],
    design: Design,
    perform: Perform,
    on_round: Callable[[Race], None] = lambda _: None,
) -> Race:
    """Races strategies until one is left, nothing can be settled, or the rounds end.

    Args:
        strategies: names of all strategies.
        rounds: the planned rounds.
        design: the design of the race.
        perform: does the missing runs of a round for these strategies and gives the runs so far.
        on_round: callback that receives the race after each round.
    """
    race = Race(design.metric, design.tolerance, design.seeds, design.alpha)
    racing = list(strategies)
    known: dict[float, Sequence[RunRecord]] = {}  # by share of the training rows
    for planned in rounds:
        runs = perform(planned, racing)
        known[planned.fraction] = runs.records
        found = InterimAnalysis(None, (), race.open)
        if runs.complete:
            earlier = {name: gone.reason for name, gone in race.eliminated.items()}
            part = planned.fraction < 1
            found = interim_analysis(racing, earlier, runs.records, runs.arrays, design, part)
        finished = replace(
            planned,
            strategies=tuple(racing),
            seconds=_seconds(runs.records, planned, racing),
            best=found.best,
            eliminated=found.eliminated,
        )
        gone = {elimination.strategy for elimination in found.eliminated}
        racing = [strategy for strategy in racing if strategy not in gone]
        race = replace(race, rounds=(*race.rounds, finished), open=found.open)
        full = _full_seconds(strategies, known, design.seeds)
        ended = _ending(race, racing, runs.complete, planned is rounds[-1])
        race = replace(race, full_seconds=full, ended=ended)
        on_round(race)
        if ended:
            break
    return race


def _ending(race: Race, racing: Sequence[str], complete: bool, last: bool) -> Ending:
    """Why the race ends, or ""; the best runs at least twice, to know how far seeds move it."""
    if not complete:
        return "budget used up"
    rounds = sum(each.fraction == 1 for each in race.rounds)
    if rounds and not set(racing) - {race.rounds[-1].best} and (rounds >= LEAST_ROUNDS or last):
        return "settled"
    return "seeds used up" if last else ""


def _cost(record: RunRecord) -> float:
    """The seconds of a run, or of all folds of a repetition; 0 for one that failed."""
    return run_seconds(record.costs) * max(1, len(record.parts)) if record.costs else 0.0


def _seconds(records: Sequence[RunRecord], planned: Round, racing: Sequence[str]) -> float:
    return sum(_cost(r) for r in records if r.seed in planned.seeds and r.strategy in racing)


def _means(records: Sequence[RunRecord]) -> dict[str, float]:
    """The mean seconds of each strategy's runs."""
    costs: dict[str, list[float]] = {}
    for record in records:
        if record.costs is not None:
            costs.setdefault(record.strategy, []).append(_cost(record))
    return {strategy: fmean(found) for strategy, found in costs.items()}


def _full_seconds(
    strategies: Sequence[str], known: Mapping[float, Sequence[RunRecord]], seeds: int
) -> float:
    """The estimated cost of the full study.

    For a strategy that ran only on a part of the rows, its seconds there count, times the ratio by
    which the others took longer on all of them.
    """
    means = [_means(records) for fraction, records in sorted(known.items())]
    whole, part = means[-1], means[0]
    both = whole.keys() & part.keys()
    longer = sum(whole[s] for s in both) / (sum(part[s] for s in both) or math.nan)
    return seeds * sum(whole.get(s, longer * part.get(s, 0.0)) for s in strategies)
