"""The searches of a study: one per member, and the members that their winners make."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from totune.errors import ConfigError
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.runs.executors.base import Executor, Here, Job
from totune.runs.store import Store
from totune.search import outcomes
from totune.search.budget import Budget
from totune.search.folder import database_path, write_search
from totune.search.records import SearchRecord
from totune.search.searching import search
from totune.search.space import label_of, space_of
from totune.search.storage import opened
from totune.search.wording import tell_end


@dataclass(frozen=True)
class SearchJob(Job):
    """The search of one member; its result is the record.

    Its checkpoints stay where it runs: one that is done elsewhere begins its trial anew.

    Attributes:
        member: a strategy or baseline with options to search.
        budget: of the search.
        seed: of the sampler, and of every trial's training.
        storage: URL of a database; None for a file in the study's folder, which must then be where
            the job runs.
    """

    member: Candidate
    budget: Budget
    seed: int
    storage: str | None

    def run(self, context: Context, store: Store) -> SearchRecord:
        return search(self.member, context, store, self.budget, self.seed, self.storage)

    def fail(self, error: str, context: Context, store: Store) -> None:
        """A study goes on without it, with the options that the member has."""
        context.progress.warn(f"{self.title} came to no end: {error} Its options stay as they are.")


def search_members(
    members: Sequence[Candidate],
    context: Context,
    store: Store,
    budget: Budget,
    seed: int,
    storage: str | None = None,
    executor: Executor | None = None,
) -> list[Candidate]:
    """Searches every member that has options left to search, and writes the records.

    Args:
        members: of the study.
        context: what its runs share.
        store: its folder.
        budget: of each member.
        seed: of samplers and trials.
        storage: as for `search`.
        executor: who searches; this process if None.

    Returns:
        The members with the options that won, under the labels they had; those that have nothing
        to search, or whose trials all failed, as they were.

    Raises:
        ConfigError: if several processes share each run, or as `search`.
        RunError: as `search`.
    """
    if context.devices.world > 1:
        raise ConfigError(
            f"A search trains one trial in one process, and {context.devices.world} share this "
            "run. Search without torchrun; what has won can be set with `options`."
        )
    spaces = [space_of(member, context) for member in members]
    labels = [
        label_of(member, space) if space.ranges else member.label
        for member, space in zip(members, spaces, strict=True)
    ]
    named = [replace(m, label=label) for m, label in zip(members, labels, strict=True)]
    searched = [m for m, space in zip(named, spaces, strict=True) if space.ranges]
    jobs = [
        SearchJob(f"search {number}/{len(searched)}: {m.label}", m, budget, seed, storage)
        for number, m in enumerate(searched, start=1)
    ]
    if storage is None and jobs:
        with opened(database_path(store.folder)):
            pass  # its tables are made once, before several processes look for them
    found: dict[str, SearchRecord] = {}
    for _, record in (executor or Here()).perform(jobs, context, store):
        if record is None:
            continue
        write_search(store.folder, record)
        context.progress.say(tell_end(record))
        found[record.strategy] = record
    return [_winner(member, found.get(member.label)) for member in named]


def _winner(member: Candidate, record: SearchRecord | None) -> Candidate:
    won = None if record is None else outcomes.winner(record)
    return member if won is None else replace(member, options={**member.options, **won.options})
