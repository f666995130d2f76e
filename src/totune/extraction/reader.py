"""Reading what was extracted, shard by shard."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from totune.errors import ConfigError
from totune.extraction.formats import read_arrays, read_table
from totune.extraction.ledger import read_facts


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
