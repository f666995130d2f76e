"""A race on runs that only seem to train."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.recorder import Recorder
from tests.tiny_runs import tiny_examples
from tests.unit.racing.samples import runs
from tests.unit.runs.samples import context_of, runs_of
from tests.unit.search.samples import context_of as search_context

from totune.data.examples import Dataset
from totune.racing.execution import PART, _on_part, race
from totune.racing.records import Race, read_race
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.runs.records import RunRecord
from totune.runs.run import Run, configure
from totune.runs.runner import Runner
from totune.runs.store import Store

BEST = runs("fine-tuning", [200, 204, 202, 200], 50.0)
WORSE = runs("tf-idf", [700, 704, 702, 700], 2.0)
SLOW = runs("lora", [500, 510, 505, 503], 99.0)
ALL = [(name, seed) for seed in range(4) for name in ("fine-tuning", "tf-idf", "lora")]
Go = Callable[..., tuple[list[RunRecord], Race]]


class Trained(list[tuple[str, str, int]]):
    """What was run: the digest of its data, its label and its seed."""


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    """Has every run end with the predictions of the samples."""
    done = Trained()
    known = BEST + WORSE + SLOW

    def execute(self: Run, context: Any, store: Store) -> RunRecord:
        done.append((self.config.data, self.label, self.seed))
        found = next(r for r in known.records if (r.strategy, r.seed) == done[-1][1:])
        made = RunRecord.from_json(
            found.to_json() | {"fingerprint": self.fingerprint, "predictions": "p.npz"}
        )
        store.weights(self.fingerprint).mkdir(parents=True)
        store.save(made, dict(known.arrays[found.fingerprint]))
        return made

    monkeypatch.setattr(Run, "execute", execute)
    return done


def in_context(told: Recorder) -> Context:
    """With training rows of which a part can be taken."""
    rows = tiny_examples(rows=40)
    columns = SimpleNamespace(task="classification")
    dataset = Dataset("tiny", rows, rows, rows, cast(Any, columns))
    context = context_of(told)
    context.split_seed = 0
    context.folds = None
    context.dataset = dataset

    def with_splits(parts: Any) -> Context:
        small = in_context(told)
        small.dataset = Dataset("tiny", parts["train"], rows, rows, cast(Any, columns))
        return small

    context.with_splits = with_splits  # type: ignore[method-assign]
    return context


@pytest.fixture
def go(tmp_path: Path) -> Go:
    def go(told: Recorder | None = None, **options: Any) -> tuple[list[RunRecord], Race]:
        context = in_context(told or Recorder())
        return race(runs_of(*ALL), Runner(context, Store(tmp_path)), 0.005, **options)

    return go


def test_a_race_runs_what_it_asks_for_and_tells_who_leaves(
    tmp_path: Path, trained: Trained, go: Go
) -> None:
    told, shown = Recorder(), list[int]()
    records, made = go(told, on_record=lambda found: shown.append(len(found)))
    ran = [("fine-tuning", 0), ("tf-idf", 0), ("lora", 0), ("fine-tuning", 1), ("tf-idf", 1)]
    assert [each[1:] for each in trained] == ran
    assert [(r.strategy, r.seed) for r in records] == ran
    assert shown == [1, 2, 3, 3, 4, 5]
    assert {name: gone.reason for name, gone in made.eliminated.items()} == {
        "lora": "cannot win",
        "tf-idf": "worse",
    }
    assert told.said[0] == "round: seed 0, 3 strategies"
    assert (
        "tf-idf leaves the race: it is credibly worse than fine-tuning by more than 0.5 points."
        in told.said
    )
    assert repr(read_race(tmp_path)) == repr(made)
    kept = {r.strategy for r in records if Store(tmp_path).weights(r.fingerprint).exists()}
    assert kept == {"fine-tuning", "tf-idf", "lora"}


def test_a_race_that_was_run_runs_nothing(trained: Trained, go: Go) -> None:
    _, first = go()
    count = len(trained)
    _, again = go()
    assert (len(trained), repr(again)) == (count, repr(first))


def test_a_broken_race_goes_on(monkeypatch: pytest.MonkeyPatch, trained: Trained, go: Go) -> None:
    whole = Run.execute

    def breaks(self: Run, *rest: Any) -> RunRecord:
        if len(trained) == 2:
            raise KeyboardInterrupt
        return whole(self, *rest)

    monkeypatch.setattr(Run, "execute", breaks)
    with pytest.raises(KeyboardInterrupt):
        go()
    monkeypatch.setattr(Run, "execute", whole)
    records, made = go()
    assert len(trained) == len(set(trained)) == len(records) == 5
    assert made.ended == "settled"


def test_what_failed_is_not_tried_again_in_later_rounds(
    monkeypatch: pytest.MonkeyPatch, trained: Trained, go: Go
) -> None:
    whole, tries = Run.execute, list[int]()

    def fails(self: Run, context: Any, store: Store) -> RunRecord:
        if self.label != "lora":
            return whole(self, context, store)
        tries.append(self.seed)
        found = SLOW.records[self.seed].to_json()
        facts = {"status": "failed", "error": "it broke", "costs": None}
        made = RunRecord.from_json(found | facts | {"fingerprint": self.fingerprint})
        store.save(made, {})
        return made

    monkeypatch.setattr(Run, "execute", fails)
    records, made = go()
    assert tries == [0, 1]
    assert made.eliminated["lora"].reason == "no usable run"
    assert sum(record.status == "failed" for record in records) == 2


def test_a_part_of_the_rows_is_other_data_in_another_folder(
    tmp_path: Path, trained: Trained, go: Go
) -> None:
    records, made = go(fraction=0.25)
    small, whole = {d for d, *_ in trained[:6]}, {d for d, *_ in trained[6:]}
    assert len(small) == len(whole) == 1
    assert small != whole
    assert made.eliminated["lora"].reason == "worse"
    assert {record.strategy for record in records} == {"fine-tuning", "tf-idf"}
    store = Store(tmp_path / PART / "0.25")
    assert len(store.records()) == 6
    assert not any(store.weights(record.fingerprint).exists() for record in store.records())


def test_the_budget_is_that_of_all_rounds(
    monkeypatch: pytest.MonkeyPatch, trained: Trained, go: Go
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("time.monotonic", lambda: clock.now)
    whole = Run.execute

    def takes_ten(*given: Any) -> RunRecord:
        clock.now += 10
        return whole(*given)

    monkeypatch.setattr(Run, "execute", takes_ten)
    told = Recorder()
    _, made = go(told, budget=45.0)
    assert [each[1:] for each in trained][-1] == ("tf-idf", 1)
    assert made.ended == "budget used up"
    assert "The budget of 45 s is used up; not run: fine-tuning seed 1" in told.warned[0]


def test_on_a_part_of_the_rows_the_rule_decides_anew(tmp_path: Path) -> None:
    every = search_context(tmp_path, rows=640)
    whole = dataclasses.replace(every, batch_by_rule=True).with_splits({})
    members = [
        Candidate("fine-tuning"),
        Candidate("last-2", {"num_train_epochs": 2}),
        Candidate("tf-idf"),
    ]
    small = whole.with_splits({"train": whole.dataset.train.take(range(64))})
    parts = [_on_part(run, small) for run in configure(members, [0], whole)]
    assert parts == configure(members, [0], small)
