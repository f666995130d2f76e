"""What every analysis is: options as a frozen dataclass, plain data out, a section drawn."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, ClassVar, Generic, TypeVar

from totune.progress import Progress
from totune.registry import Registry
from totune.report.document import Section
from totune.runs.records import RunRecord

In = TypeVar("In")  # what an analysis reads
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class AnalysisResult:
    """What an analysis measured, as plain data.

    Attributes:
        rows: one flat mapping per measurement, of strings, numbers, booleans and None.
        facts: what holds for all rows, as JSON can hold it.
    """

    rows: Rows
    facts: Mapping[str, Any] = field(default_factory=dict)


class Analysis(ABC, Generic[In]):
    """A question, asked of encoders, texts or runs.

    Attributes:
        title: title of the section it draws.
        reads_runs: whether the result depends on a study's runs, so that later ones are missing.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reads_runs: ClassVar[bool] = False

    @abstractmethod
    def run(self, inputs: In, progress: Progress) -> AnalysisResult:
        """Measures; equal options and inputs give an equal result.

        Raises:
            ConfigError: if the options do not fit the inputs.
            DataError: if the inputs do not allow an answer.
        """

    @abstractmethod
    def section(self, result: AnalysisResult, records: Sequence[RunRecord]) -> Section:
        """Tables and figures of a result.

        Args:
            result: as `run` gave it, now or read from a file.
            records: the runs of the study that the section stands in; none outside a study.
        """


ANALYSES: Registry[Analysis[Any]] = Registry("analysis", "totune.analyses")


def finite(value: float | None) -> float | None:
    """The value, or None where it is not a finite number."""
    return float(value) if value is not None and math.isfinite(value) else None


def mean_of_known(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are not None; None where all are."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def degenerate_warning(
    runs: Iterable[tuple[str, int | None]], records: Sequence[RunRecord]
) -> tuple[str, ...]:
    """Names the degenerate runs among some; empty where there are none.

    Args:
        runs: labels of strategies and seeds; entries that are no runs are ignored.
        records: runs of the study that they come from.
    """
    known = set(runs)
    odd = [run for run in records if run.degenerate and (run.strategy, run.seed) in known]
    if not odd:
        return ()
    named = ", ".join(f"{run.strategy} seed {run.seed} ({run.degenerate})" for run in odd)
    return (f"Degenerate runs count in what is shown like the others: {named}.",)
