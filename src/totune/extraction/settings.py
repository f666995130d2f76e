"""What can be said about an extraction of features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from totune.encoders.sources import DEFAULT_ENCODER
from totune.errors import ConfigError
from totune.machine import choose_precision
from totune.registry import did_you_mean

Pooling = Literal["mean", "cls", "max", "none"]
Format = Literal["safetensors", "arrow", "parquet"]
Dtype = Literal["float32", "float16"]
Executor = Literal["local", "ray"]

SHARD_BYTES = 64_000_000  # of vectors in a shard, about, where nobody says how many rows
SHARD_ROWS = 10_000  # at the most, likewise


@dataclass(frozen=True)
class ExtractionSettings:
    """The command line's options have these names.

    Attributes:
        model: the encoder: hub id, local folder, or the alias `minilm`.
        text, pair: columns of the texts; detected if None.
        keep: other columns that are carried into the output, as text; not for safetensors.
        encoding: of text files; UTF-8 if None.
        layers: "top", "all" (0, the embeddings, to the top), or numbers of layers.
        pooling: over a text's tokens: "mean", "cls" (the first token), "max", or "none" for a
            vector per token.
        max_length: texts are cut after this many word pieces (at most the encoder's own limit).
        rows_per_shard: rows of a file; if None 10,000, or fewer where vectors would take more
            than about 64 MB.
        format: "safetensors", "arrow" or "parquet".
        dtype: of the vectors: "float32" or "float16".
        precision: that the encoder computes in: "auto", "bf16" or "fp32".
        executor: "local", or "ray" for the machines of a Ray cluster.
        address: of the Ray cluster; RAY_ADDRESS if None, or else one started on this machine.
    """

    model: str = DEFAULT_ENCODER
    text: str | None = None
    pair: str | None = None
    keep: Sequence[str] = ()
    encoding: str | None = None
    layers: str | Sequence[int] = "top"
    pooling: str = "mean"
    max_length: int = 256
    rows_per_shard: int | None = None
    format: str = "safetensors"
    dtype: str = "float32"
    precision: str = "auto"
    executor: str = "local"
    address: str | None = None

    def check(self) -> None:
        """Finds every fault before anything is read or loaded.

        Raises:
            ConfigError: with all faults.
        """
        faults = [
            *self._wrong_names(),
            *self._out_of_range(),
            *self._contradictions(),
        ]
        try:
            choose_precision(self.precision)
        except ConfigError as error:
            faults += error.faults
        if faults:
            raise ConfigError(faults)

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

    def _wrong_names(self) -> list[str]:
        choices = {"pooling": Pooling, "format": Format, "dtype": Dtype, "executor": Executor}
        return [
            f"{name}={getattr(self, name)!r} is not known. "
            f"{did_you_mean(getattr(self, name), get_args(known))}"
            for name, known in choices.items()
            if getattr(self, name) not in get_args(known)
        ]

    def _out_of_range(self) -> list[str]:
        limits = {
            "layers": (self._has_layers(), "top, all, or numbers of layers such as 0,6"),
            "max_length": (self.max_length >= 8, "at least 8 word pieces"),
            "rows_per_shard": (
                self.rows_per_shard is None or self.rows_per_shard >= 1,
                "1 or more",
            ),
        }
        return [
            f"{name}={getattr(self, name)!r} is out of range: it must be {limit}."
            for name, (holds, limit) in limits.items()
            if not holds
        ]

    def _contradictions(self) -> list[str]:
        faults = []
        if self.keep and self.format == "safetensors":
            faults.append(
                f"keep={','.join(self.keep)}: safetensors hold no text; choose the format arrow or "
                "parquet."
            )
        reserved = [name for name in self.keep if name == "row" or name.startswith("vector")]
        faults += [
            f"keep: a column of the output has the name {name!r} already." for name in reserved
        ]
        if self.address is not None and self.executor != "ray":
            faults.append(f"address={self.address!r} is of a Ray cluster: it needs executor=ray.")
        return faults

    def _has_layers(self) -> bool:
        if isinstance(self.layers, str):
            return self.layers in ("top", "all")
        return len(self.layers) > 0
