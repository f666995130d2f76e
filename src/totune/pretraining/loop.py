"""The loop of pretraining: steps, evaluations, a log, and checkpoints to go on from."""

import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from totune import machine
from totune.errors import RunError
from totune.pretraining.budget import EVALUATIONS, Budget
from totune.pretraining.course import Course
from totune.pretraining.files import telling
from totune.pretraining.log import LOG, Curve, Log, Window
from totune.pretraining.measuring import matrix_rate
from totune.pretraining.objective import Objective
from totune.pretraining.record import CHECKPOINT
from totune.pretraining.settings import PretrainingSettings
from totune.pretraining.stepping import Place, Stepper
from totune.progress import Progress
from totune.training.checkpoints import (
    load_checkpoint,
    random_state,
    restore_random_state,
    save_atomically,
)
from totune.training.devices import Devices

LOG_STEPS = 10
CHECKPOINT_SECONDS = 300.0
TELL_SECONDS = 10.0
EVALUATION_PIECES = 30_000  # that an evaluation on the way reads; the last one reads all


class Loop:
    """Trains an objective until its budget is used, from the last checkpoint if there is one.

    Args:
        objective: what is trained.
        course: what is read.
        settings: complete.
        folder: of the log and the checkpoint.
        identity: a checkpoint of another one is not read.
        progress: told how it goes.
        devices: the processes that share it.

    Attributes:
        curve: what it has come to.
        precision: that it computes in.
        rate: operations per second of large matrix products on this machine.
    """

    def __init__(
        self,
        objective: Objective,
        course: Course,
        settings: PretrainingSettings,
        folder: Path,
        identity: str,
        progress: Progress,
        devices: Devices,
    ) -> None:
        self.settings, self.course = settings, course
        self.progress, self.devices = progress, devices
        self.precision = machine.choose_precision(settings.precision, devices.device)
        self.rate = matrix_rate(self.precision, devices.device) * devices.world
        self.budget = Budget.of(settings, course)
        self.curve = Curve()
        self._stepper = Stepper(objective, course, settings, devices, self.precision)
        self._checkpoint, self._identity = folder / CHECKPOINT, identity
        self._window = Window()
        self._began = self._saved = self._told = 0.0
        self._kept = 0  # the step of the last checkpoint
        self._resume(objective)
        self._log = Log(folder / LOG, self.curve.step) if devices.is_main else None

    def run(self) -> dict[str, float]:
        """Trains to the end.

        Returns:
            What the last evaluation, of all that is held out, tells.

        Raises:
            RunError: if the loss stops being a number, or a checkpoint cannot be written.
        """
        now = time.perf_counter()
        self._began, self._saved, self._told = now - self.curve.seconds, now, 0.0
        self._stepper.objective.train()
        total = self.budget.steps or math.ceil(self.budget.seconds or 0)
        unit = "steps" if self.budget.steps else "seconds"
        done = 0
        with self._stepper.drawing_ahead(), self.progress.bar(f"training, {unit}", total) as bar:
            while (share := self.budget.share(self.curve.step, self._clock())) < 1:
                self._step(share)
                reached = self.curve.step if self.budget.steps else int(self.curve.seconds)
                bar.advance(reached - done)
                done = reached
        return self._evaluate(whole=True)

    def _step(self, share: float) -> None:
        """One step, and what is due after it."""
        curve = self.curve
        began = time.perf_counter()
        factor = self.budget.factor(share)
        place = self._place(share)
        sums, drawn = self._stepper.step(place, factor)
        curve.step += 1
        curve.tokens += drawn.tokens
        curve.words += self.course.stages[place.stage].words
        curve.operations += drawn.tokens * self._stepper.operations[place.stage]
        self._window.add(sums, drawn)
        if curve.step % LOG_STEPS == 0:
            self._write(factor)
        took = time.perf_counter() - began
        self._window.seconds += took
        curve.step_seconds += took
        curve.seconds = time.perf_counter() - self._began
        if self._evaluation_due(share):
            self._evaluate(whole=False)
            self._save()
        elif time.perf_counter() - self._saved > CHECKPOINT_SECONDS:
            self._save()

    def _place(self, share: float) -> Place:
        """Where the training is; once it has turned to whole rows it stays with them."""
        curve = self.curve
        if curve.turned is None and self.course.at(share):
            curve.turned = curve.step
            self._stepper.objective.turn(self.course.stages[0].length)
        if curve.turned is None:
            return Place(curve.step, 0, curve.step)
        return Place(curve.step, 1, curve.step - curve.turned)

    @property
    def _stage(self) -> int:
        """The stage of the last step."""
        return 0 if self.curve.turned is None else 1

    def _clock(self) -> float:
        """Seconds since the beginning, as the main process counts them."""
        seconds = time.perf_counter() - self._began
        if self.devices.world == 1 or self.budget.seconds is None:
            return seconds
        return float(self.devices.total(np.array([seconds * self.devices.is_main]))[0])

    def _evaluation_due(self, share: float) -> bool:
        every = self.settings.eval_steps
        if every is not None:
            return self.curve.step % every == 0
        if self.budget.seconds is None:  # known without a clock: resuming changes nothing
            before, after = share, self.budget.share(self.curve.step, 0.0)
        else:
            before, after = len(self.curve.evaluations) / EVALUATIONS, share
        return int(after * EVALUATIONS) > int(before * EVALUATIONS)

    def _evaluate(self, whole: bool) -> dict[str, float]:
        limit = None if whole else EVALUATION_PIECES
        stage = len(self.course.stages) - 1 if whole else self._stage
        found = self._stepper.evaluate(stage, limit)
        if not math.isfinite(found["perplexity"]):
            raise RunError(self._diverged(found["perplexity"]))
        curve = self.curve
        curve.seconds = time.perf_counter() - self._began
        at = {"step": curve.step, "words": round(curve.words), "seconds": round(curve.seconds, 1)}
        if not whole:
            length = self.course.stages[stage].length
            curve.evaluations.append({**at, "row_length": length, **found})
        if self._log is not None:
            self._log.write({**at, "held_out": "all" if whole else "some", **found})
        shown = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in found.items())
        text = "all held-out text" if whole else "held-out text"
        self.progress.say(f"after {curve.words:,.0f} words ({curve.step:,} steps), {text}: {shown}")
        return found

    def _write(self, factor: float) -> None:
        """A line of the log, and what a person is told now and then."""
        sums = self._stepper.total(self._window.sums)
        losses = {f"{name}_loss": sums[name] / n for name, n in self._window.targets.items()}
        loss = sum(losses.values())
        if not math.isfinite(loss):
            raise RunError(self._diverged(loss))
        speed = self._window.tokens / max(1e-9, self._window.seconds)
        line = {
            "step": self.curve.step,
            "words": round(self.curve.words),
            "tokens": self.curve.tokens,
            "seconds": round(self.curve.seconds, 1),
            "loss": loss,
            **(losses if len(losses) > 1 else {}),
            "learning_rate": (self.settings.learning_rate or 0.0) * factor,
            "tokens_per_second": round(speed),
            "matrix_share": round(speed * self._stepper.operations[self._stage] / self.rate, 4),
        }
        if self._log is not None:
            self._log.write(line)
        self._tell(line)
        self._window = Window()

    def _diverged(self, value: float) -> str:
        return (
            f"The loss became {value} by step {self.curve.step}: use a smaller --learning-rate, "
            "or --precision fp32."
        )

    def _tell(self, line: dict[str, Any]) -> None:
        if time.perf_counter() - self._told < TELL_SECONDS:
            return
        self._told = time.perf_counter()
        row = {
            "step": f"step {line['step']:,}",
            "words": f"{line['words']:,}",
            "loss": f"{line['loss']:.3f}",
            "tokens/s": f"{line['tokens_per_second']:,}",
            "of the matrix rate": f"{line['matrix_share']:.1%}",
        }
        self.progress.table([row])

    def _save(self) -> None:
        self._saved = time.perf_counter()
        if not self.devices.is_main:
            return
        state = {
            "identity": self._identity,
            "curve": self.curve.to_json(),
            "weights": self._stepper.objective.state_dict(),
            "optimizer": self._stepper.optimizer.state_dict(),
            "random": random_state(),
            "window": self._window.to_state(),
        }
        known = f"that of step {self._kept:,} is whole" if self._kept else "there was none before"
        problem = f"The checkpoint {self._checkpoint} cannot be written"
        with telling(problem, f"{known}. Make room; the same command then goes on from it"):
            save_atomically(state, self._checkpoint)
        self._kept = self.curve.step

    def _resume(self, objective: Objective) -> None:
        saved = load_checkpoint(self._checkpoint, self._identity, self.progress)
        if saved is None:
            return
        objective.load_state_dict(saved["weights"])
        self._stepper.optimizer.load_state_dict(saved["optimizer"])
        restore_random_state(saved["random"])
        self.curve = Curve(**saved["curve"])
        self._window = Window.of_state(saved["window"], self.devices.device)
        self._kept = self.curve.step
        self.progress.say(f"continuing after step {self.curve.step:,}")
