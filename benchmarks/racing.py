"""How often a race comes to the verdict of the full study, and at what share of its cost.

Finished studies are raced again on their records: a run that the race would have made is looked
up, with its predictions and seconds, so nothing is trained. Every repetition has seeds of its own.
The pick of a study is what it recommends, or names for now while it is undecided. A pick of the
race is equal if the full study does not find it credibly worse than its own pick by more than the
tolerance. For comparison: a study of the first two seeds alone, which is 40% of five.

Simulated studies, where the truth is known, count how often a race finds anything wrong: strategies
within the tolerance of the best found credibly worse, or others found to keep up.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest import mock

import numpy as np
from scipy import stats

from benchmarks.common import save
from totune.advice import Advice, advise
from totune.advice.compare import compare
from totune.advice.summary import find_test_set, score_strategies
from totune.metrics import METRICS
from totune.racing import rules
from totune.racing.interim import Design
from totune.racing.records import Race, Round
from totune.racing.rounds import RoundRuns, plan_rounds, run_rounds
from totune.runs.records import Costs, RunRecord
from totune.runs.store import Store

SEEDS = 5
PART = 0.25
ROWS = 400
TOLERANCE = 0.005


@dataclass(frozen=True)
class Finished:
    """Runs that are there: records, and targets and predictions by fingerprint."""

    records: Sequence[RunRecord]
    arrays: Mapping[str, Mapping[str, Any]]
    metric: str = "accuracy"
    tolerance: float = TOLERANCE

    def of(self, seeds: Sequence[int]) -> "Finished":
        return replace(self, records=[r for r in self.records if r.seed in seeds])

    def advise(self, race: Race | None = None) -> Advice:
        raced = None if race is None else race.findings()
        arrays = {r.fingerprint: self.arrays[r.fingerprint] for r in self.records}
        return advise(self.records, arrays, self.metric, self.tolerance, raced=raced)


def read(folder: Path) -> Finished:
    """The finished runs of a study's folder."""
    store = Store(folder)
    info = store.info()
    records = [r for r in store.records() if r.status == "finished"]
    arrays = {record.fingerprint: store.predictions(record) for record in records}
    return Finished(records, arrays, info.metric, float(info.settings["tolerance"]))


def replay(whole: Finished, seeds: Sequence[int], part: Finished | None) -> tuple[Race, Finished]:
    """Races a finished study; also gives the runs on all training rows that it made."""
    rounds = plan_rounds(seeds, None if part is None else PART)
    made: dict[float, list[RunRecord]] = {}

    def perform(planned: Round, racing: Sequence[str]) -> RoundRuns:
        source = whole if planned.fraction == 1 else part
        assert source is not None
        so_far = made.setdefault(planned.fraction, [])
        so_far += [r for r in source.records if r.strategy in racing and r.seed in planned.seeds]
        return RoundRuns(so_far, {r.fingerprint: source.arrays[r.fingerprint] for r in so_far})

    names = list(dict.fromkeys(record.strategy for record in whole.records))
    design = Design(whole.metric, whole.tolerance, len(seeds), len(rounds))
    race = run_rounds(names, rounds, design, perform)
    return race, replace(whole, records=made[1.0])


@dataclass(frozen=True)
class Outcome:
    """A race beside its full study.

    Attributes:
        pick: what the full study recommends, or names for now.
        same: whether verdict and pick are the same.
        equal: whether the pick is the same, or statistically equal in the full study.
        behind: how much less the pick scores there, in the metric's own scale.
        cost_ratio: cost of the race's pick per run, over that of the full study's pick.
        share: of the full study's cost.
        two_seeds_equal: `equal` for a study of the first two seeds alone.
    """

    study: str
    seeds: tuple[int, ...]
    verdict: str
    pick: str | None
    raced_verdict: str
    raced_pick: str | None
    same: bool
    equal: bool
    behind: float
    cost_ratio: float
    share: float
    rounds: int
    two_seeds_equal: bool


