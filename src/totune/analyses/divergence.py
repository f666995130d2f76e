"""How far corpora lie from a reference, and whether that decides if tuning pays."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from totune.analyses.base import ANALYSES, Analysis, AnalysisResult
from totune.analyses.divergence_section import divergence_section
from totune.information.divergence import (
    LogBase,
    TermOptions,
    contributions,
    count_terms,
    jensen_shannon,
    shared_vocabulary,
    term_distribution,
)
from totune.progress import Progress
from totune.report.document import Section
from totune.runs.records import RunRecord

if TYPE_CHECKING:
    from totune.analyses.inputs.corpora import DivergenceInputs, NamedTexts

Shares = NDArray[np.float64]

_FEWEST = 3  # corpora with scores that a rank correlation needs


class TermCounts(NamedTuple):
    """The terms of a corpus, and the number of texts they come from."""

    name: str
    texts: int
    counts: Counter[str]

    @property
    def total(self) -> int:
        return self.counts.total()


@ANALYSES.register("divergence")
@dataclass(frozen=True)
class Divergence(Analysis["DivergenceInputs"]):
    """Jensen-Shannon divergence of term distributions (Ruder and Plank 2017), in nats.

    As in Peters et al. (2019, Table 6): beside it what a frozen encoder scores on each corpus, how
    much more that is than a tuned one's, and the rank correlation of the two over corpora. All
    corpora are compared over one vocabulary.

    Attributes:
        max_vocabulary: the most frequent terms of all corpora together that are compared; none
            compares all.
        lowercase: whether upper and lower case are the same term.
        stop_words: `english` leaves out a list of English function words.
        token_pattern: the regular expression of a term.
        base: base of the logarithm: `e` gives nats, as Ruder and Plank's program does; 2 gives
            bits, 1.443 times as many.
        distinctive_terms: number of a corpus's most distinctive terms that are shown.
        seed: seed of the sample that shows what size alone does, and of the orders of a permutation
            test of more than eight corpora.
    """

    title: ClassVar[str] = "Distance between corpora"

    max_vocabulary: Annotated[int, Field(ge=1)] | None = TermOptions.max_vocabulary
    lowercase: bool = TermOptions.lowercase
    stop_words: Literal["english"] | None = TermOptions.stop_words
    token_pattern: str = TermOptions.token_pattern
    base: LogBase = "e"
    distinctive_terms: Annotated[int, Field(ge=1)] = 6
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0

    def __post_init__(self) -> None:
        """Raises ConfigError if the vocabulary's options cannot be used."""
        self._terms()

    def run(self, inputs: "DivergenceInputs", progress: Progress) -> AnalysisResult:
        """Compares every corpus with the reference.

        Returns:
            A row per corpus. `divergence` is 0 to 0.693 nats, or with base 2 0 to 1 bit; `by_size`
            is what a sample of the reference, drawn word by word, has that is as small as the
            corpus; `covered` the share of its terms that are in the vocabulary; `difference` the
            frozen score minus the tuned.

        Raises:
            DataError: if a corpus holds no terms, or none that is compared.
        """
        reference, *others = self._count([inputs.reference, *inputs.others], progress)
        every = [reference, *others]
        vocabulary = shared_vocabulary([one.counts for one in every], self.max_vocabulary)
        shares = term_distribution(reference.counts, vocabulary, reference.name)
        rows = [
            {**self._compare(one, shares, vocabulary), **_scored(inputs.scores.get(one.name))}
            for one in others
        ]
        facts = {
            "reference": reference.name,
            "reference_texts": reference.texts,
            "reference_terms": reference.total,
            "vocabulary": len(vocabulary),
            "base": self.base,
            "metric": inputs.metric,
            "frozen": inputs.strategies[0],
            "tuned": inputs.strategies[1],
            "correlation": self._correlation(rows),
        }
        return AnalysisResult(rows, facts)

    def section(self, result: AnalysisResult, records: Sequence[RunRecord]) -> Section:
        """The finding in words, the paper's table, and a picture where corpora have scores."""
        return divergence_section(self.title, result)

    def _terms(self) -> TermOptions:
        return TermOptions(self.max_vocabulary, self.lowercase, self.stop_words, self.token_pattern)

    def _count(self, corpora: "Sequence[NamedTexts]", progress: Progress) -> list[TermCounts]:
        """The terms of every corpus."""
        found = []
        with progress.bar("counting terms", len(corpora)) as bar:
            for corpus in corpora:
                found.append(_count_corpus(corpus, self._terms()))
                bar.advance()
        return found

    def _compare(
        self, corpus: TermCounts, reference: Shares, vocabulary: Sequence[str]
    ) -> dict[str, Any]:
        """The columns of one corpus that need no scores."""
        shares = term_distribution(corpus.counts, vocabulary, corpus.name)
        inside = sum(corpus.counts[term] for term in vocabulary)
        drawn = np.random.default_rng(self.seed).multinomial(inside, reference) / inside
        return {
            "corpus": corpus.name,
            "texts": corpus.texts,
            "terms": corpus.total,
            "covered": inside / corpus.total,
            "divergence": jensen_shannon(shares, reference, self.base),
            "by_size": jensen_shannon(drawn, reference, self.base),
            "distinctive": ", ".join(self._distinctive(shares, reference, vocabulary)),
        }

    def _distinctive(
        self, shares: Shares, reference: Shares, vocabulary: Sequence[str]
    ) -> list[str]:
        """The terms, more frequent than in the reference, that add most to the divergence."""
        added = np.where(shares > reference, contributions(shares, reference), 0.0)
        order = np.argsort(-added, kind="stable")[: self.distinctive_terms]
        return [vocabulary[at] for at in order if added[at] > 0]

    def _correlation(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """Spearman's rho of divergence and difference; None where they leave nothing to rank."""
        from totune.statistics.ranks import rank_correlation

        known = [row for row in rows if row["difference"] is not None]
        both = [[row[name] for row in known] for name in ("divergence", "difference")]
        if len(known) < _FEWEST or any(len(set(side)) < 2 for side in both):
            return None
        return asdict(rank_correlation(both[0], both[1], self.seed))


def _count_corpus(corpus: "NamedTexts", options: TermOptions) -> TermCounts:
    passed = 0

    def texts() -> Iterator[str]:
        nonlocal passed
        for text in corpus.texts:
            passed += 1
            yield text

    counts = count_terms(texts(), options, corpus.name)
    return TermCounts(corpus.name, passed, counts)


def _scored(scores: Mapping[str, float] | None) -> dict[str, float | None]:
    if scores is None:
        return {"frozen": None, "tuned": None, "difference": None}
    frozen, tuned = scores["frozen"], scores["tuned"]
    return {"frozen": frozen, "tuned": tuned, "difference": round(frozen - tuned, 12)}
