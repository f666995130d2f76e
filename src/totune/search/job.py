"""The searches of a study: one per member, and the members that their winners make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from totune.errors import ConfigError
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.runs.executors.base import Job
from totune.runs.runner import Runner
from totune.runs.store import Store
from totune.search.queue import SearchBudget
from totune.search.records import SearchRecord, write_search
from totune.search.search import describe_score, search
from totune.search.space import label_of, space_of
from totune.search.storage import database_path, opened
from totune.strategies.base import Strategy


@dataclass(frozen=True)
class SearchJob(Job):
    """The search of one member; its result is the record.

    Its checkpoints stay where it runs: one that is done elsewhere restarts its trial.

    Attributes:
        member: a strategy or baseline with options to search.
        budget: of the search.
        seed: of the sampler, and of every trial's training.
        storage: URL of a database; None for a file in the study's folder, which must then be where
            the job runs.
    """

    member: Candidate
    budget: SearchBudget
    seed: int
    storage: str | None

    def run(self, context: Context, store: Store) -> SearchRecord:
        return search(self.member, context, store, self.budget, self.seed, self.storage)

    def fail(self, error: str, context: Context, store: Store) -> None:
        """A study goes on without it, with the options that the member has."""
        context.progress.warn(f"{self.title} did not finish: {error} Its options stay as they are.")


def search_candidates(
    candidates: Sequence[Candidate],
    runner: Runner,
    budget: SearchBudget,
    seed: int,
    storage: str | None = None,
) -> list[Candidate]:
    """Searches every candidate that has options left to search, and writes the records.

    Args:
        candidates: of the study.
        runner: says what runs share, where records belong and who searches.
        budget: of each candidate.
        seed: of samplers and trials.
        storage: as for `search`.

    Returns:
        The candidates with the options that won, under the labels they had; those that have nothing
        to search, or whose trials all failed, as they were.

    Raises:
        ConfigError: if several processes share each run, or as `search`.
        RunError: as `search`.
    """
    context, store = runner.context, runner.store
    if context.devices.world > 1:
        raise ConfigError(
            f"A search trains one trial in one process, and {context.devices.world} share this "
            "run. Search without torchrun; what has won can be set with `options`."
        )
    spaces = [space_of(each, context) for each in candidates]
    named = [
        replace(each, label=label_of(each, space)) if space.ranges else each
        for each, space in zip(candidates, spaces, strict=True)
    ]
    searched = [each for each, space in zip(named, spaces, strict=True) if space.ranges]
    jobs = [
        SearchJob(f"search {number}/{len(searched)}: {each.label}", each, budget, seed, storage)
        for number, each in enumerate(searched, start=1)
    ]
    if storage is None and jobs:
        with opened(database_path(store.folder)):
            pass  # its tables are made once, before several processes look for them
    found: dict[str, SearchRecord] = {}
    for _, record in runner.executor.perform(jobs, context, store):
        if record is None:
            continue
        write_search(store.folder, record)
        context.progress.say(describe_search(record))
        found[record.strategy] = record
    return [_winner(each, found.get(each.label), context) for each in named]


def _winner(member: Candidate, record: SearchRecord | None, context: Context) -> Candidate:
    """The member with the options that won.

    One that the search left where the rule of the data puts it stays unset, so that it remains the
    rule's in the records of its runs, and is decided again for a part of the rows.
    """
    if record is None or record.winner is None:
        return member
    winner = replace(member, options={**member.options, **record.winner.options})
    made = winner.create(context.facts)
    if isinstance(made, Strategy):
        for name in record.winner.options:
            others = {key: value for key, value in winner.options.items() if key != name}
            unset = replace(winner, options=others)
            if name in unset.by_rule(made, context.facts) and unset.create(context.facts) == made:
                winner = unset
    return winner


def describe_search(search: SearchRecord) -> str:
    """The result of a search, in a line."""
    count = len(search.trials)
    said = f"{search.strategy}: {count} trial{'' if count == 1 else 's'} on dev"
    won, first = search.winner, search.defaults
    if won is None:
        return f"{said}, none with a score; it runs with its defaults"
    usual = (
        "" if first is None else f"{describe_score(search.metric, first.score)} with the defaults"
    )
    if won.number == 0:
        return f"{said}; {search.metric} {usual}, which no other options beat"
    best = f"{describe_score(search.metric, won.score)} with {_options(won.options)}"
    return f"{said}; {search.metric} {', '.join(filter(None, [usual, best]))}"


def _options(options: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in options.items()
    )
