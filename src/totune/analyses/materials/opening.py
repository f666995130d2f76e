"""From a dataset, or a study, to what analyses read."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from totune.analyses.materials.states import States
from totune.progress import Progress
from totune.registry import build
from totune.runs.context import Context
from totune.runs.prepare import prepare
from totune.runs.records import RunRecord
from totune.runs.reopen import FinishedRun, finished_runs, reopen
from totune.runs.settings import Settings


@dataclass(frozen=True)
class Opened:
    """A dataset with its encoder, and the runs of a study of it, if one was named.

    Attributes:
        context: data, task, encoder, cache.
        records: every run of the study.
        study: its folder.
        strategies: of the study, whose models are looked into; all if empty.
    """

    context: Context
    records: Sequence[RunRecord] = ()
    study: Path | None = None
    strategies: Sequence[str] = ()

    @cached_property
    def runs(self) -> Sequence[FinishedRun]:
        """The runs whose trained weights can be looked into; tells of those whose cannot.

        Raises:
            ConfigError: if the study has no such strategy.
        """
        if self.study is None:
            return ()
        return finished_runs(self.study, self.records, self.strategies, self.context.progress)

    @property
    def states(self) -> States:
        """The hidden states of the encoder, and of those that the runs adapted."""
        return States(self.context, self.runs)

    @property
    def about(self) -> dict[str, Any]:
        """Data, encoder and precision, as findings record them."""
        data, encoder = self.context.dataset, self.context.loaded.encoder
        return {
            "data": data.name,
            "digest": data.digest(),
            "rows": {name: len(split) for name, split in data.splits().items()},
            "columns": asdict(data.columns),
            "metric": self.context.settings.metric,
            "model": self.context.loaded.name,
            "fingerprint": encoder.fingerprint(),
            "precision": self.context.precision,
        }


def open_data(
    data: str | Path,
    *,
    study: Path | None = None,
    strategies: Sequence[str] = (),
    progress: Progress | None = None,
    **settings: Any,
) -> Opened:
    """Reads a dataset and its encoder; with a study, the models that it trained too.

    Args:
        data: as for `totune.compare`.
        study: a study's folder; its settings hold unless named in `settings`.
        strategies: of the study, whose models are looked into; all if empty.
        progress: told of everything that goes on.
        **settings: see `totune.runs.settings.Settings`.

    Raises:
        TotuneError: as `totune.compare`; `ConfigError` if the study is of other data or of another
            encoder.
    """
    progress = progress or Progress()
    if study is None:
        return Opened(prepare(data, build(Settings, settings, "analyze"), progress))
    context, _, records = reopen(study, data, settings, progress)
    return Opened(context, records, study, strategies)
