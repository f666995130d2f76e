"""A small labelled file and a recipe over it."""

import csv
from pathlib import Path

import numpy as np

from totune.recipes.loading import load_recipe
from totune.recipes.recipe import Recipe

WORDS = {"1": ["fire", "flood", "storm", "crash"], "0": ["song", "party", "lunch", "film"]}


def write_tweets(folder: Path, rows: int = 80, name: str = "train.csv") -> Path:
    """Texts whose words tell the label, nearly; stored in runs, as the real file is."""
    rng = np.random.default_rng(0)
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "keyword", "location", "text", "target"])
        for number in range(rows):
            label = str(int(number >= 0.6 * rows))
            told = label if rng.random() < 0.9 else str(1 - int(label))
            text = " ".join(rng.choice([*WORDS[told], "the", "today"], 6))
            writer.writerow([number, "", "", f"{text} number{number}", label])
    return path


def sparse_recipe(**changes) -> Recipe:
    return load_recipe("hart-sparse").model_copy(update=changes)
