"""A tiny encoder, small learnable data, and commands in processes of their own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.end_to_end.commands import Command, Ended, start_server
from tests.tiny_data import save_encoder, write_pairs, write_reviews, write_scores

Start = Callable[..., Command]
Run = Callable[..., Ended]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `encoder/`, `reviews.csv`, `pairs.csv` and `scores.csv`."""
    folder = tmp_path_factory.mktemp("data")
    save_encoder(folder / "encoder")
    write_reviews(folder / "reviews.csv")
    write_pairs(folder / "pairs.csv")
    write_scores(folder / "scores.csv")
    return folder


@pytest.fixture(scope="session")
def server() -> None:
    """The server of commands, before a test has totune start one that has imported less."""
    start_server()


@pytest.fixture(autouse=True)
def _apart(cache: Path, server: None) -> None:
    """All these tests leave the user's cache alone."""


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory, cache: Path, server: None) -> Start:
    """Starts `totune ARGUMENTS` and does not wait for its end.

    Comparisons are of one test split unless they say how many folds.
    """
    folder = tmp_path_factory.mktemp("output")

    def begin(*arguments: object) -> Command:
        one_split = arguments[:1] == ("compare",) and "--folds" not in arguments
        more = ("--folds", "1") if one_split else ()
        return Command([*arguments, *more], folder, {"TOTUNE_CACHE": str(cache)})

    return begin


@pytest.fixture(scope="session")
def totune(start: Start) -> Run:
    """Runs `totune ARGUMENTS` to its end."""
    return lambda *arguments: start(*arguments).end()
