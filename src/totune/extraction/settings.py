"""The settings of an extraction of features, each declared once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from totune.errors import ConfigError
from totune.registry import DeclaredSettings, out_of_range, same_setting, setting
from totune.runs.settings import MACHINE, Settings

Pooling = Literal["mean", "cls", "max", "none"]
Format = Literal["safetensors", "arrow", "parquet"]
Dtype = Literal["float32", "float16"]
Executor = Literal["local", "ray"]

SHARD_BYTES = 64_000_000  # of vectors in a shard, about, where nobody says how many rows
SHARD_ROWS = 10_000  # at most, likewise

VECTORS, OUTPUT = "Vectors", "Output"


@dataclass(frozen=True)
class ExtractionSettings(DeclaredSettings):
    """What vectors are computed, of which texts, into which files."""

    model: str = same_setting(Settings, "model", panel=VECTORS)
    layers: str | Sequence[int] = setting(
        "top", "top, all, or numbers of layers; 0 is the embeddings.", VECTORS, typed="layers"
    )
    pooling: Pooling = setting(
        "mean",
        "Over a text's tokens: mean, cls (the first token), max, or none: a vector per token.",
        VECTORS,
    )
    max_length: int = same_setting(Settings, "max_length", panel=VECTORS)
    dtype: Dtype = setting("float32", "float32 or float16.", VECTORS)
    text: str | None = same_setting(Settings, "text")
    pair: str | None = same_setting(Settings, "pair")
    encoding: str | None = same_setting(Settings, "encoding")
    format: Format = setting(
        "safetensors",
        "safetensors (tensor 'vectors'; of every token also 'offsets', where each row begins), "
        "arrow or parquet (columns 'row' and 'vector', of several layers 'vector.0', ...).",
        OUTPUT,
    )
    keep: Sequence[str] = setting(
        (),
        "Further columns of the data for arrow or parquet; kept as text.",
        OUTPUT,
        metavar="COLUMNS",
        typed="names",
    )
    rows_per_shard: int | None = setting(
        None,
        "Memory grows with it. If not named 10,000, or fewer where vectors would take over 64 MB.",
        OUTPUT,
        ge=1,
    )
    precision: Literal["auto", "bf16", "fp32"] = same_setting(Settings, "precision")
    executor: Executor = setting(
        "local",
        "local, or ray: a Ray cluster, on which data, encoder and `out` have the same path on "
        "every machine.",
        MACHINE,
    )
    address: str | None = setting(
        None,
        "Of the Ray cluster; RAY_ADDRESS if not named, or else one started on this machine.",
        MACHINE,
    )

    def depths(self, depth: int) -> tuple[int, ...]:
        """The blocks whose outputs are kept, of an encoder of `depth` layers, bottom to top.

        Raises:
            ConfigError: when the encoder has no such layer.
        """
        if self.layers == "all":
            return tuple(range(depth + 1))
        if self.layers == "top":
            return (depth,)
        numbers = [number for number in self.layers if isinstance(number, int)]
        if not 0 <= min(numbers) <= max(numbers) <= depth:
            shown = ",".join(map(str, numbers))
            raise ConfigError(
                f"layers={shown}: this encoder has layers 0 (the embeddings) to {depth}."
            )
        return tuple(sorted(set(numbers)))

    def shard_rows(self, depths: int, width: int, max_length: int) -> int:
        """Rows of a shard: as named, or what holds the memory and the files small.

        Args:
            depths: how many layers are kept.
            width: H.
            max_length: the longest text in word pieces.
        """
        if self.rows_per_shard is not None:
            return self.rows_per_shard
        vectors = max_length if self.pooling == "none" else 1
        size = vectors * depths * width * (2 if self.dtype == "float16" else 4)
        return max(1, min(SHARD_ROWS, SHARD_BYTES // size))

    def contradictions(self) -> list[str]:
        faults = []
        words = ("top", "all")
        if not self.layers or (isinstance(self.layers, str) and self.layers not in words):
            limit = "top, all, or numbers of layers such as 0,6"
            faults.append(out_of_range("layers", self.layers, limit))
        if self.keep and self.format == "safetensors":
            faults.append(
                f"keep={','.join(self.keep)}: safetensors hold no text; choose `format='arrow'` or "
                "`format='parquet'`."
            )
        reserved = [name for name in self.keep if name == "row" or name.startswith("vector")]
        faults += [
            f"`keep`: a column of the output has the name {name!r} already." for name in reserved
        ]
        if self.address is not None and self.executor != "ray":
            faults.append(
                f"address={self.address!r} is of a Ray cluster: it needs `executor='ray'`."
            )
        return faults
