"""Where a model's inputs come from: pieces, and the cached prefix where one is open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from totune.data.examples import Label
from totune.features import ChosenRows, FeatureCache, Features, Selection
from totune.inputs.batches import Batch, in_halves, ordered_batches
from totune.inputs.encodings import EncodedSplit, Encodings
from totune.model import Model, Viewed
from totune.tasks.base import Task
from totune.training.devices import Devices

EVAL_TOKENS = 2048  # padded word pieces per evaluation batch; as fast as any on a processor


@dataclass(frozen=True)
class Among:
    """Where the inputs of a split stand among those of a larger one.

    Attributes:
        pieces: every input of the larger one.
        inputs: the numbers of the split's inputs in it, in order.
    """

    pieces: Encodings
    inputs: np.ndarray


@dataclass(frozen=True)
class Split:
    """One tokenised split with its targets; U units, N rows, P positions.

    Attributes:
        units: what batches are made of.
        targets: as metrics compare them, [N] or [N, W]; None when predicting.
        flat: as the loss compares them, [P]; None when predicting.
        among: the rows whose frozen features its own are read from, as the folds of one dataset
            share theirs; None where it has features of its own.
    """

    name: str
    units: EncodedSplit
    targets: np.ndarray | None = None
    flat: np.ndarray | None = None
    among: Among | None = None

    @classmethod
    def labelled(
        cls, name: str, units: EncodedSplit, task: Task, labels: Sequence[Label]
    ) -> "Split":
        """A split whose rows have these labels."""
        targets = task.targets(labels)
        return cls(name, units, targets, task.flat(targets))

    def __len__(self) -> int:
        return len(self.units.counts)

    @property
    def pieces(self) -> Encodings:
        return self.units.pieces

    @property
    def positions(self) -> int:
        """P, how many positions are predicted."""
        return int(self.units.counts.sum())


@dataclass(frozen=True)
class InputSource:
    """A split as the model reads it now: from the cached prefix of the phase, or whole.

    Attributes:
        units: what batches are drawn from: those of the split, or its sentences alone.
        features: the cached prefix, by input of `units`.
        sides: whether the head reads texts or sentences apart.
    """

    split: Split
    units: EncodedSplit
    features: Features | Selection | ChosenRows | None = None
    sides: bool = False

    def batch(self, indices: np.ndarray, device: torch.device) -> tuple[Batch, Viewed | None]:
        """Units `indices`, padded together, on `device`."""
        if self.features is None and self.units.whole is not None:
            batch = self.units.whole.batch_of_rows(indices)
        else:
            batch = self.units.batch(indices, self.sides)
        if self.split.flat is not None:
            targets = torch.from_numpy(self.split.flat[self.units.positions(indices)])
            batch = replace(batch, targets=targets)
        batch = batch.to(device)
        if self.features is None:
            return batch, None
        rows = self.features.rows(batch.indices).to(device)
        return batch, Viewed(self.features.view, rows)


def open_source(
    split: Split,
    model: Model,
    cache: FeatureCache | None,
    frozen_depth: int,
    training: bool = False,
) -> InputSource:
    """Opens (or fills) the cache for what is frozen; without a cache the prefix is recomputed.

    Over a frozen encoder words are tagged sentence by sentence, whatever they were encoded with.
    In training this holds without a cache too, so that batches, and with them results, are the
    same: there every sentence costs the encoding of its whole unit. A mix that reads the batch
    would see what is left out, so it gets whole units.
    """
    units, sides = split.units, model.wants in ("pair", "words")
    view = model.view(frozen_depth)
    features = None
    if view is not None and cache is not None:
        among, precision = split.among, model.precision
        description = (
            f"frozen blocks 0..{frozen_depth} of {split.name if not among else 'all rows'}"
        )
        pieces = units.pieces if among is None else among.pieces
        features = cache.features(model.encoder, pieces, view, precision, description)
        if features is not None and among is not None:
            return InputSource(split, units, features.chosen(among.inputs), sides)
    frozen = frozen_depth == model.encoder.depth
    by_sentence = model.wants == "words" and frozen and not model.readout.reads_batch
    if by_sentence and (features is not None or training):
        alone = units.alone()
        chosen = features and features.selected(units.sides[0])
        return InputSource(split, alone, chosen, sides)
    return InputSource(split, units, features, sides)


@dataclass(frozen=True)
class Outputs:
    """What a model says of a split.

    Attributes:
        values: [P, C]; the largest of each position is the prediction where classes are predicted.
        losses: [P], zeros where the split has no targets.
    """

    values: np.ndarray
    losses: np.ndarray


def predict(model: Model, source: InputSource, devices: Devices) -> Outputs:
    """Outputs for every position of a split, dropout off.

    Raises:
        RunError: if a single row does not fit into memory; batches that do not are halved.
    """
    split, units = source.split, source.units
    values = np.zeros((split.positions, model.task.outputs), dtype=np.float32)
    losses = np.zeros(split.positions, dtype=np.float32)

    def write(indices: np.ndarray, batch: Batch, viewed: Viewed | None) -> None:
        found, at = model(batch, viewed), units.positions(indices)
        values[at] = model.best(found, batch).float().cpu().numpy()
        if batch.targets is not None:
            losses[at] = model.losses(found, batch).float().cpu().numpy()

    _each_batch(model, source, devices, write)
    return Outputs(devices.total(values), devices.total(losses))


def linear_inputs(model: Model, source: InputSource, devices: Devices) -> np.ndarray:
    """What the head's linear layer reads at every position of a split, [P, F].

    Raises:
        RunError: if a single row does not fit into memory; batches that do not are halved.
    """
    layer = model.head.linear_layer()
    assert layer is not None, "only of a head that is one linear layer"
    vectors = np.zeros((source.split.positions, layer.in_features), dtype=np.float32)

    def write(indices: np.ndarray, batch: Batch, viewed: Viewed | None) -> None:
        found = model.head.linear_inputs(model.read(batch, viewed))
        vectors[source.units.positions(indices)] = found.float().cpu().numpy()

    _each_batch(model, source, devices, write)
    return devices.total(vectors)


def _each_batch(
    model: Model,
    source: InputSource,
    devices: Devices,
    write: Callable[[np.ndarray, Batch, Viewed | None], None],
) -> None:
    """Hands this process's batches of a split to `write`, dropout off and without gradients."""
    was_training = model.training
    model.eval()
    lengths = source.units.lengths
    batches = list(ordered_batches(lengths, EVAL_TOKENS, EVAL_TOKENS))
    with torch.no_grad():
        in_halves(
            batches[devices.rank :: devices.world],
            lambda indices: write(indices, *source.batch(indices, devices.device)),
            lengths,
        )
    model.train(was_training)
