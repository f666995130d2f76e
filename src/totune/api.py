"""What `import totune` offers: the Python calls and the classes that they take and give."""

from pathlib import Path
from typing import Unpack

from totune import export
from totune.data.memory import MemoryTable
from totune.export import Merged, Predictor, load_model
from totune.extraction import Extracted, ExtractionSettings, extract
from totune.keywords import ExtractionKeywords
from totune.outputs import output_path
from totune.progress import Progress
from totune.registry import build, takes_settings
from totune.runs.callbacks import Callback
from totune.study.compare import compare
from totune.study.study import Study
from totune.study.train import train

__all__ = [
    "Callback",
    "Predictor",
    "Study",
    "compare",
    "extract_features",
    "load",
    "merge",
    "train",
]


def load(folder: str | Path, model: str | None = None) -> Predictor:
    """A trained model from the folder of `train`, or from a study's `best/`.

    Args:
        folder: the model's.
        model: for adapters or LoRA, where their encoder is, if it was moved.

    Raises:
        ModelError: if the folder or the encoder is missing or damaged, or the encoder is not the
            one that the model was trained with.
    """
    return load_model(Path(folder), model)


def merge(folder: str | Path, out: str | Path, model: str | None = None) -> Merged:
    """Makes a model of adapters or LoRA whole: a folder that needs no encoder from elsewhere.

    Args:
        folder: of such a model.
        out: a folder that is new or empty.
        model: where the encoder is, if it was moved.

    Returns:
        Whether the modules could be merged into the encoder's weights, and if not, why.

    Raises:
        ConfigError: if `out` holds something.
        ModelError: as `load`, and if there is nothing to merge.
    """
    return export.merge(Path(folder), output_path(out), model)


@takes_settings(ExtractionSettings)
def extract_features(
    data: str | Path | MemoryTable,
    *,
    out: str | Path,
    progress: Progress | None = None,
    **settings: Unpack[ExtractionKeywords],
) -> Extracted:
    """Computes a frozen encoder's vectors for any number of rows, into a folder of shards.

        for shard in totune.extract_features("texts.csv", out="vectors"):
            shard.first, shard.vectors      # the first row's number; [rows, H], mapped

    `totune.extraction.open_features("vectors")` opens them again.

    Args:
        data: a file, a folder of files, `hub:NAME`, or `example:NAME`; or a table in memory (a data
            frame, an Arrow table, a `datasets.Dataset`, a list of records), or a list of texts. No
            labels are needed.
        out: the folder. Shards that are finished there are not computed again.
        progress: receives notes, warnings and progress.
        **settings: of the extraction.

    Raises:
        TotuneError: as `totune.extraction.extract`.
    """
    chosen = build(ExtractionSettings, settings, "extract_features")
    return extract(data, chosen, output_path(out), progress or Progress())
