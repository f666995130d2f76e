"""The loop: runs the phases of a plan, knows no strategy.

In each phase the frozen prefix is found and read from the cache; after each epoch the dev split is
scored, the best state so far remembered, and a checkpoint written from which a killed run continues
to the same numbers.

What a run ends with is its last epoch, unless the best one by dev is better by more than the
standard error of a dev score: a rate that falls to 0 leaves the last epoch well trained, and the
best of many epochs on 25 dev rows is the luckiest one (docs/defaults.md has the figures). A run
that was stopped before its rate had fallen ends with its best epoch.
"""

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from totune.errors import RunError
from totune.features import FeatureCache
from totune.inputs.batches import shuffled_batches
from totune.metrics import METRICS
from totune.model import Model
from totune.progress import Progress
from totune.strategies.coverage import trained_names
from totune.strategies.phases import EpochScores, Phase, Solved
from totune.training.checkpoints import (
    load_checkpoint,
    random_state,
    restore_random_state,
    save_checkpoint,
)
from totune.training.devices import Devices
from totune.training.history import EpochRecord, History
from totune.training.inputs import InputSource, Outputs, Split, open_source, predict
from totune.training.micro_batches import MicroBatches
from totune.training.optimizer import (
    apply_phase,
    build_optimizer,
    set_rates,
    trainable,
)
from totune.training.solving import nearest_class_mean, solve_head


@dataclass(frozen=True)
class TrainingSettings:
    """What holds for every strategy of a study.

    Attributes:
        metric: the dev metric that may stop training and decides which epoch is kept.
        train_batch_size: rows per optimizer step, over all processes.
        max_grad_norm: gradients are clipped to this norm.
        tokens_per_batch: word pieces per step, padding included, in place of a number of rows.
        bias_correction: whether Adam corrects its moments for starting at zero.
    """

    metric: str
    train_batch_size: int = 32
    max_grad_norm: float = 1.0
    tokens_per_batch: int | None = None
    bias_correction: bool = True

    def to_json(self) -> dict[str, Any]:
        """As a run's configuration names them; runs of before `bias_correction` keep their name."""
        settings = asdict(self)
        if self.bias_correction:
            del settings["bias_correction"]
        return settings


