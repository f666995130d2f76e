"""Where Optuna keeps the trials of searches: a file in the study's folder, or a database."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from sqlalchemy.exc import ArgumentError, IntegrityError, ProgrammingError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from totune.errors import ConfigError, RunError
from totune.search.records import FOLDER
from totune.text import first_line, hide_secrets

WAIT = 60.0  # seconds that one process waits for the file while another writes
TRIES = 5  # of making the tables, which several processes may begin at once


def database_path(study: Path) -> Path:
    """The storage of a study that names no other."""
    return study / FOLDER / "search.db"


def check_storage(url: str) -> None:
    """Finds out whether a storage can be used, and makes its tables.

    Raises:
        ConfigError: if it cannot, with the remedy.
    """
    with _quiet():
        _connect(url).engine.dispose()


@contextmanager
def opened(place: Path | str) -> Iterator[RDBStorage]:
    """A storage that can be used, while the block runs.

    Args:
        place: a file, made where it is missing, or the URL of a database.

    Raises:
        ConfigError: if it cannot be used.
        RunError: if it is lost while it is used.
    """
    with _quiet():
        storage = _connect(place) if isinstance(place, str) else _open_file(place)
        try:
            yield storage
        except StorageInternalError as error:
            raise RunError(
                f"The storage of the search, {hide_secrets(str(place))}, cannot be used any "
                f"more: {_reason(error.__cause__ or error)}. The same command goes on where it "
                "ended."
            ) from None
        finally:
            storage.engine.dispose()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Optuna from logging every trial while the block runs."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _open_file(path: Path) -> RDBStorage:
    """A file of SQLite; its path may hold any character, which a URL may not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connect = partial(_connection, path)
    try:
        return _patiently("sqlite://", {"creator": connect, "poolclass": QueuePool})
    except (SQLAlchemyError, StorageInternalError, RuntimeError) as error:
        raise ConfigError(
            f"{path} cannot be used as the storage of a search: {_reason(error)}. Try again; if it "
            "stays so the file is damaged, and moving it away begins the search anew."
        ) from None


def _connection(path: Path) -> sqlite3.Connection:
    """Writes wait for no disk: what a killed process has written stays all the same."""
    connection = sqlite3.connect(path, timeout=WAIT, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def _connect(url: str) -> RDBStorage:
    written = f"search_storage={hide_secrets(url)!r}"
    try:
        return _patiently(url, {"pool_pre_ping": True})
    except ImportError as error:
        driver = _reason(error.__cause__ or error)
        raise ConfigError(
            f"{written} needs a driver that is not installed: {driver}. For PostgreSQL: "
            "pip install 'psycopg[binary]', and begin the URL with postgresql+psycopg://."
        ) from None
    except (ArgumentError, ValueError, KeyError, IndexError):
        raise ConfigError(
            f"{written} is not the URL of a storage that Optuna can use; write one like "
            "postgresql+psycopg://user:password@host/database or sqlite:////folder/search.db."
        ) from None
    except (SQLAlchemyError, StorageInternalError, RuntimeError) as error:
        raise ConfigError(
            f"{written} cannot be used: {_reason(error)}. Is the server running, and does the "
            "database exist?"
        ) from None


def _patiently(url: str, options: dict[str, Any]) -> RDBStorage:
    """Makes the tables, again if another process has made some of them at the same time."""
    for attempt in range(TRIES):
        try:
            return RDBStorage(url, options)
        except SQLAlchemyError as error:
            if attempt == TRIES - 1 or not _is_race(error):
                raise
            time.sleep(0.2 * (attempt + 1))
    raise AssertionError("the last attempt has returned or raised")


def _is_race(error: SQLAlchemyError) -> bool:
    """Whether somebody else has made what was not there a moment before."""
    return isinstance(error, IntegrityError | ProgrammingError) or "already exists" in str(error)


def _reason(error: BaseException) -> str:
    """What a driver says, which knows better than the layers above it, without passwords."""
    return hide_secrets(first_line(getattr(error, "orig", None) or error))
