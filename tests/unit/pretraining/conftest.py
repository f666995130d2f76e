"""Text that a small model can learn from, and a cache away from the user's own."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from totune.pretraining import loop

ANIMALS = ("cat", "dog", "fox", "owl")
DOINGS = ("sleeps", "runs", "eats", "sings")
PLACES = ("in the garden", "at home", "on the roof", "by the river")


def write_corpus(path: Path, documents: int = 40, seed: int = 0) -> Path:
    """Documents of two paragraphs of three sentences; what an animal does, it always does."""
    rng = random.Random(seed)
    texts = []
    for _ in range(documents):
        paragraphs = [" ".join(_sentence(rng) for _ in range(3)) for _ in range(2)]
        texts.append("\n".join(paragraphs))
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return path


def _sentence(rng: random.Random) -> str:
    number = rng.randrange(4)
    return f"The {ANIMALS[number]} {DOINGS[number]} {rng.choice(PLACES)}."


@pytest.fixture(autouse=True)
def _apart(cache: Path) -> None:
    """All these tests leave the user's cache alone."""


@pytest.fixture(scope="session", autouse=True)
def rate() -> Iterator[None]:
    """What large products take is not measured anew for every tiny training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "matrix_rate", lambda *_: 1e12)
        yield


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "text.txt")
