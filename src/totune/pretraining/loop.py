"""The training loop: steps, evaluations, a log, and checkpoints to resume from."""

import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from totune import machine
from totune.errors import RunError
from totune.pretraining.curriculum import LengthCurriculum, TrainingBudget
from totune.pretraining.files import disk_faults
from totune.pretraining.objective import Objective
from totune.pretraining.record import LOG, RunningSums, TrainingLog, TrainingState
from totune.pretraining.settings import PretrainingSettings
from totune.pretraining.stepper import Stepper, StepPosition
from totune.progress import Progress
from totune.training.checkpoints import (
    load_checkpoint,
    random_state,
    restore_random_state,
    save_checkpoint,
)
from totune.training.devices import Devices

CHECKPOINT = "checkpoint.pt"
CHECKPOINT_SECONDS = 300.0  # at most, between two checkpoints
EVALUATIONS = 10  # in equal parts of the training, where eval_steps is not set
EVALUATION_TOKENS = 30_000  # read by evaluations during training; the last one reads everything
LOG_STEPS = 10
TABLE_SECONDS = 10.0


class PretrainingLoop:
    """Trains an objective until its budget is used, from the last checkpoint if there is one.

    Args:
        objective: the model to train.
        curriculum: rows to train on.
        settings: complete.
        folder: that of the log and the checkpoint.
        identity: hash of everything that a checkpoint must agree with.
        progress: receives losses and evaluations.
        devices: the processes that share the training.

    Attributes:
        state: how far the training has come.
        precision: that of the computation.
        rate: operations per second of large matrix products on this machine.
    """

    def __init__(
        self,
        objective: Objective,
        curriculum: LengthCurriculum,
        settings: PretrainingSettings,
        folder: Path,
        identity: str,
        progress: Progress,
        devices: Devices,
    ) -> None:
        self.settings, self.curriculum = settings, curriculum
        self.progress, self.devices = progress, devices
        self.precision = machine.choose_precision(settings.precision, devices.device)
        self.rate = matrix_rate(self.precision, devices.device) * devices.world
        self.budget = TrainingBudget.of(settings, curriculum)
        self.state = TrainingState()
        self._stepper = Stepper(objective, curriculum, settings, devices, self.precision)
        self._checkpoint, self._identity = folder / CHECKPOINT, identity
        self._sums = RunningSums()
        self._began = self._saved = self._shown = 0.0
        self._saved_step = 0
        self._resume()
        self._log = TrainingLog(folder / LOG, self.state.step) if devices.is_main else None

    def run(self) -> dict[str, float]:
        """Trains to the end.

        Returns:
            The metrics of all held-out text.

        Raises:
            RunError: if the loss stops being a number, or a checkpoint cannot be written.
        """
        now = time.perf_counter()
        self._began, self._saved, self._shown = now - self.state.seconds, now, 0.0
        self._stepper.objective.train()
        total = self.budget.steps or math.ceil(self.budget.seconds or 0)
        unit = "steps" if self.budget.steps else "seconds"
        done = 0
        with self._stepper.collating_ahead(), self.progress.bar(f"training, {unit}", total) as bar:
            while (share := self.budget.share(self.state.step, self._clock())) < 1:
                self._step(share)
                reached = self.state.step if self.budget.steps else int(self.state.seconds)
                bar.advance(reached - done)
                done = reached
        return self._evaluate(whole=True)

    def _step(self, share: float) -> None:
        """One step, and what is due after it."""
        state = self.state
        began = time.perf_counter()
        factor = self.budget.rate_factor(share)
        position = self._position(share)
        sums, batch = self._stepper.step(position, factor)
        state.step += 1
        state.tokens += batch.tokens
        state.words += self.curriculum.stages[position.stage].words
        state.operations += batch.tokens * self._stepper.operations[position.stage]
        self._sums.add(sums, batch)
        if state.step % LOG_STEPS == 0:
            self._write_losses(factor)
        seconds = time.perf_counter() - began
        self._sums.seconds += seconds
        state.step_seconds += seconds
        state.seconds = time.perf_counter() - self._began
        if self._evaluation_due(share):
            self._evaluate(whole=False)
            self._save()
        elif time.perf_counter() - self._saved > CHECKPOINT_SECONDS:
            self._save()

    def _position(self, share: float) -> StepPosition:
        """That of the next step; once rows have their full length they keep it."""
        state = self.state
        if state.turned is None and self.curriculum.stage_at(share):
            state.turned = state.step
            self._stepper.objective.extend_positions(self.curriculum.stages[0].length)
        start = state.turned or 0
        return StepPosition(state.step, self._stage, state.step - start)

    @property
    def _stage(self) -> int:
        """The index of the current stage."""
        return 0 if self.state.turned is None else 1

    def _clock(self) -> float:
        """Seconds since the beginning, as the main process counts them."""
        seconds = time.perf_counter() - self._began
        if self.devices.world == 1 or self.budget.seconds is None:
            return seconds
        return float(self.devices.total(np.array([seconds * self.devices.is_main]))[0])

    def _evaluation_due(self, share: float) -> bool:
        every = self.settings.eval_steps
        if every is not None:
            return self.state.step % every == 0
        if self.budget.seconds is None:  # known without a clock: resuming changes nothing
            before, after = share, self.budget.share(self.state.step, 0.0)
        else:
            before, after = len(self.state.evaluations) / EVALUATIONS, share
        return int(after * EVALUATIONS) > int(before * EVALUATIONS)

    def _evaluate(self, whole: bool) -> dict[str, float]:
        limit = None if whole else EVALUATION_TOKENS
        stage = len(self.curriculum.stages) - 1 if whole else self._stage
        metrics = self._stepper.evaluate(stage, limit)
        self._check_finite(metrics["perplexity"])
        state = self.state
        state.seconds = time.perf_counter() - self._began
        at = {"step": state.step, "words": round(state.words), "seconds": round(state.seconds, 1)}
        if not whole:
            length = self.curriculum.stages[stage].length
            state.evaluations.append({**at, "row_length": length, **metrics})
        if self._log is not None:
            self._log.write({**at, "held_out": "all" if whole else "some", **metrics})
        shown = ", ".join(f"{name.replace('_', ' ')} {metrics[name]:.4g}" for name in metrics)
        text = "all held-out text" if whole else "held-out text"
        self.progress.say(f"after {state.words:,.0f} words ({state.step:,} steps), {text}: {shown}")
        return metrics

    def _write_losses(self, factor: float) -> None:
        """Writes a line of the log, and now and then shows some of it."""
        sums = self._stepper.total(self._sums.sums)
        losses = {f"{name}_loss": sums[name] / n for name, n in self._sums.targets.items()}
        loss = sum(losses.values())
        self._check_finite(loss)
        speed = self._sums.tokens / max(1e-9, self._sums.seconds)
        line = {
            "step": self.state.step,
            "words": round(self.state.words),
            "tokens": self.state.tokens,
            "seconds": round(self.state.seconds, 1),
            "loss": loss,
            **(losses if len(losses) > 1 else {}),
            "learning_rate": (self.settings.learning_rate or 0.0) * factor,
            "tokens_per_second": round(speed),
            "matrix_share": round(speed * self._stepper.operations[self._stage] / self.rate, 4),
        }
        if self._log is not None:
            self._log.write(line)
        self._sums = RunningSums()
        if time.perf_counter() - self._shown >= TABLE_SECONDS:
            self._shown = time.perf_counter()
            self.progress.table([_shown(line)])

    def _check_finite(self, value: float) -> None:
        if not math.isfinite(value):
            raise RunError(
                f"The loss became {value} by step {self.state.step}: use a smaller learning_rate, "
                'or precision="fp32".'
            )

    def _save(self) -> None:
        self._saved = time.perf_counter()
        if not self.devices.is_main:
            return
        state = {
            "identity": self._identity,
            "curve": asdict(self.state),
            "weights": self._stepper.objective.state_dict(),
            "optimizer": self._stepper.optimizer.state_dict(),
            "random": random_state(),
            "window": dict(vars(self._sums)),
        }
        last = f"that of step {self._saved_step:,} is whole. " if self._saved_step else ""
        problem = f"The checkpoint {self._checkpoint} cannot be written"
        with disk_faults(problem, f"{last}Make room, then make the same call again"):
            save_checkpoint(state, self._checkpoint)
        self._saved_step = self.state.step

    def _resume(self) -> None:
        """Restores the last checkpoint; reports one that cannot be read and is lost."""
        saved = load_checkpoint(self._checkpoint, self._identity)
        if saved is None:
            if self._checkpoint.exists():
                self.progress.warn(
                    f"The checkpoint {self._checkpoint} cannot be read, so training starts again "
                    "from step 0."
                )
            return
        try:
            self.state = TrainingState(**saved["curve"])
            self._sums.load(saved["window"], self.devices.device)
            self._stepper.objective.load_state_dict(saved["weights"])
            self._stepper.optimizer.load_state_dict(saved["optimizer"])
            restore_random_state(saved["random"])
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError):
            raise RunError(
                f"The checkpoint {self._checkpoint} was written by another version of totune. "
                "Finish with that version, or remove the checkpoint to start again from step 0."
            ) from None
        self._saved_step = self.state.step
        self.progress.say(f"continuing after step {self.state.step:,}")


def _shown(line: Mapping[str, Any]) -> dict[str, str]:
    """A line of the log as a row of the table that a person sees."""
    return {
        "step": f"step {line['step']:,}",
        "words": f"{line['words']:,}",
        "loss": f"{line['loss']:.3f}",
        "tokens/s": f"{line['tokens_per_second']:,}",
        "of the matrix rate": f"{line['matrix_share']:.1%}",
    }


def matrix_rate(precision: machine.Precision, device: torch.device) -> float:
    """Operations per second of large matrix products in this precision on this device."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    size = 8192 if device.type == "cuda" else 1024
    return 1e9 * machine.matmul_rate(dtype, device, size)
