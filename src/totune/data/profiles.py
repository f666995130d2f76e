"""What the columns of a table hold, measured: the evidence that column detection judges by."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from totune.data.delimited import NUMBER
from totune.data.examples import TaskName
from totune.data.tables import Cell, SourceTable, read_words

SAMPLE = 5000  # rows, evenly spread, that a profile looks at
MAX_NUMBERED_CLASSES = 20  # whole numbers with more different values are scores
NUMERIC_SHARE = 0.95  # share of numbers from which on a column is numeric, the rest being dirt
TEXT_NAMES = frozenset(
    "text sentence content review tweet comment body message document utterance post question "
    "title headline description phrase string summary passage premise paragraph abstract "
    "news article input".split()
)
BESIDE_NAMES = frozenset("title headline description summary".split())  # of what goes with a text
LABEL_NAMES = frozenset(
    "label labels target class category sentiment gold score rating stars quality polarity stance "
    "emotion bias duplicate intent topic judgment judgement relevance y".split()
)
IGNORED_NAMES = frozenset(
    "id ids idx index confidence date time created url link uuid timestamp hostname author user "
    "username screenname year filename".split()
)


@dataclass(frozen=True)
class Profile:
    """One column: its name's words and what a sample of its cells looks like.

    Attributes:
        words: the name in lower-case words ("#1 String" gives 1, string).
        filled: share of cells with a value.
        distinct: how many different values.
        repeats: mean number of rows per different value.
        numeric: share of the values that are numbers.
        whole: share of the values that are whole numbers.
        mean_words: mean number of words per value.
        mean_length: mean number of characters per value.
        listed: whether the values are lists.
    """

    name: str
    words: tuple[str, ...]
    filled: float
    distinct: int
    repeats: float
    numeric: float
    whole: float
    mean_words: float
    mean_length: float
    listed: bool = False

    @property
    def ignored(self) -> bool:
        """Whether it is an identifier, date, confidence, bookkeeping (`_golden`) or empty."""
        bookkeeping = self.name.startswith("_") or self.last_word in IGNORED_NAMES
        fused_id = re.search(r"[a-z]id$", self.name) is not None
        return bookkeeping or fused_id or self.distinct < 1

    @property
    def counts_rows(self) -> bool:
        """Whether the values are whole numbers that hardly repeat, as in an index."""
        return self.whole > 0.99 and self.repeats < 1.5 and self.distinct > 20

    @property
    def last_word(self) -> str:
        """The last word of the name that is not a number or a single letter, as in "text_a"."""
        longer = [w for w in self.words if len(w) > 1 and not w.isdigit()]
        return longer[-1].rstrip("0123456789") if longer else "".join(self.words[-1:])

    @property
    def reads_like_text(self) -> bool:
        """Whether the values are mostly different and several words long (or long, unspaced)."""
        worded = self.mean_words >= 3 or self.mean_length >= 25
        return worded and self.numeric < 0.5 and self.filled > 0.5 and self.repeats < 5


def name_words(name: str) -> tuple[str, ...]:
    """Splits "relatednessScore" and "relatedness_score" into ("relatedness", "score")."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return tuple(re.findall(r"[^\W_]+", spaced.lower()))


def profile(name: str, cells: Sequence[Cell]) -> Profile:
    """Measures one column on at most `SAMPLE` of its cells."""
    at = np.linspace(0, len(cells) - 1, num=min(len(cells), SAMPLE)).astype(int)
    sample = [cells[i] or "" for i in at]
    values = [cell.strip() for cell in sample if cell.strip()]
    count = max(1, len(values))
    numbers = [value for value in values if NUMBER.fullmatch(value)]
    distinct = len(set(values))
    return Profile(
        name=name,
        words=name_words(name),
        filled=len(values) / max(1, len(sample)),
        distinct=distinct,
        repeats=len(values) / max(1, distinct),
        numeric=len(numbers) / count,
        whole=sum(float(number).is_integer() for number in numbers) / count,
        mean_words=sum(len(value.split()) for value in values) / count,
        mean_length=sum(len(value) for value in values) / count,
        listed=bool(values) and all(read_words(value) is not None for value in values),
    )


def profiles(table: SourceTable) -> Mapping[str, Profile]:
    """The profile of every column, in the table's order."""
    return {name: profile(name, cells) for name, cells in table.columns.items()}


def infer_task(cells: Iterable[Cell]) -> TaskName:
    """Classification for words and for few different whole numbers, regression for scores."""
    values = [cell.strip() for cell in cells if cell is not None and cell.strip()]
    numbers = [float(value) for value in values if NUMBER.fullmatch(value)]
    if not numbers or len(numbers) < NUMERIC_SHARE * len(values):
        return "classification"
    whole = all(number.is_integer() for number in numbers)
    few = len(set(numbers)) <= MAX_NUMBERED_CLASSES
    return "classification" if whole and few else "regression"
