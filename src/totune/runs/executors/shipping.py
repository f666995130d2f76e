"""What the runs of a study share, as something that another process can be given.

Loaded data and encoder travel, not where they came from: a worker needs neither files nor a hub.
"""

import copy
import pickle
from dataclasses import dataclass, field, replace
from pathlib import Path

from totune.data.examples import Dataset, SplitName
from totune.encoders.loading import Loaded
from totune.features import FeatureCache
from totune.inputs.encoded import EncodingOptions
from totune.machine import Precision, keep_freed_memory
from totune.runs.context import Context
from totune.runs.executors.messages import Send, SendingProgress, SendingWatcher
from totune.tasks.base import Task
from totune.training.devices import Devices
from totune.training.inputs import Split
from totune.training.trainer import TrainingSettings


@dataclass(frozen=True)
class CachePlace:
    """Where a worker keeps frozen features, and how much of them; its own defaults if None."""

    root: Path | None = None
    budget_bytes: int | None = None


@dataclass(frozen=True)
class Shipped:
    """A context without what belongs to one process; picklable.

    Attributes:
        cache: the worker's.
        splits: what is tokenised already; what a worker adds stays with it.
    """

    dataset: Dataset
    task: Task
    loaded: Loaded
    settings: TrainingSettings
    precision: Precision
    max_length: int
    split_seed: int
    cache: CachePlace
    splits: dict[tuple[SplitName, EncodingOptions], Split] = field(repr=False)

    def unpack(self, send: Send) -> Context:
        """The context in this process, which shares its data and encoder with others of these.

        Args:
            send: gets what progress and callback are told.
        """
        keep_freed_memory()
        devices, progress = Devices(), SendingProgress(send)
        self.loaded.encoder.to(devices.device)
        return Context(
            dataset=self.dataset,
            task=self.task,
            loaded=self.loaded,
            cache=FeatureCache(self.cache.root, self.cache.budget_bytes, progress),
            settings=self.settings,
            precision=self.precision,
            max_length=self.max_length,
            devices=devices,
            progress=progress,
            split_seed=self.split_seed,
            callback=SendingWatcher(send),
            _splits=self.splits,
        )


def pack(context: Context, cache: CachePlace) -> bytes:
    """Pickles what the runs share; the encoder's weights are most of it."""
    loaded = context.loaded
    if loaded.encoder.device.type != "cpu":  # a worker may have another device, or none
        encoder = copy.deepcopy(loaded.encoder).to("cpu")
        loaded = replace(loaded, encoder=encoder)
    shipped = Shipped(
        dataset=context.dataset,
        task=context.task,
        loaded=loaded,
        settings=context.settings,
        precision=context.precision,
        max_length=context.max_length,
        split_seed=context.split_seed,
        cache=cache,
        splits=context.tokenised,
    )
    return pickle.dumps(shipped, protocol=pickle.HIGHEST_PROTOCOL)
