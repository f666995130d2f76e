"""Small labelled data for the tests of baselines."""

import numpy as np

from totune.data.examples import Examples
from totune.tasks.base import Task

GOOD = ("a lovely warm film", "warm and funny", "lovely, truly lovely", "a funny joy to watch")
BAD = ("a dull cold film", "cold and boring", "dull, truly dull", "a boring chore to watch")
MIXED = ("it has its moments", "some scenes work", "neither good nor bad", "fine for an evening")

TWO = Examples(texts=GOOD + BAD, labels=("pos",) * 4 + ("neg",) * 4)
THREE = Examples(texts=GOOD + BAD + MIXED, labels=("pos",) * 4 + ("neg",) * 4 + ("mid",) * 4)
SCORES = Examples(texts=GOOD + BAD, labels=(5.0, 4.0, 4.5, 5.0, 1.0, 1.5, 1.0, 2.0))
PAIRS = Examples(
    texts=GOOD + BAD,
    pairs=(*GOOD[:2], *BAD[:2], *BAD[2:], *GOOD[2:]),
    labels=("same", "same", "other", "other", "same", "other", "other", "other"),
)
LABEL_SETS = Examples(
    texts=GOOD + BAD + MIXED,
    labels=(
        ("warm",),
        ("funny", "warm"),
        (),
        ("funny",),
        *[("cold",)] * 2,
        (),
        ("dull",),
        *[()] * 4,
    ),
)
NEW = Examples(texts=("a lovely joy", "dull and boring", "zzz"), labels=("pos", "neg", "pos"))
TAGGED = Examples(
    texts=("Ann Lee saw Rome", "Rome waits", "she saw it"),
    labels=(("B-PER", "I-PER", "O", "B-LOC"), ("B-LOC", "O"), ("O", "O", "O")),
    words=(("Ann", "Lee", "saw", "Rome"), ("Rome", "waits"), ("she", "saw", "it")),
)
NEW_TAGGED = Examples(
    texts=("Lee waits", "a"), labels=(("B-PER", "O"), ("O",)), words=(("Lee", "waits"), ("a",))
)


def predicted(task: Task, outputs: np.ndarray) -> np.ndarray:
    """The predictions of rows of one position each."""
    return task.predictions(outputs, np.ones(len(outputs), dtype=int))


def embed(examples: Examples) -> np.ndarray:
    """Stands in for an encoder: letter frequencies of each row's texts, [N, 26]."""
    rows = ["".join(row).lower() for row in examples]
    letters = "abcdefghijklmnopqrstuvwxyz"
    return np.array([[row.count(letter) for letter in letters] for row in rows], dtype=np.float32)
