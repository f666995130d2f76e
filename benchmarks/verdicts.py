"""Simulated studies: do intervals cover, how often is a finding wrong, what do few seeds show?

    python -m benchmarks.verdicts

Every study has 4 to 8 strategies, the last one or two of which are baselines whose seeds give the
same predictions. Rows are drawn one by one: what decides whether a run is right is normal, made of
a difficulty that all share (standard deviation 1), a strategy's view of the row (.5), a run's luck
(.5) and a shift per seed. Shifts have the standard deviations of real records, `RECORDS`, drawn
anew for each strategy. A strategy that tunes the encoder may collapse to the larger class. The
bootstrap over rows is replaced by its expectation, which accuracy has in closed form; all else is
the package's own code. Both ways of knowing seeds' variances see the same draws: `own`, each
strategy's s^2 as in Welch's test and Holm's steps (what the package did before), and `moderated`.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.common import save
from totune.advice.compare import ALPHA
from totune.metrics import METRICS
from totune.statistics import moderate, usual_variance
from totune.statistics.paired import half_width, variance_factor
from totune.statistics.selection import adjusted_level

Floats = NDArray[np.float64]

# Standard deviations over seeds in points, of docs/results.md and docs/examples: study, test rows,
# seeds, and a value per strategy whose seeds differ.
RECORDS: list[tuple[str, int, int, list[float]]] = [
    ("films", 853, 3, [0.5, 0.6, 1.0]),
    ("disaster tweets", 761, 10, [0.8, 0.6, 0.8, 0.2, 0.6]),
    ("SICK-R", 4927, 2, [1.4, 0.5, 0.1, 0.2, 0.6, 0.5, 0.5, 1.0, 0.8]),
    ("MRPC", 1725, 2, [0.9, 0.1, 0.5, 1.9, 2.2, 0.6, 1.8]),
    ("CoLA", 1043, 2, [1.1, 1.0, 2.6, 0.8, 1.7, 2.6, 3.0]),
    ("Yahoo", 418, 2, [0.5, 2.5, 1.5, 0.2, 0.7]),
    ("QQP", 10000, 2, [0.4, 1.3, 0.2, 0.8, 0.1]),
    ("SICK-E", 4927, 3, [0.3, 0.2, 0.3, 0.4, 1.3]),
    ("films, small encoders", 853, 5, [0.5, 1.1, 1.3, 1.8, 1.5, 0.6, 0.7, 1.4]),
    ("MRPC, small encoders", 1725, 5, [0.3, 1.0, 0.5, 0.8]),
    ("films, trained further", 853, 2, [0.1, 0.2, 0.4, 1.0]),
    ("films, 1,024 rows", 853, 2, [0.5, 0.9, 0.2]),
    ("400 tweets", 800, 5, [0.5, 0.7, 0.6, 0.3]),
    ("400 tweets, searched", 800, 5, [0.8, 0.4, 0.1, 1.3]),
    ("400 of MRPC", 800, 5, [0.5, 0.9]),
    ("400 of MRPC, searched", 800, 5, [0.7, 0.1, 0.5]),
]
SDS = np.array([sd for *_, found in RECORDS for sd in found]) / 100

ACCURACY = 0.85
LARGER_CLASS = 0.6  # what a collapsed run scores
COLLAPSES = (0.05, 0.1)  # the probability per run lies between these
TOLERANCE = 0.005
SEEDS = (2, 3, 5)
ROWS = (50, 200, 1000, 5000)
_CHUNK = 4_000_000  # right answers held at once


@dataclass(frozen=True)
class Case:
    """What studies are drawn from.

    Attributes:
        gap: how far all others are behind the first strategy.
        collapsing: share of the strategies with seeds whose runs may collapse.
        same_means: whether these score more otherwise, so that all means come out as without.
        sds: standard deviations of shifts, one per strategy; drawn from the records if None.
        analyses: tests of a race that share out the error; 1 for a study.
        folds: of a cross-validation, whose repetitions `seeds` counts; 1 of one test split.
    """

    name: str
    seeds: int
    rows: int
    gap: float = 0.0
    tolerance: float = TOLERANCE
    collapsing: float = 0.0
    same_means: bool = False
    sds: tuple[float, ...] | None = None
    analyses: int = 1
    folds: int = 1


@dataclass(frozen=True)
class Drawn:
    """Studies of as many strategies.

    Attributes:
        truth: expected accuracies [M, K] over all runs.
        usual: expected accuracies [M, K] of runs that do not collapse.
        scores: of runs [M, K, S].
        rows: variance over rows of the difference of two strategies [M, K, K].
        fixed: which strategies have seeds that change nothing [K].
        runs: of a cross-validation the variances of single runs' scores [M, K]; else None.
    """

    truth: Floats
    usual: Floats
    scores: Floats
    rows: Floats
    fixed: NDArray[np.bool_]
    runs: Floats | None = None


def draw(case: Case, studies: int, strategies: int, rng: np.random.Generator) -> Drawn:
    """Draws `studies` of `strategies`, the first of which is the best."""
    k, n_fixed = strategies, 1 if strategies < 6 else 2
    fixed = np.arange(k) >= k - n_fixed
    sds = rng.choice(SDS, size=(studies, k)) if case.sds is None else np.array(case.sds)[:k]
    sds = np.where(fixed, 0.0, np.broadcast_to(sds, (studies, k)))
    tuned = ~fixed & (np.arange(k) < case.collapsing * (k - n_fixed))
    collapse = np.where(tuned, rng.uniform(*COLLAPSES, size=(studies, k)), 0.0)
    usual = np.where(np.arange(k) == 0, ACCURACY, ACCURACY - case.gap) * np.ones((studies, 1))
    if case.same_means:
        usual = (usual - collapse * LARGER_CLASS) / (1 - collapse)
    scores, rows = [], []
    for m in range(studies):
        right = _right(case, usual[m], sds[m], fixed, collapse[m], rng)
        scores.append(right.mean(axis=-1))
        rows.append(row_variances(right))
    truth = (1 - collapse) * usual + collapse * LARGER_CLASS
    return Drawn(truth, usual, np.array(scores), np.array(rows), fixed)


def _right(
    case: Case,
    accuracies: Floats,
    sds: Floats,
    fixed: NDArray[np.bool_],
    collapse: Floats,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Which answers of one study are right: [K, S, N]."""
    k, spread = len(accuracies), math.sqrt(1.5)
    level = stats.norm.ppf(accuracies)
    shift = sds * spread / stats.norm.pdf(level)  # so that scores have this standard deviation
    mean = level * np.hypot(spread, shift)
    rows = rng.standard_normal((k + 1, case.rows), dtype=np.float32)
    base = rows[0] + 0.5 * rows[1:] + mean[:, None].astype(np.float32)  # [K, N]
    luck = rng.standard_normal((k, case.seeds, case.rows), dtype=np.float32)
    luck[fixed] = luck[fixed, :1]
    moved = (shift[:, None] * rng.standard_normal((k, case.seeds))).astype(np.float32)
    right = base[:, None] + 0.5 * luck + moved[..., None] > 0
    lost = rng.random((k, case.seeds)) < collapse[:, None]
    right[lost] = rng.random(case.rows) < LARGER_CLASS
    return np.asarray(right)


