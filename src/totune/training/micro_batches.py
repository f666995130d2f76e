"""A step that does not fit into memory is computed in parts; the global batch stays as it is.

The loss of a step is a sum over positions times a share, so the gradients of the parts add up to
those of the whole, to rounding. What is computed over a batch sees the parts alone: the statistics
of a normed scalar mix (`layers=normed-scalar-mix`), the draws of dropout, and pairs of rows.
"""

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from totune.inputs.batches import (
    Batch,
    fits,
    ordered_batches,
    single_does_not_fit,
    size_of,
    split_units,
)
from totune.model import Model
from totune.modules.pairs import pair_losses
from totune.progress import Progress
from totune.strategies.phases import Objective
from totune.training.checkpoints import random_state, restore_random_state
from totune.training.devices import Devices
from totune.training.inputs import InputSource
from totune.training.optimizer import moments_to_come

TOO_LARGE = 0  # in place of a number of parts: a single row does not fit


@dataclass(frozen=True)
class Part:
    """What a micro-batch gave: outputs [P, C] and losses [P] of its units [B], detached.

    Where pairs are learnt from, the outputs are the vectors [B, H] that the head reads.
    """

    units: np.ndarray
    batch: Batch
    outputs: Tensor
    losses: Tensor


class MicroBatches:
    """The forward and backward passes of a run's steps, in as many parts as memory asks for.

    A step that does not fit doubles the parts, for the rest of the run.

    Args:
        model: what trains.
        devices: the processes that share the run.
        progress: told when parts are doubled.
        parts: how many a step has at first.

    Attributes:
        objective: what the running phase minimises.
    """

    def __init__(self, model: Model, devices: Devices, progress: Progress, parts: int = 1) -> None:
        self.parts = parts
        self.objective: Objective = "task"
        self._model, self._devices, self._progress = model, devices, progress

    def backward(
        self, wrapped: nn.Module, source: InputSource, units: np.ndarray, weight: float
    ) -> list[Part]:
        """Adds the gradients of `weight` times the summed losses of `units` [B].

        Args:
            wrapped: the model, with gradients averaged over processes.
            source: of the units.
            units: those of this process.
            weight: of every position.

        Raises:
            RunError: if a single row does not fit.
            SystemExit: if a step does not fit in one of several processes: the others wait for
                its gradients, and would do so for ever.
        """
        before = self.parts
        while True:
            found = self._attempt(wrapped, source, units, weight)
            if found is not None:
                break
            if self._devices.world > 1:
                self._end(units, source)
            if self.parts >= len(units):
                raise single_does_not_fit(int(source.units.lengths[units].max()))
            self.parts *= 2
        if self.parts > before:
            self._tell(units, source, before)
        return found

    def agree(
        self,
        source: InputSource,
        batch_size: int,
        tokens_per_batch: int | None,
        optimizer: torch.optim.Optimizer,
    ) -> None:
        """Of several processes: finds before a phase how many parts fit on each of them.

        In a step every process waits for the gradients of all others, so none can try again alone.
        Here each tries the longest batch by itself, with room for the moments that the optimizer
        will keep; all then take the largest number of parts. Weights and generators do not change.

        Raises:
            RunError: in every process, if a single row does not fit in one of them.
        """
        if self._devices.world == 1:
            return
        lengths, sizes = source.units.lengths, source.units.sizes
        longest = next(ordered_batches(lengths, batch_size, tokens_per_batch, sizes))
        units, _ = self._devices.share(longest)
        before, random = self.parts, random_state()
        self._model.train()
        told = self._devices.tell_all(self._rehearse(source, units, optimizer))
        restore_random_state(random)
        if TOO_LARGE in told:
            raise single_does_not_fit(int(lengths[longest].max()))
        self.parts = max(told)
        if self.parts > before:
            self._tell(units, source, before)

    def _rehearse(
        self, source: InputSource, units: np.ndarray, optimizer: torch.optim.Optimizer
    ) -> int:
        """How many parts this process needs; changes nothing but `parts`."""

        def step() -> None:
            kept = moments_to_come(optimizer)
            self._all_parts(self._model, source, units, 0.0)
            del kept

        while not fits(step, self._model.zero_grad):
            if self.parts >= len(units):
                return TOO_LARGE
            self.parts *= 2
        self._model.zero_grad()
        return self.parts

    def _attempt(
        self, wrapped: nn.Module, source: InputSource, units: np.ndarray, weight: float
    ) -> list[Part] | None:
        """What the parts gave, with their gradients added; None, and no gradients, if too large."""
        found: list[Part] = []

        def undo() -> None:
            found.clear()
            self._model.zero_grad()

        def step() -> None:
            found.extend(self._all_parts(wrapped, source, units, weight))

        return found if fits(step, undo) else None

    def _all_parts(
        self, wrapped: nn.Module, source: InputSource, units: np.ndarray, weight: float
    ) -> list[Part]:
        *others, last = split_units(units, self.parts)
        with _apart(wrapped):
            found = [self._part(wrapped, source, each, weight) for each in others]
        return [*found, self._part(wrapped, source, last, weight)]

    def _part(
        self, wrapped: nn.Module, source: InputSource, units: np.ndarray, weight: float
    ) -> Part:
        batch, viewed = source.batch(units, self._devices.device)
        if self.objective == "pairs":
            assert batch.targets is not None, "pairs are of the same label or not"
            outputs = wrapped(batch, viewed, vectors=True)
            losses = pair_losses(outputs, batch.targets)
        else:
            outputs = wrapped(batch, viewed)
            losses = self._model.losses(outputs, batch)
        (losses.sum() * weight).backward()  # type: ignore[no-untyped-call]
        return Part(units, batch, outputs.detach(), losses.detach())

    def _tell(self, units: np.ndarray, source: InputSource, before: int) -> None:
        lengths = source.units.lengths
        old, new = (
            size_of(split_units(units, parts)[0], lengths) for parts in (before, self.parts)
        )
        self._progress.say(
            f"A step with {old} at once does not fit into memory: from here on a step is computed "
            f"in {self.parts} parts (of {new} here) and learns from as many rows as before."
        )

    def _end(self, units: np.ndarray, source: InputSource) -> NoReturn:
        rows = size_of(split_units(units, self.parts)[0], source.units.lengths)
        print(
            f"error: process {self._devices.rank} ran out of memory with {rows} in a step that the "
            "other processes wait for, so all of them end. What had finished is kept; start again "
            "with a smaller per_device_train_batch_size or max_length.",
            file=sys.stderr,
        )
        raise SystemExit(1)


def _apart(wrapped: nn.Module) -> AbstractContextManager[None]:
    """Where gradients are not averaged over processes yet."""
    return wrapped.no_sync() if isinstance(wrapped, DistributedDataParallel) else nullcontext()
