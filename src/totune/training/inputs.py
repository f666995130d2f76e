"""Where a model's inputs come from: pieces, and the cached prefix where one is open."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from totune.data.batches import Batch, Pieces, ordered_batches
from totune.features import FeatureCache, Features
from totune.model import Model, Viewed
from totune.tasks.base import Task
from totune.training.devices import Devices

EVAL_TOKENS = 2048  # padded word pieces per evaluation batch; as fast as any on a processor


@dataclass(frozen=True)
class Split:
    """One tokenised split with its targets, [N] (None when predicting)."""

    name: str
    pieces: Pieces
    targets: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.pieces)


@dataclass(frozen=True)
class Source:
    """A split as the model reads it now: from the cached prefix of the phase, or whole."""

    split: Split
    features: Features | None = None

    def batch(self, indices: np.ndarray, device: torch.device) -> tuple[Batch, Viewed | None]:
        """Rows `indices`, padded together, on `device`."""
        batch = self.split.pieces.batch(indices)
        if self.split.targets is not None:
            batch = replace(batch, targets=torch.from_numpy(self.split.targets[indices]))
        batch = batch.to(device)
        if self.features is None:
            return batch, None
        rows = self.features.rows(indices).to(device)
        return batch, Viewed(self.features.view, rows)


def open_source(
    split: Split, model: Model, cache: FeatureCache | None, frozen_depth: int
) -> Source:
    """Opens (or fills) the cache for what is frozen; without a cache the prefix is recomputed."""
    view = model.view(frozen_depth)
    if view is None or cache is None:
        return Source(split)
    description = f"frozen blocks 0..{frozen_depth} of {split.name}"
    precision = model.precision
    return Source(split, cache.features(model.encoder, split.pieces, view, precision, description))


def predict(model: Model, source: Source, task: Task, devices: Devices) -> np.ndarray:
    """Outputs [N, C] for every row of a split, dropout off."""
    was_training = model.training
    model.eval()
    outputs = np.zeros((len(source.split), task.outputs), dtype=np.float32)
    batches = list(ordered_batches(source.split.pieces.lengths, EVAL_TOKENS, EVAL_TOKENS))
    with torch.no_grad():
        for indices in batches[devices.rank :: devices.world]:
            batch, viewed = source.batch(indices, devices.device)
            outputs[indices] = model(batch, viewed).float().cpu().numpy()
    model.train(was_training)
    return devices.total(outputs)
