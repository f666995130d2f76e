import time
from pathlib import Path
from typing import Any

import pytest
from tests.recorder import Recorder
from tests.unit.runs.samples import context_of, failed, record_of, runs_of

from totune.runs.records import RunRecord
from totune.runs.run import Run
from totune.runs.runner import Runner, best_run, not_best
from totune.runs.store import Store


def names(records: list[RunRecord]) -> list[tuple[str, int]]:
    return [(record.strategy, record.seed) for record in records]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Has every run end with a good record, and notes it."""
    done: list[tuple[str, int]] = []

    def execute(self: Run, context: Any, store: Store) -> RunRecord:
        done.append((self.label, self.seed))
        record = record_of(self.label, self.seed, dev=0.5 + self.seed / 10)
        store.weights(record.fingerprint).mkdir(parents=True)
        store.save(record, {})
        return record

    monkeypatch.setattr(Run, "execute", execute)
    return done


def test_only_what_has_no_finished_record_is_run(
    tmp_path: Path, ran: list[tuple[str, int]]
) -> None:
    store, told = Store(tmp_path), Recorder()
    store.save(record_of("tf-idf", 0), {})
    store.save(failed("last-2", 0), {})
    seen: list[int] = []
    wanted = [("tf-idf", 0), ("last-2", 0), ("tf-idf", 1)]
    context = context_of(told)
    records = Runner(context, store).execute(
        runs_of(*wanted), on_record=lambda r: seen.append(len(r))
    )
    assert ran == [("last-2", 0), ("tf-idf", 1)]
    assert names(records) == wanted
    assert [record.status for record in records] == ["finished"] * 3
    assert seen == [1, 2, 3]
    assert told.said == ["run 2/3: last-2, seed 0", "run 3/3: tf-idf, seed 1"]
    assert Runner(context, store).execute(runs_of(*wanted)) == records
    assert len(ran) == 2


def test_weights_of_the_best_run_of_each_strategy_are_kept(
    tmp_path: Path, ran: list[tuple[str, int]]
) -> None:
    store = Store(tmp_path)
    wanted = [("tf-idf", 0), ("last-2", 0), ("tf-idf", 2), ("last-2", 1), ("tf-idf", 1)]
    records = Runner(context_of(Recorder()), store).execute(runs_of(*wanted))
    kept = [record for record in records if store.weights(record.fingerprint).exists()]
    assert names(kept) == [("tf-idf", 2), ("last-2", 1)]


def test_trouble_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[tuple[str, int]]
) -> None:
    ends = iter([failed("tf-idf", 0), record_of("tf-idf", 1, degenerate="predicts only 'a'")])
    monkeypatch.setattr(Run, "execute", lambda *_: next(ends))
    told = Recorder()
    Runner(context_of(told), Store(tmp_path)).execute(runs_of(("tf-idf", 0), ("tf-idf", 1)))
    assert told.warned == [
        "tf-idf seed 0 failed: it broke",
        "tf-idf seed 1 predicts only 'a'; its score counts like any other.",
    ]


def test_a_budget_leaves_out_what_would_not_end_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[tuple[str, int]]
) -> None:
    """Runs of last-2 take 40 s and those of tf-idf 1 s, on a clock that only they move."""
    clock = [0.0]
    plain = Run.execute

    def run(self: Run, *rest: Any) -> RunRecord:
        clock[0] += 40.0 if self.label == "last-2" else 1.0
        return plain(self, *rest)

    monkeypatch.setattr(Run, "execute", run)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    wanted = [(label, seed) for seed in range(4) for label in ("last-2", "tf-idf")]
    told, store = Recorder(), Store(tmp_path)
    records = Runner(context_of(told), store).execute(runs_of(*wanted), budget=100.0)
    assert names(records) == ran
    assert [seed for label, seed in ran if label == "last-2"] == [0, 1]
    assert [seed for label, seed in ran if label == "tf-idf"] == [0, 1, 2, 3]
    assert told.warned == [
        "The budget of 100 s is used up; not run: last-2 seed 2, last-2 seed 3. The same command "
        "with a larger budget runs only these."
    ]
    ran.clear()
    assert names(Runner(context_of(told), store).execute(runs_of(*wanted))) == wanted
    assert ran == [("last-2", 2), ("last-2", 3)]


def test_the_best_run_is_the_best_on_dev() -> None:
    records = [
        record_of("last-2", 0, dev=0.7),
        record_of("last-2", 1, dev=0.8),
        record_of("tf-idf", 2, dev=0.9),
        failed("last-2", 3),
    ]
    assert best_run(records, "last-2", "accuracy") is records[1]
    assert best_run(records, "last-2", "mse") is records[0]
    assert best_run(records, "fine-tuning", "accuracy") is None
    assert best_run([failed("last-2")], "last-2", "accuracy") is None


def test_of_equals_the_best_run_does_not_depend_on_their_order() -> None:
    records = [record_of("last-2", seed, dev=0.7) for seed in (2, 0, 1)]
    assert best_run(records, "last-2", "accuracy") is records[1]
    assert best_run(records[::-1], "last-2", "accuracy") is records[1]


def test_a_useless_run_is_the_best_only_if_all_are() -> None:
    useless = record_of("last-2", 0, dev=0.9, degenerate="predicts only 'a'")
    useful = record_of("last-2", 1, dev=0.6)
    assert best_run([useless, useful], "last-2", "accuracy") is useful
    assert best_run([useless], "last-2", "accuracy") is useless


def test_of_each_strategy_one_run_is_the_best() -> None:
    records = [record_of("last-2", seed, dev=dev) for seed, dev in enumerate([0.5, 0.9, 0.7])]
    other = record_of("tf-idf", 0, dev=0.1)
    assert not_best([*records, other], "accuracy") == [records[0], records[2]]


def test_an_unreadable_record_is_told_before_the_run_is_done_again(
    tmp_path: Path, ran: list[tuple[str, int]]
) -> None:
    store, told = Store(tmp_path), Recorder()
    record = record_of("tf-idf", 0)
    store.save(record, {})
    path = store.run_folder(record.fingerprint) / "record.json"
    path.write_text(path.read_text(encoding="utf-8")[:40], encoding="utf-8")
    Runner(context_of(told), store).execute(runs_of(("tf-idf", 0)))
    assert ran == [("tf-idf", 0)]
    [warning] = told.warned
    assert warning.startswith(f"The record {path} cannot be read (")
    assert warning.endswith("The run is done again.")
