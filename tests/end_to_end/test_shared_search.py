"""A search that two processes share through PostgreSQL; a real server is started for it."""

import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.conftest import Run, Start

from totune.io import read_checked_json

pytestmark = pytest.mark.slow

TRIALS = 12


def server_programs() -> Path | None:
    """The folder of initdb and pg_ctl, which distributions keep off the PATH."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "pg_ctl").is_file()), None)


def server_user() -> str | None:
    """Whom the server runs as: it refuses to be root's. None for the user of the tests."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), "")


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The URL of an empty database on a server of its own, which listens on no network."""
    programs, user = server_programs(), server_user()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: there are no initdb and pg_ctl")
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("its driver is not installed: pip install 'psycopg[binary]'")
    if user == "":
        pytest.skip("a PostgreSQL server refuses to run as root, and there is no other user")
    folder = Path(tempfile.mkdtemp(prefix="totune-"))  # its parents can be entered by all
    who: dict[str, Any] = {}
    if user is not None:
        group = pwd.getpwnam(user).pw_gid
        shutil.chown(folder, user, group)
        who = {"user": user, "group": group, "extra_groups": []}

    def call(program: str, *arguments: object) -> None:
        words = [str(programs / program), *map(str, arguments)]
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, **who)

    files = folder / "data"
    call("initdb", "-D", files, "-U", "totune", "--auth", "trust", "-E", "UTF8", "--no-sync")
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    call("pg_ctl", "-D", files, "-l", folder / "log", "-w", "-o", options, "start")
    try:
        call("createdb", "-h", folder, "-U", "totune", "searches")
        yield f"postgresql+psycopg://totune:secret@/searches?host={folder}"
    finally:
        call("pg_ctl", "-D", files, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def compare(data: Path, out: Path, storage: str | None, *more: object) -> tuple[object, ...]:
    where = (data / "reviews.csv", "--model", data / "encoder", "--out", out)
    chosen = ("--strategies", "feature-extraction", "--search", TRIALS, "--seeds", 1)
    steps = ("--precision", "fp32", "--per-device-train-batch-size", 2, "--num-train-epochs", 6)
    steps += ("--set", "feature-extraction.solver=gradient")
    shared = () if storage is None else ("--search-storage", storage)
    return ("compare", *where, *chosen, *steps, *shared, *more)


def search(study: Path) -> dict[str, Any]:
    path = study / "search" / "feature-extraction.json"
    found: dict[str, Any] = read_checked_json(path)
    return found


def trained(messages: str) -> list[int]:
    return [int(number) for number in re.findall(r"^trial (\d+)/", messages, re.M)]


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    trials = [{**trial, "seconds": 0.0} for trial in record["trials"]]
    return {**record, "trials": trials}


def test_two_processes_share_the_trials_of_one_search(
    start: Start, data: Path, database: str, tmp_path: Path
) -> None:
    """They begin at once, with no tables there."""
    commands = [start(*compare(data, tmp_path / name, database)) for name in "ab"]
    ended = [command.end() for command in commands]
    assert [one.code for one in ended] == [0, 0], ended
    first, second = (trained(one.err) for one in ended)
    assert first
    assert second
    assert sorted(first + second) == list(range(1, TRIALS + 1))
    assert search(tmp_path / "a") == search(tmp_path / "b")
    record = search(tmp_path / "a")
    assert [trial["number"] for trial in record["trials"]] == list(range(TRIALS))
    info = (tmp_path / "a" / "study.json").read_text(encoding="utf-8")
    assert "secret" not in info


def test_another_process_takes_up_the_trial_of_a_dead_one(
    start: Start, totune: Run, data: Path, database: str, tmp_path: Path
) -> None:
    """Its sign of life is made old; else it would be waited for."""
    import optuna

    from totune.search.queue import GRACE, HEARTBEAT
    from totune.search.storage import opened

    other = ("--split-seed", 5)  # other data, so another search
    running = start(*compare(data, tmp_path / "dead", database, *other))
    running.wait_for(lambda: len(trained(running.errors())) == 3)
    running.send(signal.SIGKILL)
    assert running.end().code == -signal.SIGKILL
    with opened(database) as kept:
        left = [
            trial
            for study in optuna.get_all_study_summaries(storage=kept)
            for trial in kept.get_all_trials(study._study_id)
            if not trial.state.is_finished()
        ]
        for trial in left:
            kept.set_trial_user_attr(trial._trial_id, HEARTBEAT, time.time() - GRACE - 1)
    ended = totune(*compare(data, tmp_path / "living", database, *other))
    assert ended.code == 0, ended.err
    assert trained(ended.err) == list(range(4, TRIALS + 1))
    alone = totune(*compare(data, tmp_path / "alone", None, *other))
    assert alone.code == 0, alone.err
    assert without_times(search(tmp_path / "living")) == without_times(search(tmp_path / "alone"))


def test_a_server_that_does_not_answer_is_told(totune: Run, data: Path, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    url = "postgresql+psycopg://me:secret@localhost:1/searches"
    ended = totune(*compare(data, tmp_path, url))
    assert ended.code == 2
    assert "search_storage='postgresql+psycopg://me:***@localhost:1/searches'" in ended.err
    assert "Is the server running" in ended.err
    assert "Traceback" not in ended.err
    assert "secret" not in ended.err