def row_variances(right: NDArray[Any]) -> Floats:
    """What `paired_bootstrap` expects over resamples, for every two of K strategies: [K, K].

    Args:
        right: [K, S, N].
    """
    _, seeds, n = right.shape
    means = right.mean(axis=1)  # [K, N]
    apart = right - means[:, None]
    single = apart.var(axis=-1).sum(axis=-1) / (seeds - 1) / seeds / n  # [K]
    covariance = np.cov(means, ddof=0)
    own = np.diag(covariance)
    between = (own[:, None] + own[None] - 2 * covariance) / n
    both = np.maximum(0.0, between - single[:, None] - single[None])
    return np.asarray(both * n / (n - 1) + 1 / n**2)


def variances(case: Case, drawn: Drawn, how: str) -> tuple[Floats, ...]:
    """Variances of single runs [M, K] and their degrees of freedom."""
    fixed, n = drawn.fixed, drawn.scores.shape[-1]
    s2, df, rows = drawn.scores.var(axis=-1, ddof=1), n - 1, float(case.rows)
    if drawn.runs is not None:
        s2, df, rows = drawn.runs, case.folds * (n - 1), case.rows / case.folds
    if how == "own":
        return np.where(fixed, 0.0, s2), np.where(fixed, math.inf, n - 1) * np.ones_like(s2)
    found, dfs = np.zeros_like(s2), np.full_like(s2, math.inf)
    found[:, ~fixed], dfs[:, ~fixed] = moderate(
        s2[:, ~fixed], [df] * int((~fixed).sum()), usual_variance(METRICS["accuracy"], rows)
    )
    return found, dfs


