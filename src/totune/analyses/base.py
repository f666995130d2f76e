"""What every analysis is: options as a frozen dataclass, plain data out, a section drawn."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from totune.progress import Progress
from totune.registry import Registry
from totune.report.document import Section
from totune.runs.records import RunRecord

M = TypeVar("M")  # what an analysis reads


@dataclass(frozen=True)
class Values:
    """What an analysis found.

    Attributes:
        rows: one flat mapping per measurement, of strings, numbers, booleans and None.
        facts: what holds for all of them, as JSON can hold it.
    """

    rows: Sequence[Mapping[str, Any]]
    facts: Mapping[str, Any] = field(default_factory=dict)


class Analysis(ABC, Generic[M]):
    """A question, asked of encoders, texts or runs.

    Attributes:
        title: of the section it draws.
        reads_runs: whether what it finds depends on a study's runs, so that later ones are missing.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reads_runs: ClassVar[bool] = False

    @abstractmethod
    def run(self, material: M, progress: Progress) -> Values:
        """Measures; equal options and material give equal values.

        Raises:
            ConfigError: if the options do not fit the material.
            DataError: if the material does not allow an answer.
        """

    @abstractmethod
    def section(self, values: Values, records: Sequence[RunRecord]) -> Section:
        """Tables and figures of `values`.

        Args:
            values: as `run` gave them, now or read from a file.
            records: the runs of the study that the section stands in; none outside a study.
        """


ANALYSES: Registry[Analysis[Any]] = Registry("analysis", "totune.analyses")
