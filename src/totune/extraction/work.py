"""One extraction, ready to go: rows, encoder, and how the one becomes files by the other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from totune.encoders.loading import Loaded, load_encoder
from totune.encoders.mixing import Reduction, View
from totune.errors import ConfigError
from totune.extraction.chunks import Chunk, Mark, cut, pending
from totune.extraction.corpus import Corpus, open_corpus
from totune.extraction.settings import ExtractionSettings
from totune.extraction.writing import Recipe
from totune.machine import choose_precision
from totune.progress import Progress
from totune.training.devices import Devices

_REDUCTIONS: dict[str, Reduction | None] = {
    "mean": "mean",
    "cls": "cls",
    "max": "max",
    "none": None,
}


@dataclass(frozen=True)
class Work:
    """One extraction, ready to go.

    Attributes:
        corpus: the rows.
        rows_per_shard: how they are cut.
        recipe: how a shard is made.
        fingerprint: of the encoder.
    """

    data: str
    corpus: Corpus
    settings: ExtractionSettings
    rows_per_shard: int
    recipe: Recipe
    loaded: Loaded
    fingerprint: str

    @property
    def configuration(self) -> dict[str, Any]:
        """What the shards depend on, beside the rows, whose hashes they carry."""
        recipe, columns = self.recipe, self.corpus.columns
        return {
            "text": columns.text,
            "pair": columns.pair,
            "keep": list(columns.keep),
            "encoder": self.fingerprint,
            "layers": list(recipe.view.depths),
            "pooling": recipe.view.reduction or "none",
            "max_length": recipe.max_length,
            "precision": recipe.precision,
            "dtype": recipe.dtype,
            "format": recipe.format,
            "rows_per_shard": self.rows_per_shard,
        }

    def chunks(self, finished: Mapping[int, Mark]) -> Iterator[Chunk]:
        """The shards that are left to do."""
        return pending(cut(self.corpus, self.rows_per_shard), finished)


def prepare(data: str | Path, settings: ExtractionSettings, out: Path, progress: Progress) -> Work:
    """Finds the rows and their columns, and loads the encoder; raises as `extract` does."""
    devices = Devices()
    if devices.world > 1:
        raise ConfigError(
            "Features are computed by one process; `executor='ray'` spreads them over several."
        )
    corpus = open_corpus(data, settings.text, settings.pair, settings.keep, settings.encoding)
    for note in corpus.notes:
        progress.say(note)
    loaded = load_encoder(settings.model)
    progress.say(loaded.note)
    encoder = loaded.encoder
    _check_encoder(loaded, settings, corpus)
    view = View(settings.depths(encoder.depth), _REDUCTIONS[settings.pooling])
    max_length = min(settings.max_length, encoder.max_length)
    recipe = Recipe(
        folder=out,
        view=view,
        max_length=max_length,
        precision=choose_precision(settings.precision, devices.device),
        dtype=settings.dtype,
        format=settings.format,
        keep=corpus.columns.keep,
    )
    rows = settings.shard_rows(len(view.depths), encoder.width, max_length)
    fingerprint = encoder.fingerprint()
    encoder.to(devices.device)
    return Work(str(data), corpus, settings, rows, recipe, loaded, fingerprint)


def _check_encoder(loaded: Loaded, settings: ExtractionSettings, corpus: Corpus) -> None:
    if not loaded.encoder.reads_words:
        return
    kind = loaded.encoder.kind
    if settings.pooling == "cls":
        raise ConfigError(
            f"pooling=cls: an encoder of type {kind} has no token that stands for the whole text. "
            "Use pooling=mean or pooling=max."
        )
    if corpus.columns.pair is not None:
        raise ConfigError(
            f"An encoder of type {kind} reads the texts of a pair apart: extract each column with "
            "`text`."
        )
