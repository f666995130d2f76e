"""The searches of a study, and what runs after them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.report.sample_search import search as record_of
from tests.unit.report.sample_search import trial
from tests.unit.search.samples import FEATURES, TF_IDF, told

from totune.errors import ConfigError
from totune.io import read_checked_json
from totune.progress import Progress
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.runs.executors.base import Executor, Job
from totune.runs.run import configure
from totune.runs.runner import Runner
from totune.runs.store import Store
from totune.search.job import SearchJob, describe_search, search_candidates
from totune.search.queue import SearchBudget
from totune.search.records import read_searches
from totune.search.search import describe_trial
from totune.strategies.fine_tuning import FineTuning


class Fake(Executor):
    """Gives records that were prepared, in another order than it was asked."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.jobs: list[SearchJob] = []

    def perform(
        self,
        jobs: Sequence[Job],
        context: Context,
        store: Store,
        may_begin: Callable[[Job], bool] = lambda _: True,
        remark: Callable[[], str] = str,
    ) -> Iterator[tuple[Job, Any]]:
        self.jobs = [cast(SearchJob, job) for job in jobs]
        for job in reversed(self.jobs):
            won = replace(trial(0, 0.5), options=self.options[job.member.label])
            yield job, record_of([won], strategy=job.member.label)


def test_winners_make_the_members_under_their_labels(
    search_context: Context, tmp_path: Path
) -> None:
    members = [
        Candidate("last-k", {"learning_rate": 1e-4}),
        Candidate("majority"),
        Candidate("tf-idf", label="words"),
        Candidate("fine-tuning", head="linear"),
    ]
    won = {"last-k": {"k": 3}, "words": {"C": 2.0}, "fine-tuning": {"head.dropout": 0.3}}
    executor = Fake(won)
    budget = SearchBudget(trials=4)
    found = search_candidates(members, Runner(search_context, Store(tmp_path), executor), budget, 7)
    assert found == [
        Candidate("last-k", {"learning_rate": 1e-4, "k": 3}, "last-k"),
        Candidate("majority"),
        Candidate("tf-idf", {"C": 2.0}, "words"),
        Candidate("fine-tuning", {"head.dropout": 0.3}, "fine-tuning"),
    ]
    titles = ["search 1/3: last-k", "search 2/3: words", "search 3/3: fine-tuning"]
    assert [job.title for job in executor.jobs] == titles
    assert {job.seed for job in executor.jobs} == {7}
    assert sorted(search.strategy for search in read_searches(tmp_path)) == sorted(won)


def test_what_a_search_left_to_the_rule_is_named_in_the_records(
    search_context: Context, tmp_path: Path
) -> None:
    member = Candidate("fine-tuning", {"warmup_ratio": 0.2})
    rule = member.create(search_context.facts)
    assert isinstance(rule, FineTuning)
    other = rule.num_train_epochs + 1
    options = {"learning_rate": rule.learning_rate, "num_train_epochs": other, "head.dropout": 0.3}
    executor, budget = Fake({"fine-tuning": options}), SearchBudget(trials=4)
    winners = search_candidates(
        [member], Runner(search_context, Store(tmp_path), executor), budget, 0
    )
    [run] = configure(winners, [0], search_context)
    assert run.method == replace(rule, num_train_epochs=other)
    assert run.config.head["options"]["dropout"] == 0.3
    named = set(run.config.by_rule)
    assert "learning_rate" in named
    assert not {"num_train_epochs", "warmup_ratio", "dropout"} & named


def test_a_search_that_kills_its_workers_leaves_the_options(
    search_context: Context, tmp_path: Path
) -> None:
    class Deadly(Fake):
        def perform(self, jobs: Sequence[Job], *given: Any) -> Iterator[tuple[Job, Any]]:
            for job in jobs:
                yield job, job.fail("it was given up.", search_context, Store(tmp_path))

    heard: list[str] = []
    search_context = replace(search_context, progress=Progress())
    search_context.progress.warn = heard.append  # type: ignore[method-assign]
    members = [Candidate("tf-idf", {"ngrams": 2}, "words"), Candidate("majority")]
    store, budget = Store(tmp_path), SearchBudget(trials=4)
    found = search_candidates(members, Runner(search_context, store, Deadly({})), budget, 0)
    assert found == members
    assert read_searches(tmp_path) == []
    [warning] = heard
    assert "search 1/1: words did not finish: it was given up." in warning


def test_searches_are_done_here_and_written(search_context: Context, tmp_path: Path) -> None:
    search_context = replace(search_context, progress=type(search_context.progress)())
    members = [TF_IDF, replace(FEATURES, options={**FEATURES.options, "head.dropout": 0.1})]
    found = search_candidates(
        members, Runner(search_context, Store(tmp_path)), SearchBudget(trials=2), 0
    )
    records = {search.strategy: search for search in read_searches(tmp_path)}
    for member, winner in zip(members, found, strict=True):
        record = records[winner.label]
        assert record.winner is not None
        searched = replace(winner, options={**member.options, **record.winner.options})
        assert winner.create(search_context.facts) == searched.create(search_context.facts)
        assert winner.head_options == searched.head_options
        assert record.budget == {"trials": 2}
        assert describe_search(record) in told(search_context)
    path = tmp_path / "search" / "tf-idf.json"
    assert read_checked_json(path) == records["tf-idf"].to_json()


def test_a_search_whose_trials_all_failed_leaves_the_defaults(
    search_context: Context, tmp_path: Path
) -> None:
    member = Candidate("last-k", {"k": 9})
    (found,) = search_candidates(
        [member], Runner(search_context, Store(tmp_path)), SearchBudget(trials=1), 0
    )
    assert found.options == {"k": 9}


def test_several_processes_to_a_run_cannot_search(search_context: Context, tmp_path: Path) -> None:
    shared = replace(search_context, devices=cast(Any, SimpleNamespace(world=2)))
    with pytest.raises(ConfigError, match="Search without torchrun"):
        search_candidates([TF_IDF], Runner(shared, Store(tmp_path)), SearchBudget(trials=2), 0)


@pytest.mark.parametrize(
    ("changes", "of", "said"),
    [
        ({}, 20, "trial 5/20: 81.3; best 90.0"),
        ({}, None, "trial 5: 81.3; best 90.0"),
        ({"state": "pruned"}, 20, "trial 5/20: 81.3 (ended early); best 90.0"),
        ({"same_as": 1}, 20, "trial 5/20: 81.3, the same as trial 2; best 90.0"),
        (
            {"state": "failed", "score": None, "error": "too large"},
            20,
            "trial 5/20 failed: too large",
        ),
    ],
)
def test_a_trial_in_words(changes: dict[str, Any], of: int | None, said: str) -> None:
    ended = replace(trial(4, 0.813), **changes)
    assert describe_trial(ended, trial(2, 0.9), of, "accuracy") == said


def test_a_search_in_words() -> None:
    won = replace(trial(1, 0.875), options={"learning_rate": 0.00123456, "schedule": "linear"})
    better = record_of([trial(0, 0.75), won])
    assert describe_search(better) == (
        "fine-tuning: 2 trials on dev; accuracy 75.0 with the defaults, 87.5 with "
        "learning_rate 0.00123, schedule linear"
    )
    usual = record_of([trial(0, 0.75), trial(1, 0.5)])
    assert describe_search(usual) == (
        "fine-tuning: 2 trials on dev; accuracy 75.0 with the defaults, which no other options beat"
    )
    hopeless = record_of([trial(0, None)])
    assert describe_search(hopeless) == (
        "fine-tuning: 1 trial on dev, none with a score; it runs with its defaults"
    )