class Trainer:
    """Trains one model for its task by a plan of phases.

    Args:
        model: prepared by its strategy; trained in place and left as the kept epoch left it.
        train: the training split, with targets.
        dev: the dev split, with targets; None has every phase run all its epochs, and the last
            one kept.
        settings: batch size, metric, clipping.
        order_seed: fixes the order of the data, apart from initialisation.
        cache: the prefix cache; None recomputes what is frozen.
        devices: the processes that share this run.
        progress: shows the steps of each epoch.
    """

    def __init__(
        self,
        model: Model,
        train: Split,
        dev: Split | None,
        settings: TrainingSettings,
        order_seed: int,
        *,
        cache: FeatureCache | None = None,
        devices: Devices | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.model, self.task, self.settings = model, model.task, settings
        self.train_split, self.dev_split = train, dev
        self.order_seed = order_seed
        self.cache = cache
        self.devices = devices or Devices()
        self.progress = progress or Progress()
        self.history = History()
        self._checkpoint: Path | None = None
        self._on_epoch: Callable[[EpochRecord], None] = lambda _: None
        self._micro_batches = MicroBatches(model, self.devices, self.progress)
        self._best: dict[str, torch.Tensor] = {}
        self._restored: dict[str, torch.Tensor] = {}  # weights that the phase leads to
        self._optimizer: torch.optim.Optimizer | None = None
        self._clipped: list[nn.Parameter] = []  # what the running phase trains

    def fit(
        self,
        plan: list[Phase],
        checkpoint: Path | None = None,
        on_epoch: Callable[[EpochRecord], None] = lambda _: None,
    ) -> History:
        """Runs every phase and leaves the model in the state of the epoch that is kept.

        Args:
            plan: the phases.
            checkpoint: where the state is kept between epochs, and continued from; None keeps none.
            on_epoch: called with every epoch that has ended and is written; of a continued run,
                first with those of before.

        Raises:
            RunError: if the loss stops being a number.
        """
        self._checkpoint, self._on_epoch = checkpoint, on_epoch
        identity = _identity(plan, self.settings, self.order_seed)
        names = trained_names(self.model, plan)
        self._trained = {n: p for n, p in self.model.unique_parameters().items() if n in set(names)}
        saved = load_checkpoint(checkpoint, identity, self.progress.warn) if checkpoint else None
        first = 0 if saved is None else self._resume_model(saved)
        for index in range(first, len(plan)):
            self._run_phase(plan[index], index, identity, saved if index == first else None)
        self._settle(plan[-1])
        self.model.eval()
        return self.history

    def _run_phase(
        self, phase: Phase, index: int, identity: str, saved: dict[str, Any] | None
    ) -> None:
        groups, corrects = apply_phase(self.model, phase), self.settings.bias_correction
        self._optimizer = build_optimizer(groups, self._optimizer, corrects)
        self._clipped = trainable(self.model)
        self.model.prepare_training(self.devices.device)
        wrapped = self.devices.wrap(self.model)
        if saved is not None:
            self._optimizer.load_state_dict(saved["optimizer"])
            restore_random_state(saved["random"])
        self._micro_batches.objective = phase.objective
        frozen = self.model.freeze_prefix()
        if self.cache is not None:
            self.cache.release()  # what the phase before has read
        train = open_source(self.train_split, self.model, self.cache, frozen, training=True)
        dev = None
        if self.dev_split is not None:
            dev = open_source(self.dev_split, self.model, self.cache, frozen)
        sizes = self.settings.train_batch_size, self.settings.tokens_per_batch
        self._micro_batches.agree(train, *sizes, self._optimizer)
        done = 0 if saved is None else int(saved["epochs_in_phase"])
        epochs = self.history.epochs[len(self.history.epochs) - done :]
        while not phase.stop.ends(self._scores(epochs)):
            record = self._epoch(wrapped, phase, len(epochs), train, dev, frozen)
            ended = record.ended or phase.stop.ends(self._scores([*epochs, record]))
            record = replace(record, ended=ended)
            epochs.append(record)
            self._keep(record)
            self._keep_restored(phase, epochs)
            self._save(index, identity, len(epochs))
            self._on_epoch(record)
        if phase.restore == "best":
            self._load(self._restored)
            self._optimizer = None  # its moments are those of other weights

    def _scores(self, epochs: Sequence[EpochRecord]) -> EpochScores:
        """What a phase's stop decides on; without dev rows each epoch counts as the best so far."""
        metric = self.settings.metric
        if self.dev_split is None:
            rising = [float(number) for number in range(len(epochs))]
            return EpochScores(rising, rising)
        dev = [_score(epoch.dev, metric) for epoch in epochs]
        return EpochScores(dev, [_score(e.train_after, metric) for e in epochs if e.train_after])

    def _epoch(
        self,
        wrapped: nn.Module,
        phase: Phase,
        epoch: int,
        train: InputSource,
        dev: InputSource | None,
        frozen: int,
    ) -> EpochRecord:
        began = time.perf_counter()
        number = len(self.history.epochs) + 1
        if isinstance(phase.stop, Solved):
            train_metrics, ended = self._solve(phase.stop, train)
        else:
            train_metrics, ended = self._train_epoch(wrapped, phase, epoch, number, train), ""
        self.history.step_seconds += time.perf_counter() - began
        self.history.examples += len(train.split)
        dev_metrics = {} if dev is None else self._evaluate(dev)
        return EpochRecord(
            phase=phase.name,
            epoch=number,
            train=train_metrics,
            dev=dev_metrics,
            train_after=self._evaluate(train) if phase.stop.compares else {},
            seconds=time.perf_counter() - began,
            frozen_depth=frozen,
            cached=train.features is not None,
            ended=ended,
        )

    def _solve(self, stop: Solved, source: InputSource) -> tuple[dict[str, float], str]:
        """Solves the head; its metrics on the training data, and the penalty that was chosen."""
        strength = solve_head(self.model, source, self.devices, stop.folds, self.order_seed)
        return self._evaluate(source), f"solved, with a penalty of C={strength:g}"

    def _train_epoch(
        self, wrapped: nn.Module, phase: Phase, epoch: int, number: int, source: InputSource
    ) -> dict[str, float]:
        """One pass over the training data; its metrics, measured on the fly."""
        wrapped.train()
        units, settings = source.units, self.settings
        batches = list(
            shuffled_batches(
                units.lengths,
                settings.train_batch_size,
                self.order_seed,
                number,
                settings.tokens_per_batch,
                units.sizes,
            )
        )
        total = len(batches) * phase.stop.num_train_epochs
        # Kept on the device, so that no step waits for a transfer: outputs, and losses last.
        of_pairs = phase.objective == "pairs"
        width = self.model.mixing.width if of_pairs else self.task.outputs
        kept = torch.zeros(source.split.positions, width + 1, device=self.devices.device)
        with self.progress.bar(f"epoch {number} ({phase.name})", len(source.split)) as bar:
            for step, indices in enumerate(batches, start=epoch * len(batches)):
                self._set_rate(phase.schedule.factor(step, total))
                self._step(wrapped, source, indices, kept)
                bar.advance(int(units.sizes[indices].sum()))
        found = self.devices.total(kept.cpu().numpy())
        values, losses = found[:, :-1], found[:, -1]
        if of_pairs:
            values = nearest_class_mean(self.model, values, source.split)
        return self._metrics(Outputs(values, losses), source.split)

    def _step(
        self, wrapped: nn.Module, source: InputSource, indices: np.ndarray, kept: torch.Tensor
    ) -> None:
        """One optimizer step; writes this process's outputs and losses to `kept`, [P, C + 1].

        Where pairs are learnt from, vectors take the place of outputs: [P, H + 1].
        """
        own, counts = self.devices.share(indices)
        flat, units = source.split.flat, source.units
        assert flat is not None, "training needs targets"
        known = max(1, int(self.task.known(flat[units.positions(indices)]).sum()))
        share = self.devices.world / known if counts else 0.0
        parts = self._micro_batches.backward(wrapped, source, own, share)
        self._update()
        for part in parts if counts else ():
            best = part.outputs
            if self._micro_batches.objective == "task":
                with torch.no_grad():
                    best = self.model.best(part.outputs, part.batch)
            both = [best.float(), part.losses.float().unsqueeze(1)]
            kept[units.positions(part.units)] = torch.cat(both, dim=1)

    def _update(self) -> None:
        assert self._optimizer is not None, "a phase is running"
        nn.utils.clip_grad_norm_(self._clipped, self.settings.max_grad_norm)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def _set_rate(self, factor: float) -> None:
        assert self._optimizer is not None, "a phase is running"
        set_rates(self._optimizer, factor)

    def _evaluate(self, source: InputSource) -> dict[str, float]:
        return self._metrics(predict(self.model, source, self.devices), source.split)

    def _metrics(self, outputs: Outputs, split: Split) -> dict[str, float]:
        targets, flat = split.targets, split.flat
        assert targets is not None
        assert flat is not None
        known = self.task.known(flat)
        if not known.any():
            raise RunError(f"no row of {split.name} has a label that training knows.")
        loss = float(outputs.losses[known].mean(dtype=np.float64))
        if not math.isfinite(loss):
            raise RunError(
                f"the loss on {split.name} became {loss} in epoch {len(self.history.epochs) + 1}: "
                "use a smaller learning_rate, or `precision='fp32'`."
            )
        found = self.task.measure(targets, outputs.values, split.units.counts)
        return {**found, "loss": loss}

    def _keep(self, record: EpochRecord) -> None:
        """Adds an epoch to the history, and its weights to memory if it is the best so far."""
        epochs, metric = self.history.epochs, self.settings.metric
        epochs.append(record)
        best = self.history.best
        if (
            self.dev_split is None
            or best < 0
            or _score(record.dev, metric) >= _score(epochs[best].dev, metric)
        ):
            self.history.best = len(epochs) - 1
            self._best = {name: p.detach().clone() for name, p in self._trained.items()}

    def _settle(self, phase: Phase) -> None:
        """Leaves the weights of the last epoch or of the best one, after the last `phase`.

        A plan that ends with a solved head ends with it: epochs of pairs before it were scored with
        a head of class means.
        """
        epochs, metric = self.history.epochs, self.settings.metric
        last = len(epochs) - 1
        if self.dev_split is None:
            self.history.best = last
            return
        best, final = (_score(epochs[i].dev, metric) for i in (self.history.best, last))
        error = METRICS[metric].standard_error(epochs[last].dev[metric], len(self.dev_split))
        whole = sum(epoch.phase == phase.name for epoch in epochs) == phase.stop.num_train_epochs
        if not isinstance(phase.stop, Solved) and (not whole or best - final > error):
            self._load(self._best)
        else:
            self.history.best = last

    def _keep_restored(self, phase: Phase, epochs: Sequence[EpochRecord]) -> None:
        """Keeps what the phase has trained if it restores this epoch, as its scores are so far.

        Whatever comes, it restores a later epoch or the one that is kept.
        """
        if phase.restore == "best" and phase.stop.best(self._scores(epochs)) == len(epochs) - 1:
            trained = {name: p for name, p in self._trained.items() if p.requires_grad}
            self._restored = {name: p.detach().clone() for name, p in trained.items()}

    def _save(self, phase: int, identity: str, epochs_in_phase: int) -> None:
        if self._checkpoint is None or not self.devices.is_main:
            return
        assert self._optimizer is not None
        is_best = self.history.best == len(self.history.epochs) - 1
        state = {
            "identity": identity,
            "phase": phase,
            "epochs_in_phase": epochs_in_phase,
            "history": asdict(self.history),
            "weights": {name: p.detach() for name, p in self._trained.items()},
            "best": {} if is_best else self._best,
            "restored": self._restored,
            "optimizer": self._optimizer.state_dict(),
            "random": random_state(),
            "parts": self._micro_batches.parts,
            "features": {} if self.cache is None else self.cache.charges,
        }
        save_checkpoint(state, self._checkpoint)

    def _resume_model(self, saved: dict[str, Any]) -> int:
        """Restores weights and history; returns the phase to continue in."""
        self._load(saved["weights"])
        best = saved["best"] or saved["weights"]
        self._best = {name: tensor.clone() for name, tensor in best.items()}
        self._restored = saved["restored"]
        history = saved["history"]
        epochs = [EpochRecord(**epoch) for epoch in history.pop("epochs")]
        self.history = History(epochs, **history)
        self._micro_batches.parts = saved.get("parts", 1)
        if self.cache is not None:
            self.cache.charge(saved["features"])
        self.progress.say(f"continuing after epoch {len(epochs)}")
        for epoch in epochs:
            self._on_epoch(epoch)
        return int(saved["phase"])

    def _load(self, weights: dict[str, torch.Tensor]) -> None:
        with torch.no_grad():
            for name, tensor in weights.items():
                self._trained[name].copy_(tensor)


def _score(metrics: dict[str, float], metric: str) -> float:
    """A dev metric as a score that is better when higher."""
    return METRICS[metric].sign * metrics[metric]


def _identity(plan: list[Phase], settings: TrainingSettings, order_seed: int) -> str:
    return hashlib.sha256(repr((plan, settings, order_seed)).encode()).hexdigest()