@dataclass(frozen=True)
class Found:
    """The best of each of M studies against K strategies; nan where a strategy is the best itself.

    Attributes:
        gap: the true difference [M, K].
        low: lower end of its simultaneous interval [M, K].
        high: upper end.
        single: whether 95% intervals of the first strategy hold the truth [M, K - 1].
        worse: found credibly worse [M, K].
        good: found as good [M, K].
    """

    gap: Floats
    low: Floats
    high: Floats
    single: Floats
    worse: NDArray[np.bool_]
    good: NDArray[np.bool_]


def judge(
    case: Case, drawn: Drawn, truth: Floats, how: str, inside: NDArray[np.bool_] | None = None
) -> Found:
    """Compares all with the best of each study, as `totune.advice.compare` does.

    Args:
        case: what was drawn.
        drawn: the studies.
        truth: the scores [M, K] that intervals should cover.
        how: seeds' variances are known.
        inside: who is still in the race [M, K].
    """
    means = drawn.scores.mean(axis=-1)  # [M, K]
    if inside is not None:
        means = np.where(inside, means, -np.inf)
    at, best = np.arange(len(means)), means.argmax(axis=-1)
    own, dfs = variances(case, drawn, how)
    parts, rows = own * variance_factor(case.seeds, case.folds), drawn.rows[at, best]  # [M, K]
    first, first_df = parts[at, best][:, None], dfs[at, best][:, None]
    both = parts + first
    df = summed_df(first, first_df, parts, dfs, how)
    difference = np.where(np.isinf(means), 0.0, means[at, best][:, None] - means)
    no_test = np.arange(means.shape[1]) == best[:, None]
    if inside is not None:
        no_test |= ~inside

    whole_df = (rows + both) / (rows / (case.rows - 1) + both / df)
    rivals, alpha = (~no_test).sum(axis=-1), ALPHA / case.analyses
    spread = rows, case.rows - 1, both, df
    p = np.where(no_test, 1.0, p_values(np.abs(difference - case.tolerance), *spread))
    levels, is_decided = take_steps(p, whole_df, rivals, alpha, how)
    if how == "moderated":
        levels = study_levels(whole_df, rivals, alpha)
    width = np.where(no_test, np.nan, half_width(levels, *spread))
    is_decided &= ~no_test
    gap = np.where(no_test, np.nan, truth[at, best][:, None] - truth)
    single = covers(case, drawn, truth, own, dfs, how).astype(np.float64)
    low, high = np.maximum(-1.0, difference - width), np.minimum(1.0, difference + width)
    worse = is_decided & (difference > case.tolerance)
    good = is_decided & ~worse
    low = np.where(worse, np.maximum(low, case.tolerance), low)
    high = np.where(good, np.minimum(high, case.tolerance), high)
    return Found(gap, low, high, single, worse, good)


def covers(
    case: Case, drawn: Drawn, truth: Floats, own: Floats, dfs: Floats, how: str
) -> NDArray[np.bool_]:
    """Whether 95% intervals of the first strategy against each other hold the truth [M, K - 1]."""
    means = drawn.scores.mean(axis=-1)
    error = (means[:, :1] - means[:, 1:]) - (truth[:, :1] - truth[:, 1:])
    return np.asarray(np.abs(error) <= reach_of_first(case, drawn, own, dfs, how))


def reach_of_first(case: Case, drawn: Drawn, own: Floats, dfs: Floats, how: str) -> Floats:
    """Half of the 95% intervals of the first strategy against each other [M, K - 1]."""
    parts = own * variance_factor(case.seeds, case.folds)
    first, first_df, rest = parts[:, :1], dfs[:, :1], parts[:, 1:]
    df = summed_df(first, first_df, rest, dfs[:, 1:], how)
    return half_width(0.05, drawn.rows[:, 0, 1:], case.rows - 1, first + rest, df)


