"""Optimizer steps: drawn ahead, computed in parts and by several processes to the same numbers."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from totune.machine import Precision
from totune.pretraining.course import Course
from totune.pretraining.measuring import count_operations
from totune.pretraining.objective import Drawn, Objective
from totune.pretraining.rows import Order
from totune.pretraining.settings import PretrainingSettings
from totune.training.devices import Devices
from totune.training.optimizer import build_optimizer, set_rates, trainable


@dataclass(frozen=True)
class Place:
    """Where a training is: `step` in all, and `within` its stage, both from 0."""

    step: int
    stage: int
    within: int

    @property
    def next(self) -> "Place":
        """Of the next step, if the stage goes on."""
        return Place(self.step + 1, self.stage, self.within + 1)


class Stepper:
    """Trains an objective, step by step.

    Args:
        objective: moved to the device of this process.
        course: what to train on.
        settings: complete.
        devices: the processes that share each step.
        precision: to compute in.

    Attributes:
        optimizer: AdamW.
        operations: floating-point ones of matrix products, for each token that is read, by stage.
    """

    def __init__(
        self,
        objective: Objective,
        course: Course,
        settings: PretrainingSettings,
        devices: Devices,
        precision: Precision,
    ) -> None:
        assert settings.learning_rate is not None
        self.objective, self.course, self.settings = objective, course, settings
        self._devices, self._precision = devices, precision
        self._orders = [
            Order(len(stage.train), stage.batch_size, settings.seed, stage.train.limit)
            for stage in course.stages
        ]
        self._ahead: tuple[Place, Future[Drawn]] | None = None
        self._pool: ThreadPoolExecutor | None = None
        objective.to(devices.device)
        self.operations = [self._count(stage) for stage in range(len(course.stages))]
        self._wrapped = devices.wrap(objective)
        self.optimizer = build_optimizer(_groups(objective, settings))

    @contextmanager
    def drawing_ahead(self) -> Iterator[None]:
        """Inside, the next step is drawn while one is computed."""
        with ThreadPoolExecutor(1) as self._pool:
            yield
        self._pool = self._ahead = None

    def step(self, place: Place, factor: float) -> tuple[dict[str, Tensor], Drawn]:
        """One step.

        Args:
            place: decides what is read, and what is left to chance.
            factor: of the peak rate.

        Returns:
            This process's sums, on its device, and what all processes read.
        """
        drawn = self._drawn(place)
        set_rates(self.optimizer, factor)
        parts, counts = self._parts(drawn)
        totals: dict[str, Tensor] = {}
        for at, own in enumerate(parts):
            with self._averaging(last=at == len(parts) - 1):
                sums = self._run(self._wrapped, self.objective.part(drawn, own))
                self._loss(sums, drawn, counts).backward()  # type: ignore[no-untyped-call]
            for name, value in sums.items():
                totals[name] = totals.get(name, 0) + value.detach().float() * counts
        nn.utils.clip_grad_norm_(trainable(self.objective), self.settings.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return totals, drawn

    def evaluate(self, stage: int, limit: int | None = None) -> dict[str, float]:
        """What the objective tells of rows held out.

        Args:
            stage: whose rows.
            limit: pieces after which it is enough; the rows are then spread over all.
        """
        rows = self.course.stages[stage].validation
        which = np.arange(len(rows))
        if limit is not None:
            wanted = max(1, limit // rows.limit)
            which = np.linspace(0, len(rows) - 1, min(wanted, len(rows))).round().astype(np.int64)
        self.objective.eval()
        sums: dict[str, float] = {}
        targets: dict[str, int] = {}
        size = self.course.stages[stage].batch_size
        for number, start in enumerate(range(0, len(which), size)):
            drawn = self.objective.draw(rows, which[start : start + size], seed=number)
            for name, value in self._sums(drawn).items():
                sums[name] = sums.get(name, 0.0) + value
            for name, count in drawn.targets.items():
                targets[name] = targets.get(name, 0) + count
        self.objective.train()
        return self.objective.metrics(sums, targets)

    def total(self, sums: dict[str, Tensor]) -> dict[str, float]:
        """Sums over processes, as plain numbers."""
        if not sums:
            return {}
        own = torch.stack([value.float() for value in sums.values()]).cpu().numpy()
        return dict(zip(sums, self._devices.total(own).tolist(), strict=True))

    @torch.no_grad()
    def _sums(self, drawn: Drawn) -> dict[str, float]:
        parts, counts = self._parts(drawn)
        totals: dict[str, Tensor] = {}
        for own in parts:
            for name, value in self._run(self.objective, self.objective.part(drawn, own)).items():
                totals[name] = totals.get(name, 0) + value.float() * counts
        return self.total(totals)

    def _drawn(self, place: Place) -> Drawn:
        ahead, self._ahead = self._ahead, None
        drawn = ahead[1].result() if ahead and ahead[0] == place else self._draw(place)
        if self._pool is not None:
            self._ahead = place.next, self._pool.submit(self._draw, place.next)
        return drawn

    def _draw(self, place: Place) -> Drawn:
        seed = int(np.random.SeedSequence((self.settings.seed, place.step)).generate_state(1)[0])
        rows = self._orders[place.stage].rows_of(place.within)
        return self.objective.draw(self.course.stages[place.stage].train, rows, seed)

    def _parts(self, drawn: Drawn) -> tuple[list[np.ndarray], bool]:
        """The rows of this process in parts, and whether they count."""
        rows = len(next(iter(drawn.tensors.values())))
        own, counts = self._devices.share(np.arange(rows))
        wanted = min(self.settings.gradient_accumulation_steps, len(own))
        return np.array_split(own, wanted), counts

    def _loss(self, sums: dict[str, Tensor], drawn: Drawn, counts: bool) -> Tensor:
        """The mean over all predictions of the step; a process's share, for averaging."""
        world = self._devices.world
        means = [sums[name] / max(1, asked) for name, asked in drawn.targets.items()]
        loss = torch.stack(means).sum() * (world if counts else 0.0)
        if world > 1:  # averaging waits for every parameter, also for one that nothing read
            loss = loss + 0.0 * sum(one.sum() for one in trainable(self.objective))
        return loss

    def _run(self, module: nn.Module, part: dict[str, Tensor]) -> dict[str, Tensor]:
        device = self._devices.device
        with torch.autocast(device.type, torch.bfloat16, enabled=self._precision == "bf16"):
            found: dict[str, Tensor] = module({name: one.to(device) for name, one in part.items()})
        return found

    def _averaging(self, last: bool) -> AbstractContextManager[Any]:
        """Gradients of several parts are averaged over processes once."""
        if self._devices.world == 1 or last:
            return nullcontext()
        wrapped: Any = self._wrapped
        silent: AbstractContextManager[Any] = wrapped.no_sync()
        return silent

    def _count(self, stage: int) -> float:
        drawn = self._draw(Place(0, stage, 0))
        own = self._parts(drawn)[0][0]
        device = self._devices.device
        part = {name: one.to(device) for name, one in self.objective.part(drawn, own).items()}
        with torch.autocast(device.type, torch.bfloat16, enabled=self._precision == "bf16"):
            operations = count_operations(self.objective, part)
        rows = len(next(iter(drawn.tensors.values())))
        return operations / max(1.0, drawn.tokens * len(own) / rows)


def _groups(objective: Objective, settings: PretrainingSettings) -> list[dict[str, Any]]:
    """Matrices, which decay, and the rest."""
    rates = {"lr": settings.learning_rate, "peak": settings.learning_rate}
    groups = []
    for decays in (True, False):
        own = [one for one in trainable(objective) if (one.ndim >= 2) == decays]
        if own:
            decay = settings.weight_decay if decays else 0.0
            groups.append({"params": own, "weight_decay": decay, **rates})
    return groups
