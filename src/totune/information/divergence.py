"""How far two corpora lie apart: Jensen-Shannon divergence between their term distributions.

As Ruder and Plank (2017) compare domains, and Peters et al. (2019, Table 6) MNLI's genres with the
pretraining corpus. Corpora are streams of texts: each is read once, and what is kept is a count
per distinct term.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from totune.errors import ConfigError, DataError

Floats = NDArray[np.float64]
LogBase = Literal[2, "e"]
UNITS: dict[LogBase, str] = {2: "bits", "e": "nats"}
_NATS: dict[LogBase, float] = {2: math.log(2), "e": 1.0}  # of one unit
_ROUNDING = 1e-9  # by which the sum of a distribution may miss 1


@dataclass(frozen=True)
class TermOptions:
    """What counts as a term, and how many terms are compared.

    Attributes:
        max_vocabulary: the most frequent terms of both corpora together that are compared; Ruder
            and Plank take 10,000. None compares all.
        lowercase: whether upper and lower case are the same term.
        stop_words: "english" leaves out scikit-learn's list of English function words.
        token_pattern: the regular expression of a term: here a run of letters and digits.
    """

    max_vocabulary: int | None = 10_000
    lowercase: bool = True
    stop_words: Literal["english"] | None = None
    token_pattern: str = r"\b\w+\b"

    def __post_init__(self) -> None:
        """Raises ConfigError with every option that cannot be used."""
        faults = []
        if self.max_vocabulary is not None and self.max_vocabulary < 1:
            faults.append(f"max_vocabulary is {self.max_vocabulary}; it must be at least 1.")
        if self.stop_words not in (None, "english"):
            faults.append(f"stop_words is {self.stop_words!r}; it is 'english' or none.")
        try:
            groups = re.compile(self.token_pattern).groups
        except re.error as error:
            faults.append(
                f"token_pattern {self.token_pattern!r} is no regular expression: {error}."
            )
        else:
            if groups > 1:
                faults.append(
                    f"token_pattern {self.token_pattern!r} has {groups} groups; "
                    "at most one may capture the term. Write the others as (?:...)."
                )
        if faults:
            raise ConfigError(faults)

    def analyzer(self) -> Callable[[str], list[str]]:
        """What splits a text into terms."""
        from sklearn.feature_extraction.text import CountVectorizer

        vectorizer = CountVectorizer(
            lowercase=self.lowercase, stop_words=self.stop_words, token_pattern=self.token_pattern
        )
        analyze: Callable[[str], list[str]] = vectorizer.build_analyzer()
        return analyze


def count_terms(
    texts: Iterable[str], options: TermOptions | None = None, corpus: str = "the corpus"
) -> Counter[str]:
    """How often each term occurs in a stream of texts, which is read once.

    Args:
        texts: one string per text.
        options: what counts as a term; the defaults if None.
        corpus: what messages call the texts.

    Raises:
        DataError: if an item is no string, or no text holds a term.
    """
    if isinstance(texts, str):
        raise DataError(f"{corpus} is one string. Give a list of texts, or a file's lines.")
    analyze = (options or TermOptions()).analyzer()
    counts: Counter[str] = Counter()
    row = 0
    for row, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DataError(
                f"{corpus}: row {row:,} (counted from 1) is {text!r}, no text. Leave it out."
            )
        counts.update(analyze(text))
    if not counts:
        raise DataError(_no_terms(corpus, row))
    return counts


def shared_vocabulary(corpora: Sequence[Counter[str]], size: int | None = None) -> list[str]:
    """The most frequent terms of all corpora together, the most frequent first.

    Terms that occur equally often stand in the order of the alphabet.

    Args:
        corpora: counts from `count_terms`, one per corpus.
        size: how many terms; all if None.
    """
    together: Counter[str] = sum(corpora, Counter())
    ranked = sorted(together, key=lambda term: (-together[term], term))
    return ranked[:size]


def term_distribution(
    counts: Counter[str], vocabulary: Sequence[str], corpus: str = "the corpus"
) -> Floats:
    """The share of each term of the vocabulary [V] among those of a corpus; sums to 1.

    Raises:
        DataError: if the corpus holds no term of the vocabulary.
    """
    found = np.array([counts[term] for term in vocabulary], dtype=np.float64)
    total = found.sum()
    if not total:
        raise DataError(
            f"{corpus} holds none of the {len(vocabulary):,} most frequent terms of all corpora "
            "together. Raise max_vocabulary."
        )
    shares: Floats = found / total
    return shares


def largest_divergence(base: LogBase) -> float:
    """The Jensen-Shannon divergence of disjoint distributions: 1 bit, or ln 2 = 0.693 nats."""
    return math.log(2) / _NATS[base]


def jensen_shannon(p: ArrayLike, q: ArrayLike, base: LogBase = 2) -> float:
    """Jensen-Shannon divergence: 0 for equal distributions, 1 bit for disjoint ones.

    JS = (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2 (Lin 1991; Ruder and Plank 2017). Its
    square root, which SciPy gives, is a metric; this is not.

    Args:
        p: [V] shares of terms, which sum to 1.
        q: [V] shares of the same terms in another corpus.
        base: of the logarithm: 2 gives bits, "e" nats.

    Raises:
        DataError: if they differ in shape, or one is no distribution.
    """
    first, second = (np.asarray(shares, dtype=np.float64) for shares in (p, q))
    if first.shape != second.shape or first.ndim != 1:
        raise DataError(
            f"Two distributions over one vocabulary are compared, both [V], and these are "
            f"{list(first.shape)} and {list(second.shape)}."
        )
    for name, shares in (("first", first), ("second", second)):
        if not (shares >= 0).all() or abs(shares.sum() - 1) > _ROUNDING:
            raise DataError(
                f"The {name} is no distribution: its shares must be 0 or more and sum to 1, and "
                f"the least is {shares.min(initial=0)}, the sum {shares.sum()}."
            )
    found = contributions(first, second, base).sum()
    return float(np.clip(found, 0.0, largest_divergence(base)))


def contributions(p: Floats, q: Floats, base: LogBase = 2) -> Floats:
    """What each term adds to the Jensen-Shannon divergence of two distributions [V]."""
    from scipy.special import rel_entr

    middle = (p + q) / 2
    return np.asarray((rel_entr(p, middle) + rel_entr(q, middle)) / (2 * _NATS[base]))


def corpus_divergence(
    first: Iterable[str], second: Iterable[str], options: TermOptions | None = None
) -> float:
    """Jensen-Shannon divergence in bits between two streams of texts, each read once.

    Raises:
        DataError: if an item is no string, or a corpus holds no term that is compared.
    """
    options = options or TermOptions()
    names = ("the first corpus", "the second corpus")
    counts = [
        count_terms(texts, options, name)
        for texts, name in zip((first, second), names, strict=True)
    ]
    vocabulary = shared_vocabulary(counts, options.max_vocabulary)
    p, q = (
        term_distribution(found, vocabulary, name)
        for found, name in zip(counts, names, strict=True)
    )
    return jensen_shannon(p, q)


def _no_terms(corpus: str, rows: int) -> str:
    if not rows:
        return f"{corpus} is empty. A term distribution needs at least one text."
    return (
        f"None of the {rows:,} texts of {corpus} holds a term. Check token_pattern and stop_words, "
        "and which column is read as text."
    )
