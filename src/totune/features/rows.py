"""How a view's numbers lie, and how a batch of them is read.

Row i is a contiguous [D, T_i, H] (T_i is 1 in a pooled view), rows end to end: a batch is read with
one copy per row and depth, straight to its padded place.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from totune.encoders.mixing import View
from totune.inputs.encodings import Encodings, Ragged


@dataclass(frozen=True)
class RowLayout:
    """Where each row lies.

    Attributes:
        depths: D, how many blocks' outputs are kept.
        width: H.
        bounds: row i holds positions bounds[i]..bounds[i + 1], [N + 1].
        dtype: of the numbers; bfloat16 lies in memory as int16, since NumPy does not know it.
    """

    depths: int
    width: int
    bounds: np.ndarray
    dtype: torch.dtype

    @classmethod
    def of(cls, pieces: Encodings, view: View, width: int, bf16: bool) -> "RowLayout":
        """The layout of `view`; pooled vectors stay float32, they are small."""
        if view.reduction is not None:
            return cls(len(view.depths), width, np.arange(len(pieces) + 1), torch.float32)
        bounds = np.asarray(pieces.offsets, dtype=np.int64)
        dtype = torch.bfloat16 if bf16 else torch.float32
        return cls(len(view.depths), width, bounds - bounds[0], dtype)

    @property
    def numpy_dtype(self) -> np.dtype:
        return np.dtype(np.int16 if self.dtype == torch.bfloat16 else np.float32)

    @property
    def count(self) -> int:
        return self.start(len(self.bounds) - 1)

    @property
    def nbytes(self) -> int:
        return self.count * self.numpy_dtype.itemsize

    def start(self, row: int) -> int:
        """The position of the row's first number."""
        return int(self.bounds[row]) * self.depths * self.width


class Features:
    """One view of one split, in memory or mapped from a file.

    Args:
        view: what the numbers are.
        layout: where each row lies.
        numbers: all of them, flat.
        seconds: what computing them took, whenever that was.
    """

    def __init__(
        self, view: View, layout: RowLayout, numbers: np.ndarray, seconds: float = 0.0
    ) -> None:
        self.view = view
        self.seconds = seconds
        self.nbytes = layout.nbytes
        self._layout = layout
        self._numbers = numbers

    def rows(self, indices: np.ndarray, max_length: int | None = None) -> Tensor:
        """The rows `indices` on the processor, float32 or (token views of bf16 runs) bfloat16.

        Args:
            indices: row numbers, [B].
            max_length: T of a token view; by default the longest of the rows.

        Returns:
            [B, D, H] for a pooled view; [B, D, T, H] with zeros as padding for a token view.

        Raises:
            ValueError: when a row is longer than `max_length`.
        """
        layout = self._layout
        if self.view.reduction is not None:
            table = self._numbers.reshape(-1, layout.depths, layout.width)
            return torch.from_numpy(table.take(indices, axis=0))
        batch = torch.from_numpy(self._padded(np.asarray(indices), max_length))
        return batch.view(layout.dtype)

    def selected(self, places: Ragged) -> "Selection":
        """Other rows over the same pieces.

        Args:
            places: positions of each row's pieces among all, in few consecutive runs.
        """
        return Selection(self, places)

    def chosen(self, numbers: np.ndarray) -> "ChosenRows":
        """Some of the rows, in this order, [N]."""
        return ChosenRows(self, numbers)

    def run(self, start: int, end: int) -> np.ndarray:
        """Consecutive pieces start..end of one row, [D, end - start, H] as they are stored."""
        layout = self._layout
        row = int(np.searchsorted(layout.bounds, start, side="right")) - 1
        first, last = layout.bounds[row], layout.bounds[row + 1]
        numbers = self._numbers[layout.start(row) : layout.start(row + 1)]
        whole = numbers.reshape(layout.depths, last - first, layout.width)
        return np.asarray(whole[:, start - first : end - first])

    @property
    def dtype(self) -> torch.dtype:
        return self._layout.dtype

    def _padded(self, indices: np.ndarray, max_length: int | None) -> np.ndarray:
        layout = self._layout
        lengths = layout.bounds[indices + 1] - layout.bounds[indices]
        longest = int(lengths.max(initial=0))
        length = longest if max_length is None else max_length
        if longest > length:
            raise ValueError(f"a row of {longest} pieces does not fit max_length={length}")
        shape = (len(indices), layout.depths, length, layout.width)
        out = np.empty(shape, dtype=layout.numpy_dtype)
        for place, row, pieces in zip(out, indices, lengths, strict=True):
            numbers = self._numbers[layout.start(row) : layout.start(row + 1)]
            place[:, :pieces] = numbers.reshape(layout.depths, pieces, layout.width)
            place[:, pieces:] = 0
        return out


class ChosenRows:
    """Some rows of a view."""

    def __init__(self, features: Features, numbers: np.ndarray) -> None:
        self.view = features.view
        self._features, self._numbers = features, numbers

    def rows(self, indices: np.ndarray) -> Tensor:
        """The rows `indices`, counted among those chosen, as `Features.rows` gives them."""
        return self._features.rows(self._numbers[indices])


class Selection:
    """Rows of a token view that are parts of its own rows, read without the rest."""

    def __init__(self, features: Features, places: Ragged) -> None:
        self.view = features.view
        self._features, self._places = features, places

    def rows(self, indices: np.ndarray) -> Tensor:
        """The rows `indices` [S], padded with zeros: [S, D, T, H]."""
        found = [self._row(int(row)) for row in indices]
        depths, _, width = found[0].shape
        length = max(row.shape[1] for row in found)
        out = np.zeros((len(found), depths, length, width), dtype=found[0].dtype)
        for place, row in zip(out, found, strict=True):
            place[:, : row.shape[1]] = row
        return torch.from_numpy(out).view(self._features.dtype)

    def _row(self, row: int) -> np.ndarray:
        places = self._places.row(row)
        cuts = np.flatnonzero(np.diff(places) != 1) + 1
        runs = [self._features.run(int(run[0]), int(run[-1]) + 1) for run in np.split(places, cuts)]
        return runs[0] if len(runs) == 1 else np.concatenate(runs, axis=1)
