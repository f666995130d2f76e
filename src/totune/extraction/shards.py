"""The files of vectors, one per shard: written, and read again.

The same rows give the same bytes, whoever writes them and when.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import safe_open
from safetensors.numpy import save as as_safetensors

from totune.data.tables import Cell
from totune.errors import ConfigError
from totune.extraction.manifest import read_facts
from totune.extraction.vectors import Vectors

SUFFIXES = {"safetensors": ".safetensors", "arrow": ".arrow", "parquet": ".parquet"}
ABOUT = "totune"  # the key of a file's metadata
VECTOR = "vector"  # the column; of several layers `vector.0`, `vector.6`, ...


def column_names(layers: Sequence[int]) -> list[str]:
    """The columns of a table's vectors, one per layer."""
    return [VECTOR] if len(layers) == 1 else [f"{VECTOR}.{layer}" for layer in layers]


def shard_content(
    kind: str,
    vectors: Vectors,
    first: int,
    layers: Sequence[int],
    kept: Mapping[str, Sequence[Cell]],
) -> bytes:
    """The bytes of a shard's file.

    Args:
        kind: "safetensors", "arrow" or "parquet".
        vectors: of its rows.
        first: the number of its first row.
        layers: which these are.
        kept: further columns of a table.
    """
    about = json.dumps({"first_row": first, "layers": list(layers)})
    if kind == "safetensors":
        # With several keys, safetensors would write them in another order each time.
        return bytes(as_safetensors(_tensors(vectors), metadata={ABOUT: about}))
    table = _table(vectors, first, layers, kept).replace_schema_metadata({ABOUT: about})
    sink = pa.BufferOutputStream()
    if kind == "parquet":
        pq.write_table(table, sink, compression="zstd")
    else:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    return bytes(sink.getvalue())


def _tensors(vectors: Vectors) -> dict[str, np.ndarray]:
    """`vectors`, without the axis of layers if there is one layer; `offsets` of tokens."""
    one = vectors.numbers.shape[1] == 1
    found = {"vectors": vectors.numbers[:, 0] if one else vectors.numbers}
    if vectors.offsets is not None:
        found["offsets"] = vectors.offsets
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def _table(
    vectors: Vectors, first: int, layers: Sequence[int], kept: Mapping[str, Sequence[Cell]]
) -> Any:
    """A row's number, the kept columns, and its vector (of every token, a list) for each layer."""
    offsets = vectors.offsets
    count = len(vectors.numbers) if offsets is None else len(offsets) - 1
    columns: dict[str, Any] = {"row": pa.array(range(first, first + count), pa.int64())}
    columns |= {name: pa.array(cells, pa.string()) for name, cells in kept.items()}
    width = vectors.numbers.shape[2]
    for at, name in enumerate(column_names(layers)):
        flat = pa.array(np.ascontiguousarray(vectors.numbers[:, at]).reshape(-1))
        lists = pa.FixedSizeListArray.from_arrays(flat, width)
        if offsets is not None:
            lists = pa.LargeListArray.from_arrays(pa.array(offsets), lists)
        columns[name] = lists
    return pa.table(columns)


def read_arrays(path: Path, layers: Sequence[int]) -> tuple[np.ndarray, np.ndarray | None]:
    """A shard's vectors and offsets, mapped from the file where its format allows it.

    Args:
        path: of the file.
        layers: which it has.

    Returns:
        [N, H], or [N, D, H] of several layers D; of every token [tokens, ...] and [N + 1].
    """
    if path.suffix == SUFFIXES["safetensors"]:
        arrays = _mapped_tensors(path)
        return arrays["vectors"], arrays.get("offsets")
    table = read_table(path)
    found = [_column(table.column(name)) for name in column_names(layers)]
    numbers = found[0][0] if len(found) == 1 else np.stack([one for one, _ in found], axis=1)
    return numbers, found[0][1]


def read_table(path: Path) -> Any:
    """The `pyarrow.Table` of a shard, mapped where it is Arrow's format."""
    if path.suffix == SUFFIXES["parquet"]:
        return pq.read_table(path)
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _mapped_tensors(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file, mapped: through torch, for safetensors copies what NumPy asks for."""
    found = {}
    with safe_open(path, framework="pt") as file:
        for name in file.keys():
            found[name] = file.get_tensor(name).numpy()
            found[name].flags.writeable = False
    return found


def _column(column: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """A column of vectors as [N, H], or that of tokens as [tokens, H] with its offsets [N + 1]."""
    lists = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    offsets = None
    if not pa.types.is_fixed_size_list(lists.type):
        offsets = lists.offsets.to_numpy()
        lists = lists.values
    width = lists.type.list_size
    return lists.values.to_numpy(zero_copy_only=True).reshape(-1, width), offsets


@dataclass(frozen=True)
class Shard:
    """One file of vectors; what is read of it is mapped, not loaded (Parquet apart).

    Attributes:
        path: of the file.
        first: the number of its first row among all, from 0.
        rows: how many it has, N.
        layers: which it has, D.
    """

    path: Path
    first: int
    rows: int
    layers: tuple[int, ...]

    @property
    def vectors(self) -> np.ndarray:
        """[N, H], or [N, D, H] of several layers; of every token [tokens of all rows, ...]."""
        return self._arrays[0]

    @property
    def offsets(self) -> np.ndarray | None:
        """Of every token: row i has vectors[offsets[i]:offsets[i + 1]], [N + 1]; else None."""
        return self._arrays[1]

    def table(self) -> Any:
        """The `pyarrow.Table` with the kept columns; of Arrow and Parquet files alone."""
        return read_table(self.path)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray | None]:
        return read_arrays(self.path, self.layers)


class Extracted:
    """A folder of vectors: iterates over its shards, in the order of the rows.

    Attributes:
        folder: where they are.
        facts: what `features.json` says: encoder, layers, pooling, ...
    """

    def __init__(self, folder: Path, facts: dict[str, Any]) -> None:
        self.folder = folder
        self.facts = facts
        layers = tuple(facts["configuration"]["layers"])
        self._shards = [
            Shard(folder / each["file"], each["first"], each["rows"], layers)
            for each in facts["shards"]
        ]

    def __len__(self) -> int:
        """How many rows there are."""
        return int(self.facts["rows"])

    def __iter__(self) -> Iterator[Shard]:
        return iter(self._shards)


def open_features(folder: str | Path) -> Extracted:
    """The vectors of a folder that `totune features` filled.

        for shard in open_features("vectors"):
            shard.first, shard.vectors      # the first row's number; [rows, H], mapped

    Raises:
        ConfigError: if it holds none, or not all of them yet.
    """
    place = Path(folder).expanduser()
    facts = read_facts(place)
    if not facts.get("complete"):
        raise ConfigError(
            f"{place} is not finished: the same totune features command does the rest."
        )
    return Extracted(place, facts)
