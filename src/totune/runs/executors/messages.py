"""What a worker tells the process that it works for: notes, warnings, and how its runs go."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from totune.progress import Progress
from totune.runs.callbacks import Callback
from totune.runs.config import RunConfig
from totune.runs.context import Context
from totune.runs.executors.base import Job
from totune.runs.records import RunRecord
from totune.training.history import EpochRecord


@dataclass(frozen=True)
class Message:
    """One call of a progress or a callback, to be made elsewhere."""

    method: Literal["say", "warn", "begun", "epoch", "ended"]
    arguments: tuple[Any, ...]


Send = Callable[[Message], None]


class SendingProgress(Progress):
    """Sends notes and warnings; a bar would say little beside those of other workers."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def say(self, message: str) -> None:
        self._send(Message("say", (message,)))

    def warn(self, message: str) -> None:
        self._send(Message("warn", (message,)))


class SendingWatcher(Callback):
    """Sends how runs go, to the one who looks on in the process that they are done for."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def on_run_begin(self, config: RunConfig) -> None:
        self._send(Message("begun", (config,)))

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        self._send(Message("epoch", (config, epoch)))

    def on_run_end(self, record: RunRecord) -> None:
        self._send(Message("ended", (record,)))


class Delivery:
    """Makes the calls that workers send.

    Args:
        context: whose progress and callback they are for.
    """

    def __init__(self, context: Context) -> None:
        self._progress, self._watcher = context.progress, context.callback
        self._warned: set[str] = set()

    def __call__(self, job: Job, message: Message) -> None:
        """A note is said with the job that it is about, a warning of several workers once."""
        if message.method == "say":
            self._progress.say(f"{job.title}: {message.arguments[0]}")
        elif message.method == "warn":
            self._warn(message.arguments[0])
        else:
            getattr(self._watcher, message.method)(*message.arguments)

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._progress.warn(text)