def summed_df(a: Floats, a_df: Floats, b: Floats, b_df: Floats, how: str) -> Floats:
    """Degrees of freedom of a + b, as `totune.statistics.paired.Spread` counts them."""
    both = np.where(a + b > 0, a + b, 1.0)
    if how == "own":
        squares = (a**2 / a_df + b**2 / b_df) / both**2
        return np.where(squares > 0, 1 / np.where(squares > 0, squares, 1.0), math.inf)
    shares = np.where(a > 0, a, 0) * np.where(a > 0, a_df, 0.0)
    shares = shares + b * np.where(b > 0, b_df, 0.0)
    return np.where(a + b > 0, shares / both, math.inf)


def study_levels(dfs: Floats, rivals: NDArray[np.int64], alpha: float) -> Floats:
    """`adjusted_level` for dfs [M, ...] and rivals [M], from tables over log df."""
    levels, rivals = np.full_like(dfs, alpha), rivals.reshape(-1, *[1] * (dfs.ndim - 1))
    logs = np.linspace(math.log(0.8), math.log(1e4), 40)
    for count in np.unique(rivals[rivals > 1]):
        table = [adjusted_level(alpha, int(count), math.exp(log)) for log in logs]
        levels = np.where(rivals == count, np.interp(np.log(dfs), logs, table), levels)
    return levels


def take_steps(
    p: Floats, dfs: Floats, rivals: NDArray[np.int64], alpha: float, how: str
) -> tuple[Floats, NDArray[np.bool_]]:
    """The levels [M, K] of steps, Holm's for `own`, and which tests count.

    What is no test has a p of 1 and comes last. After the first failure no test counts, and all
    share that step.
    """
    order, levels, counts = np.argsort(p, axis=-1), np.ones_like(p), np.zeros(p.shape, dtype=bool)
    at, left = np.arange(len(p)), np.maximum(rivals, 1)
    failed = np.zeros(len(p), dtype=bool)
    for rank in range(p.shape[-1] - 1):
        one = order[:, rank]
        level = alpha / left if how == "own" else study_levels(dfs[at, one], left, alpha)
        failed |= p[at, one] > level
        levels[at, one], counts[at, one] = level, ~failed
        left = np.maximum(left - ~failed, 1)
    return levels, counts


def p_values(gap: Floats, *spread: Any) -> Floats:
    """Where intervals reach exactly `gap` far: bisection on log p."""
    low, high = np.full_like(gap, -60.0), np.zeros_like(gap)
    for _ in range(30):
        middle = (low + high) / 2
        wide = half_width(np.exp(middle), *spread) > gap
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return np.exp((low + high) / 2)