def outcome(name: str, whole: Finished, seeds: Sequence[int], part: Finished | None) -> Outcome:
    """Races one repetition."""
    full = whole.of(seeds)
    race, made = replay(full, seeds, part)
    asked, raced = full.advise(), made.advise(race)
    picks = asked.provisional, raced.provisional
    summaries = {each.strategy: each.to_json() for each in asked.standings}
    mean, seconds = ([summaries[str(p)][f] for p in picks] for f in ("mean", "seconds"))
    return Outcome(
        study=name,
        seeds=tuple(seeds),
        verdict=asked.verdict,
        pick=picks[0],
        raced_verdict=raced.verdict,
        raced_pick=picks[1],
        same=(asked.verdict, picks[0]) == (raced.verdict, picks[1]),
        equal=is_equal(full, picks[0], picks[1]),
        behind=METRICS[whole.metric].sign * (mean[0] - mean[1]),
        cost_ratio=seconds[1] / seconds[0],
        share=race.share,
        rounds=len(race.rounds),
        two_seeds_equal=is_equal(full, picks[0], full.of(seeds[:2]).advise().provisional),
    )


def is_equal(full: Finished, first: str | None, second: str | None) -> bool:
    """Whether a study does not find the second credibly worse than the first."""
    if first == second:
        return True
    metric = METRICS[full.metric]
    test = find_test_set(full.arrays)
    every = score_strategies(full.records, full.arrays, test, metric)
    a, b = (next(each for each in every if each.strategy == name) for name in (first, second))
    (found,) = compare(a, [b], test, metric, full.tolerance)
    return found.verdict != "credibly worse"


def repetitions(whole: Finished, part: Finished | None) -> list[list[int]]:
    """Disjoint sets of seeds for which every strategy has its runs, in a part two of each."""
    names = {record.strategy for record in whole.records}
    have = {(record.strategy, record.seed) for record in whole.records}
    known = {seed for _, seed in have if all((name, seed) in have for name in names)}
    if part is None:
        ready, two = sorted(known), []
    else:
        small = {(record.strategy, record.seed) for record in part.records}
        two = sorted({seed for _, seed in small if all((n, seed) in small for n in names)})
        ready = sorted(known)
    sets = [ready[at : at + SEEDS] for at in range(0, len(ready) - SEEDS + 1, SEEDS)]
    return [seeds for seeds in sets if part is None or set(seeds[:2]) <= set(two)]


@dataclass(frozen=True)
class Truth:
    """What simulated studies are drawn from: accuracies, and standard deviations of seeds."""

    accuracies: Sequence[float]
    sds: Sequence[float]
    tolerance: float = TOLERANCE


TRUTHS = {
    "8 equal, 1 point": Truth([0.85] * 8, [0.01] * 8),
    "8 equal, one of 3 points": Truth([0.85] * 8, [0.03] + [0.003] * 7),
    "8 equal, 0 to 3 points": Truth([0.85] * 8, [0, 0, 0.003, 0.005, 0.01, 0.01, 0.02, 0.03]),
    "4 equal, one of 3 points": Truth([0.85] * 4, [0.03] + [0.002] * 3),
    "best ahead by the tolerance": Truth([0.85] + [0.845] * 7, [0.01] * 8),
    "one of 3 points behind by it": Truth([0.85] + [0.845] * 7, [0.003] * 6 + [0.03, 0.003]),
    "best ahead by just over 3 points": Truth([0.8601] + [0.83] * 5, [0.005] * 6, 0.03),
    "so, and one of 2 points": Truth([0.8601] + [0.83] * 5, [0.003] * 5 + [0.02], 0.03),
    "staggered by a point": Truth([0.85 - 0.01 * k for k in range(6)], [0.01] * 6),
}


