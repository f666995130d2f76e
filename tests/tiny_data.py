"""A tiny encoder folder with its tokenizer, and small learnable datasets, for tests of commands."""

import csv
import random
from collections.abc import Sequence
from pathlib import Path

from tests.encoder_zoo import tiny_encoder
from tests.tiny_runs import WORDS, tiny_tokenizer

from totune.encoders.loading import quiet

GOOD, BAD, OTHER = WORDS[:3], WORDS[3:6], WORDS[6:]


def save_encoder(folder: Path, seed: int = 0, dropout: float = 0.1, name: str = "bert") -> Path:
    """A tiny random encoder with its tokenizer, as transformers saves them."""
    model = tiny_encoder(name, seed).model
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = dropout
    with quiet():
        model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def write_reviews(path: Path, rows: int = 200, seed: int = 0) -> Path:
    """text, label: one word of each text decides its class."""
    rng = random.Random(seed)
    table = []
    for row in range(rows):
        praise = row % 2 == 0
        table.append((_review(rng, praise), "praise" if praise else "blame"))
    return write_table(path, ("text", "label"), table)


def write_pairs(path: Path, rows: int = 120, seed: int = 0) -> Path:
    """first, second, label: "same" if both texts praise, or both blame."""
    rng = random.Random(seed)
    table = []
    for row in range(rows):
        praise, same = rng.random() < 0.5, row % 2 == 0
        texts = _review(rng, praise), _review(rng, praise == same)
        table.append((*texts, "same" if same else "other"))
    return write_table(path, ("first", "second", "label"), table)


def write_scores(path: Path, rows: int = 120, seed: int = 0) -> Path:
    """text, score: how many of four words praise, as 0 to 5."""
    rng = random.Random(seed)
    table = []
    for _ in range(rows):
        praises = rng.randrange(5)
        words = rng.choices(GOOD, k=praises) + rng.choices(BAD, k=4 - praises)
        words += rng.sample(OTHER, 3)
        rng.shuffle(words)
        table.append((" ".join(words), f"{5 * praises / 4:.2f}"))
    return write_table(path, ("text", "score"), table)


def write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return path


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _review(rng: random.Random, praise: bool) -> str:
    words = [*rng.sample(OTHER, rng.randrange(3, 9)), rng.choice(GOOD if praise else BAD)]
    rng.shuffle(words)
    return " ".join(words)
