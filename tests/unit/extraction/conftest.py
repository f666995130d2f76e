"""A tiny encoder folder, texts for it, and extraction in one call."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_data import save_encoder, write_table
from tests.tiny_runs import WORDS

from totune.extraction import Extracted, ExtractionSettings, extract
from totune.progress import Progress

Extract = Callable[..., Extracted]


def some_texts(rows: int, seed: int = 0) -> list[str]:
    """Texts of 0 to 12 words; the third is empty."""
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(1, 13))) for _ in range(rows)]
    return [*texts[:2], "", *texts[3:]]


def write_texts(path: Path, texts: Sequence[str]) -> Path:
    """A csv file: number, text, label."""
    rows = [(str(at), text, "ab"[at % 2]) for at, text in enumerate(texts)]
    return write_table(path, ("number", "text", "label"), rows)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """25 rows."""
    return write_texts(tmp_path / "texts.csv", some_texts(25))


@pytest.fixture
def run(encoder: Path, data: Path, tmp_path: Path) -> Extract:
    """Extracts from `data` into `out` below the test's folder, ten rows a shard."""

    def run(
        out: str = "out", source: Path | str = data, told: Progress | None = None, **settings: Any
    ) -> Extracted:
        given = {"model": str(encoder), "rows_per_shard": 10, "precision": "fp32", **settings}
        chosen = ExtractionSettings(**given)
        return extract(source, chosen, tmp_path / out, told or Progress())

    return run