def draw(truth: Truth, rows: int, rng: np.random.Generator) -> Finished:
    """A study of five seeds: rows are hard for all, harder for some, and luck is a run's own.

    What decides is normal: difficulty 1, a strategy's own view of a row 0.5, a run's luck 0.5;
    a seed moves all rows at once, by what makes the score's standard deviation.
    """
    order = rng.permutation(len(truth.accuracies))
    hard, targets = rng.normal(size=rows), rng.integers(0, 2, rows)
    records, arrays = [], {}
    for place, at in enumerate(order):
        accuracy, sd = truth.accuracies[at], truth.sds[at]
        spread = math.sqrt(1.5)
        shift = sd * spread / stats.norm.pdf(stats.norm.ppf(accuracy))
        mean = stats.norm.ppf(accuracy) * math.hypot(spread, shift)
        view, luck = 0.5 * rng.normal(size=(2, rows))
        for seed in range(SEEDS):
            luck = 0.5 * rng.normal(size=rows) if sd else luck
            right = mean + shift * rng.normal() + hard + view + luck > 0
            record = made_up(f"s{at}", seed, 10.0 * 2**place)
            records.append(record)
            predictions = np.where(right, targets, 1 - targets)
            arrays[record.fingerprint] = {"targets": targets, "predictions": predictions}
    return Finished(records, arrays, tolerance=truth.tolerance)


def made_up(strategy: str, seed: int, seconds: float) -> RunRecord:
    """The record of a run that nobody made."""
    costs = Costs(1, 1, seconds, 0.0, 1.0, 1, 1, 1.0)
    mark = f"{strategy}/{seed}"
    return RunRecord(mark, strategy, seed, "finished", {}, {}, "fp32", costs=costs)


def simulate(name: str, rows: int, draws: int, patient: bool = False) -> dict[str, Any]:
    """Races simulated studies; the shares in which something was found wrongly.

    Args:
        name: of the truth.
        rows: of the test set.
        draws: how many studies.
        patient: whether no strategy leaves for futility, so that everything is tested as often as
            possible.
    """
    truth, rng = TRUTHS[name], np.random.default_rng(0)
    best = max(truth.accuracies)
    behind = {f"s{at}": best - accuracy for at, accuracy in enumerate(truth.accuracies)}
    limit = truth.tolerance + 1e-9
    wrong: dict[str, int] = {"worse": 0, "keeps up": 0}
    found_any, shares = 0, []
    for _ in range(draws):
        with mock.patch.object(rules, "FUTILITY", 0.0 if patient else rules.FUTILITY):
            race, _ = replay(draw(truth, rows, rng), range(SEEDS), None)
        found: dict[str, list[float]] = {reason: [] for reason in wrong}
        for gone in race.eliminated.values():
            if gone.reason in found:
                found[gone.reason].append(behind[gone.strategy])
        wrong["worse"] += any(gap <= limit for gap in found["worse"])
        wrong["keeps up"] += any(gap > limit for gap in found["keeps up"])
        found_any += any(found.values())
        shares.append(race.share)
    rates = {f"wrongly {reason}": count / draws for reason, count in wrong.items()}
    settings = {"truth": name, "rows": rows, "draws": draws, "patient": patient}
    return {**settings, **rates, "found something": found_any / draws, "share": fmean(shares)}


def main(folders: Sequence[Path] = (), draws: int = 10) -> None:
    """Races studies, and simulated ones; writes results."""
    simulated = [
        simulate(name, ROWS, draws, patient) for patient in (True, False) for name in TRUTHS
    ]
    for row in simulated:
        print(
            f"{row['truth']:32} {'patient' if row['patient'] else '':8} wrongly worse "
            f"{row['wrongly worse']:.1%}, keeps up {row['wrongly keeps up']:.1%}, "
            f"anything found in {row['found something']:.0%}, cost {row['share']:.0%}"
        )
    outcomes = []
    for folder in folders:
        whole = read(folder)
        small = folder.with_name(f"{folder.name}-quarter")
        for part in (None, read(small)) if small.is_dir() else (None,):
            name = folder.name if part is None else f"{folder.name}, quarter first"
            for seeds in repetitions(whole, part):
                outcomes.append(outcome(name, whole, seeds, part))
                print(outcomes[-1])
    figures = {"simulated": simulated, "raced": [asdict(each) for each in outcomes]}
    print(save("racing", figures))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="finished studies of several seeds")
    parser.add_argument("--draws", type=int, default=10, help="simulated studies of each kind")
    given = parser.parse_args()
    main(given.folders, given.draws)