def chunks(case: Case, studies: int, seed: int) -> Iterator[Drawn]:
    """Studies of 4, 5, 6, 7 and 8 strategies in turn."""
    rng = np.random.default_rng(seed)
    for strategies in (4, 5, 6, 7, 8):
        yield draw(case, studies // 5, strategies, rng)


def summarise(case: Case, found: Sequence[Found]) -> dict[str, float | None]:
    """Rates over studies; None where no study has what is counted."""
    limit = case.tolerance + 1e-9
    per_study: dict[str, list[NDArray[Any]]] = {}
    for each in found:
        inside = (each.low <= each.gap) & (each.gap <= each.high) | np.isnan(each.gap)
        rates = {
            "all intervals cover": inside.all(axis=-1),
            "an interval covers": each.single.mean(axis=-1),
            "wrongly worse": (each.worse & (each.gap <= limit)).any(axis=-1),
            "wrongly as good": (each.good & (each.gap > limit)).any(axis=-1),
            "rightly worse": _share(each.worse, each.gap > limit),
            "rightly as good": _share(each.good, each.gap <= limit),
            "half-width": np.nanmean((each.high - each.low) / 2, axis=-1),
        }
        for name, values in rates.items():
            per_study.setdefault(name, []).append(values)
    whole = {name: np.concatenate(values) for name, values in per_study.items()}
    known = {name: values[~np.isnan(values)] for name, values in whole.items()}
    return {name: float(v.mean()) if len(v) else None for name, v in known.items()}


def _share(found: NDArray[np.bool_], of: NDArray[np.bool_]) -> Floats:
    """The share of `of` that was found, per study; nan where there is none."""
    count = of.sum(axis=-1)
    return np.where(count > 0, (found & of).sum(axis=-1) / np.maximum(count, 1), np.nan)


def run(case: Case, studies: int, seed: int = 0) -> dict[str, Any]:
    """The rates of one case, by both ways of knowing seeds' variances."""
    found: dict[str, dict[str, float | None]] = {}
    drawn = list(chunks(case, studies, seed))
    for how in ("own", "moderated"):
        found[how] = summarise(case, [judge(case, each, each.truth, how) for each in drawn])
    if case.collapsing:
        usual = [judge(case, each, each.usual, "moderated") for each in drawn]
        found["moderated, of runs that do not collapse"] = summarise(case, usual)
    return {"case": asdict(case), "studies": studies, **found}


def race(case: Case, studies: int, seed: int = 0) -> dict[str, Any]:
    """Races in which all that is left is tested after every seed from the second on.

    What is found leaves, and what is found wrongly is counted, over all tests of a race. The
    variance over rows is that of all seeds at once.
    """
    drawn = list(chunks(case, studies, seed))
    found: dict[str, dict[str, float]] = {}
    for how in ("own", "moderated"):
        raced = np.concatenate([_raced(case, each, how) for each in drawn])
        names = ("wrongly worse", "wrongly as good", "found anything")
        found[how] = dict(zip(names, raced.mean(axis=0).tolist(), strict=True))
    return {"case": asdict(case), "studies": studies, **found}


def _raced(case: Case, drawn: Drawn, how: str) -> NDArray[np.bool_]:
    """Whether each race found something worse wrongly, as good wrongly, anything: [M, 3]."""
    m, k, seeds = drawn.scores.shape
    inside, found = np.ones((m, k), dtype=bool), np.zeros((m, 3), dtype=bool)
    limit = case.tolerance + 1e-9
    for n in range(2, seeds + 1):
        part = replace(drawn, scores=drawn.scores[..., :n])
        one = judge(replace(case, seeds=n), part, drawn.truth, how, inside)
        wrong = one.worse & (one.gap <= limit), one.good & (one.gap > limit)
        gone = one.worse | one.good
        found |= np.stack([each.any(axis=-1) for each in (*wrong, gone)], axis=-1)
        inside &= ~gone
    return found


def cases() -> Iterator[Case]:
    """Everything that is simulated of studies."""
    for seeds in SEEDS:
        for rows in ROWS:
            yield Case("all equal, tolerance 0", seeds, rows, tolerance=0.0)
            yield Case("all equal", seeds, rows)
            yield Case("behind by the tolerance", seeds, rows, gap=TOLERANCE)
            yield Case("just further", seeds, rows, gap=0.0301, tolerance=0.03)
            yield Case("half may collapse", seeds, rows, collapsing=0.5)
            yield Case("so, with equal means", seeds, rows, collapsing=0.5, same_means=True)
            for gap in (0.02, 0.05, 0.1):
                yield Case(f"behind by {100 * gap:g} points", seeds, rows, gap=gap)


def races() -> Iterator[Case]:
    """And of races of five seeds, which test four times."""
    one = (0.03, *[0.003] * 7)
    for rows in (200, 1000):
        yield Case("all equal, tolerance 0", 5, rows, tolerance=0.0, analyses=4)
        yield Case("all equal", 5, rows, analyses=4)
        yield Case("one of 3 points, the others of .3", 5, rows, sds=one, analyses=4)
        yield Case("behind by the tolerance", 5, rows, gap=TOLERANCE, analyses=4)
        yield Case("just further", 5, rows, gap=0.0301, tolerance=0.03, analyses=4)
        yield Case("half may collapse", 5, rows, collapsing=0.5, analyses=4)
        yield Case("so, with equal means", 5, rows, collapsing=0.5, same_means=True, analyses=4)


def main(studies: int = 500) -> None:
    """Simulates all cases and writes results."""
    results: dict[str, list[dict[str, Any]]] = {"studies": [], "races": []}
    for kind, wanted, simulate in (("studies", cases(), run), ("races", races(), race)):
        for case in wanted:
            results[kind].append(simulate(case, studies))
            for how, rates in list(results[kind][-1].items())[2:]:
                known = {name: rate for name, rate in rates.items() if rate is not None}
                shown = ", ".join(f"{name} {100 * rate:.1f}" for name, rate in known.items())
                print(f"{case.name} ({case.seeds} seeds, {case.rows} rows), {how}: {shown}")
    print(save("verdicts", results))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=500, help="simulated studies of each kind")
    main(parser.parse_args().studies)
