"""A race round by round: who ran, what it cost, who left and why."""

import math

from totune.advice.wording import amount
from totune.metrics import get_metric
from totune.racing.records import Elimination, Race
from totune.report import formatting
from totune.report.document import Section
from totune.report.table import Cell, Column, Row, Table, number, word

TITLE = "Race"


def race_section(race: Race | None) -> Section:
    """The race of a study; an empty section where there was none."""
    if race is None or not race.rounds:
        return Section(TITLE)
    left = race.eliminated.values()
    metric = get_metric(race.metric)
    reasons = tuple(gone.describe(metric, race.tolerance) for gone in left)
    tables = (_rounds(race), _left(race)) if left else (_rounds(race),)
    return Section(TITLE, (_words(race), _cost(race), *reasons), tables=tables)


def _words(race: Race) -> str:
    limit = amount(race.tolerance, get_metric(race.metric))
    error = f"{race.alpha:.0%}"
    part = (
        " On a part of the training rows what is credibly worse than something cheaper leaves, if "
        "it has learnt something there; this supposes that more rows do not turn the two around."
        if any(made.fraction < 1 for made in race.rounds)
        else ""
    )
    return (
        "Strategies ran in rounds, and left when they were credibly worse than the best by more "
        f"than {limit}, when they cost more than one that keeps up, when they did not beat a "
        "constant answer, or when the seeds that were left would probably not have settled them. "
        "One that is possibly under-trained stays unless it keeps up. All that was found over all "
        f"interim analyses is right together with {1 - race.alpha:.0%} confidence: the error of "
        f"{error} is shared out over analyses (Bonferroni) and strategies (by the studentized "
        "range, since the best is picked by the same scores), and how far seeds move a score is "
        f"estimated from all strategies together.{part} An eliminated strategy is given as it "
        "stood then, against the best of then; one that left open was not found worse."
    )


def _cost(race: Race) -> str:
    why = {
        "settled": "It ended because nothing was left that more seeds would settle",
        "seeds used up": "It went over all the seeds",
        "budget used up": "It ended because the budget was used up",
        "": "It is not over yet",
    }[race.ended]
    if not math.isfinite(race.share):
        return f"{why}."
    return (
        f"{why}, at {formatting.duration(race.seconds)}, "
        f"{formatting.share(race.seconds, race.full_seconds)} of what all strategies over "
        f"{race.seeds} seeds would have cost ({formatting.duration(race.full_seconds)}, by the "
        "mean of their runs)."
    )


def _rounds(race: Race) -> Table:
    columns = (
        Column("Round"),
        Column("Training rows"),
        Column("Seeds"),
        Column("Strategies"),
        Column("Cost so far"),
        Column("Best", numeric=False),
        Column("Left", numeric=False),
    )
    rows, so_far = [], 0.0
    for place, made in enumerate(race.rounds, start=1):
        so_far += made.seconds
        share = formatting.share(so_far, race.full_seconds)
        rows.append(
            Row(
                (
                    number(place, str(place)),
                    number(made.fraction, formatting.share(made.fraction, 1)),
                    Cell(list(made.seeds), ", ".join(map(str, made.seeds))),
                    Cell(
                        len(made.strategies), str(len(made.strategies)), ", ".join(made.strategies)
                    ),
                    number(so_far, formatting.duration(so_far), share),
                    word(made.best or ""),
                    word(", ".join(gone.strategy for gone in made.eliminated)),
                )
            )
        )
    return Table("Rounds", columns, tuple(rows))


def _left(race: Race) -> Table:
    columns = (
        Column("Left", numeric=False),
        Column("After round"),
        Column("Runs"),
        Column("Against", numeric=False),
        Column("Behind it"),
        Column("Why", numeric=False),
    )
    rows = [
        Row(
            (
                word(gone.strategy),
                number(place, str(place)),
                number(gone.seeds, str(gone.seeds)),
                word(gone.against),
                _behind(gone, race.metric),
                word(gone.in_short),
            )
        )
        for place, made in enumerate(race.rounds, start=1)
        for gone in made.eliminated
    ]
    note = (
        "Below a difference its interval for all interim analyses together; there is none before "
        "the second seed, when nothing is known of how far seeds move a score. In brackets: how "
        "probable it is that the seeds left would settle it."
    )
    return Table("Who left", columns, tuple(rows), (note,))


def _behind(gone: Elimination, metric: str) -> Cell:
    found = gone.comparison
    if found is None:
        return Cell(None, formatting.MISSING)
    ends = formatting.interval(metric, found.low, found.high)
    shown = formatting.score(metric, found.difference)
    return number(found.difference, shown, "" if ends == formatting.MISSING else ends)
