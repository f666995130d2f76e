"""Where trials are kept: what cannot be used is told in one message, without passwords."""

from pathlib import Path

import pytest
from optuna.exceptions import StorageInternalError
from sqlalchemy.exc import IntegrityError, OperationalError

from totune.errors import ConfigError, RunError
from totune.search import storage
from totune.search.storage import check_storage, opened


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql+psycopg2://me:secret@host/db", "needs a driver that is not installed"),
        ("nonsense", "is not the URL of a storage"),
        ("nonsense://me:secret@host/db", "is not the URL of a storage"),
        ("sqlite:////nowhere/at/all/x.db", "cannot be used: unable to open database file"),
        ("sqlite:///{name}.db", "is not the URL of a storage"),
    ],
)
def test_a_storage_that_cannot_be_used_is_told_without_its_password(url: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_storage(url)
    (fault,) = raised.value.faults
    assert message in fault
    assert fault.startswith("search_storage='")
    assert "secret" not in fault


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    path.write_text("no database " * 100)
    with pytest.raises(ConfigError, match="moving it away begins the search anew"), opened(path):
        pass


def test_a_folder_s_name_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "a {b} ?#%20" / "search.db"
    for _ in range(2):
        with opened(path) as kept:
            assert kept.get_all_studies() == []
    assert path.is_file()


def test_a_storage_that_is_lost_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot be used any more: the disk is full\. The same"):
        with opened(tmp_path / "search.db"):
            raise StorageInternalError("in a commit") from OSError("the disk is full.")


@pytest.mark.parametrize("place", ["URL", "file"])
def test_tables_that_others_make_at_the_same_time_are_no_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    real = storage.RDBStorage
    failures = [
        IntegrityError("create", None, Exception("duplicate key")),
        OperationalError("create", None, Exception("table studies already exists")),
    ]

    def connect(*arguments: object) -> object:
        if failures:
            raise failures.pop()
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(storage, "RDBStorage", connect)
    monkeypatch.setattr(storage.time, "sleep", lambda _: None)
    if place == "URL":
        check_storage(f"sqlite:///{tmp_path}/x.db")
    else:
        with storage.opened(tmp_path / "x.db"):
            pass
    assert not failures
