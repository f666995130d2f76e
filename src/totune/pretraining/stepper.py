"""Optimizer steps, which come to the same numbers in any number of parts and processes."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from totune.machine import Precision
from totune.pretraining.curriculum import LengthCurriculum
from totune.pretraining.objective import Objective, StepBatch
from totune.pretraining.rows import RowOrder
from totune.pretraining.settings import PretrainingSettings
from totune.training.devices import Devices
from totune.training.optimizer import build_optimizer, set_rates, trainable

Forward = Callable[[dict[str, Tensor]], dict[str, Tensor]]


class StepPosition(NamedTuple):
    """Where a training is: `step` in all, and `step_in_stage` of a stage, both from 0."""

    step: int
    stage: int
    step_in_stage: int

    @property
    def next(self) -> "StepPosition":
        """That of the next step, if the stage continues."""
        return StepPosition(self.step + 1, self.stage, self.step_in_stage + 1)


class Stepper:
    """Trains an objective, step by step.

    Args:
        objective: moved to the device of this process.
        curriculum: rows to train on.
        settings: complete.
        devices: the processes that share each step.
        precision: that of the computation.

    Attributes:
        optimizer: AdamW.
        operations: floating-point operations of matrix products per token, by stage.
    """

    def __init__(
        self,
        objective: Objective,
        curriculum: LengthCurriculum,
        settings: PretrainingSettings,
        devices: Devices,
        precision: Precision,
    ) -> None:
        self.objective, self.curriculum, self.settings = objective, curriculum, settings
        self._devices, self._precision = devices, precision
        self._orders = [
            RowOrder(len(stage.train), stage.batch_size, settings.seed, stage.train.limit)
            for stage in curriculum.stages
        ]
        self._ahead: tuple[StepPosition, Future[StepBatch]] | None = None
        self._pool: ThreadPoolExecutor | None = None
        objective.to(devices.device)
        self.operations = [self._count_operations(at) for at in range(len(curriculum.stages))]
        self._wrapped = devices.wrap(objective)
        self.optimizer = build_optimizer(_groups(objective, settings))

    @contextmanager
    def collating_ahead(self) -> Iterator[None]:
        """Inside, the next step's batch is collated while one is computed."""
        with ThreadPoolExecutor(1) as self._pool:
            yield
        self._pool = self._ahead = None

    def step(self, position: StepPosition, factor: float) -> tuple[dict[str, Tensor], StepBatch]:
        """One optimizer step.

        Args:
            position: decides which rows are read, and every random choice.
            factor: learning rate over its peak.

        Returns:
            This process's sums, on its device, and the batch of all processes.
        """
        batch = self._next_batch(position)
        set_rates(self.optimizer, factor)
        parts, counts = self._micro_batches(batch)
        totals: dict[str, Tensor] = {}
        for at, own in enumerate(parts):
            with self._averaging(last=at == len(parts) - 1):
                sums = self._run(self._wrapped, self.objective.micro_batch(batch, own))
                self._loss(sums, batch, counts).backward()  # type: ignore[no-untyped-call]
            _add(totals, sums, counts)
        nn.utils.clip_grad_norm_(trainable(self.objective), self.settings.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return totals, batch

    @torch.no_grad()
    def evaluate(self, stage: int, limit: int | None = None) -> dict[str, float]:
        """Metrics of the objective on rows held out.

        Args:
            stage: index of the stage whose rows are read.
            limit: number of tokens after which to stop; the rows are then spread over all.
        """
        own_stage = self.curriculum.stages[stage]
        rows, size = own_stage.validation, own_stage.batch_size
        indices = np.arange(len(rows))
        if limit is not None:
            wanted = min(max(1, limit // rows.limit), len(rows))
            indices = np.linspace(0, len(rows) - 1, wanted).round().astype(np.int64)
        self.objective.eval()
        sums: dict[str, float] = {}
        targets: dict[str, int] = {}
        for number, start in enumerate(range(0, len(indices), size)):
            batch = self.objective.collate(rows, indices[start : start + size], seed=number)
            totals: dict[str, Tensor] = {}
            parts, counts = self._micro_batches(batch)
            for own in parts:
                inputs = self.objective.micro_batch(batch, own)
                _add(totals, self._run(self.objective, inputs), counts)
            for name, value in self.total(totals).items():
                sums[name] = sums.get(name, 0.0) + value
            for name, count in batch.targets.items():
                targets[name] = targets.get(name, 0) + count
        self.objective.train()
        return self.objective.metrics(sums, targets)

    def total(self, sums: dict[str, Tensor]) -> dict[str, float]:
        """Sums over processes, as plain numbers."""
        if not sums:
            return {}
        own = torch.stack([value.float() for value in sums.values()]).cpu().numpy()
        return dict(zip(sums, self._devices.total(own).tolist(), strict=True))

    def _next_batch(self, position: StepPosition) -> StepBatch:
        ahead, self._ahead = self._ahead, None
        is_ready = ahead is not None and ahead[0] == position
        batch = ahead[1].result() if ahead and is_ready else self._collate(position)
        if self._pool is not None:
            self._ahead = position.next, self._pool.submit(self._collate, position.next)
        return batch

    def _collate(self, position: StepPosition) -> StepBatch:
        entropy = np.random.SeedSequence((self.settings.seed, position.step))
        seed = int(entropy.generate_state(1)[0])
        indices = self._orders[position.stage].rows_of(position.step_in_stage)
        rows = self.curriculum.stages[position.stage].train
        return self.objective.collate(rows, indices, seed)

    def _micro_batches(self, batch: StepBatch) -> tuple[list[np.ndarray], bool]:
        """The rows of this process in parts, and whether they count."""
        rows = len(next(iter(batch.tensors.values())))
        own, counts = self._devices.share(np.arange(rows))
        wanted = min(self.settings.gradient_accumulation_steps, len(own))
        return np.array_split(own, wanted), counts

    def _loss(self, sums: dict[str, Tensor], batch: StepBatch, counts: bool) -> Tensor:
        """The mean over all predictions of the step; a process's share, for averaging."""
        world = self._devices.world
        means = [sums[name] / max(1, count) for name, count in batch.targets.items()]
        loss = torch.stack(means).sum() * (world if counts else 0.0)
        if world > 1:  # averaging waits for every parameter, also for one that nothing read
            loss = loss + 0.0 * sum(one.sum() for one in trainable(self.objective))
        return loss

    def _run(self, forward: Forward, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        device = self._devices.device
        with torch.autocast(device.type, torch.bfloat16, enabled=self._precision == "bf16"):
            return forward({name: one.to(device) for name, one in inputs.items()})

    def _averaging(self, last: bool) -> AbstractContextManager[Any]:
        """Gradients of several micro-batches are averaged over processes once."""
        if self._devices.world == 1 or last:
            return nullcontext()
        wrapped: Any = self._wrapped
        silent: AbstractContextManager[Any] = wrapped.no_sync()
        return silent

    def _count_operations(self, stage: int) -> float:
        """Floating-point operations per token, forward and backward; leaves no gradients."""
        batch = self._collate(StepPosition(0, stage, 0))
        own = self._micro_batches(batch)[0][0]
        inputs = self.objective.micro_batch(batch, own)
        with FlopCounterMode(display=False) as counter:
            sums = self._run(self.objective.countable_forward, inputs)
            losses = [value for name, value in sums.items() if not name.endswith("_right")]
            torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
        for parameter in self.objective.parameters():
            parameter.grad = None
        rows = len(next(iter(batch.tensors.values())))
        return float(counter.get_total_flops()) / max(1.0, batch.tokens * len(own) / rows)


def _add(totals: dict[str, Tensor], sums: Mapping[str, Tensor], counts: bool) -> None:
    for name, value in sums.items():
        totals[name] = totals.get(name, 0) + value.detach().float() * counts


def _groups(objective: Objective, settings: PretrainingSettings) -> list[dict[str, Any]]:
    """The optimizer's groups: matrices, which decay, and the rest."""
    rates = {"lr": settings.learning_rate, "peak": settings.learning_rate}
    groups = []
    for decays in (True, False):
        own = [one for one in trainable(objective) if (one.ndim >= 2) == decays]
        if own:
            decay = settings.weight_decay if decays else 0.0
            groups.append({"params": own, "weight_decay": decay, **rates})
    return groups
