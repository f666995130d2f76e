"""What both kinds of pretraining have in common: the texts, the folder, training, the record."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from totune import machine
from totune.errors import DataError
from totune.pretraining.card import write_card
from totune.pretraining.corpus import HUB, Corpus, hold_out, read_corpus
from totune.pretraining.course import Course
from totune.pretraining.files import telling
from totune.pretraining.loop import Loop
from totune.pretraining.objective import Objective
from totune.pretraining.record import CHECKPOINT, Pretrained, claim, write_facts
from totune.pretraining.rows import Rows, cut_rows
from totune.pretraining.settings import PretrainingSettings
from totune.pretraining.store import Store
from totune.progress import Progress
from totune.training.devices import Devices


@dataclass(frozen=True)
class Texts:
    """What is learnt from, and what is held out."""

    train: Corpus
    validation: Corpus

    @classmethod
    def of(
        cls,
        sources: Sequence[str | Path],
        validation: str | Path | None,
        settings: PretrainingSettings,
        progress: Progress,
    ) -> "Texts":
        """Counts and checks them; raises `DataError` if they cannot be used."""
        if not sources:
            raise DataError("No corpus is named: give text files, or hub:NAME.")
        corpus = read_corpus(sources, settings.max_words)
        if validation is None:
            texts = cls(*hold_out(corpus))
        else:
            texts = cls(corpus, read_corpus([validation]))
        progress.say(
            f"{texts.train.words:,} words in {len(texts.train):,} documents; held out: "
            f"{texts.validation.words:,} words in {len(texts.validation):,}"
        )
        return texts

    def rows(self, store: Store, limit: int) -> tuple[Rows, Rows]:
        """The rows of both, of up to `limit` pieces."""
        border = store.train_documents
        train = cut_rows(store, 0, border, limit, self.train.words)
        last = border + len(self.validation)
        return train, cut_rows(store, border, last, limit, self.validation.words)

    def facts(self) -> dict[str, Any]:
        return {"train": _facts(self.train), "validation": _facts(self.validation)}


def _facts(corpus: Corpus) -> dict[str, Any]:
    names = [one if one.startswith(HUB) else Path(one).name for one in corpus.sources]
    return {
        "sources": names,
        "documents": len(corpus),
        "words": corpus.words,
        "fingerprint": corpus.fingerprint,
    }


class Session:
    """One pretraining into one folder.

    Args:
        out: the folder; new, empty, or that of the same pretraining.
        about: what is trained and on what, as plain data: with the settings, what a checkpoint
            must agree with.
        settings: complete.
        progress: told how it goes.
    """

    def __init__(
        self, out: Path, about: Mapping[str, Any], settings: PretrainingSettings, progress: Progress
    ) -> None:
        self.out, self.about, self.settings = out, dict(about), settings
        self.progress, self.devices = progress, Devices()
        machine.choose_precision(settings.precision, self.devices.device)  # or it is told now
        facts = {**self.about, "settings": asdict(settings)}
        text = json.dumps(facts, sort_keys=True, default=str)
        self.identity = hashlib.sha256(text.encode()).hexdigest()[:32]

    def run(self, build: Callable[[], "Ready"]) -> Pretrained:
        """Trains what `build` makes, or goes on; nothing if it has been finished.

        Raises:
            ConfigError: if the folder holds something else.
            RunError: if training fails, or a file cannot be written.
        """
        with telling(f"--out {self.out} cannot be written", "name another folder"):
            finished = claim(self.out, self.identity) if self.devices.is_main else None
        self.devices.wait()
        if finished is None and not self.devices.is_main:
            finished = claim(self.out, self.identity)
        if finished is not None:
            self.progress.say(f"{self.out} holds this pretraining, finished before")
            return finished
        machine.keep_freed_memory()
        ready = build()
        machine.reset_peak_memory(self.devices.device)
        loop = Loop(
            ready.objective,
            ready.course,
            self.settings,
            self.out,
            self.identity,
            self.progress,
            self.devices,
        )
        validation = loop.run()
        facts = self._facts(ready, loop, validation)
        if self.devices.is_main:
            self._save(ready.objective, facts)
        self.devices.wait()
        return Pretrained(self.out, facts)

    def _facts(self, ready: "Ready", loop: Loop, validation: dict[str, float]) -> dict[str, Any]:
        curve = loop.curve
        seconds = max(1e-9, curve.step_seconds)
        return {
            "identity": self.identity,
            "finished": True,
            **self.about,
            **ready.facts,
            "settings": asdict(self.settings),
            "parameters": {
                "encoder": _size(ready.encoder),
                "trained": _size(ready.objective),
            },
            "steps": curve.step,
            "turned": curve.turned,
            "words": round(curve.words),
            "tokens": curve.tokens,
            "validation": validation,
            "evaluations": curve.evaluations,
            "seconds": round(curve.seconds, 1),
            "step_seconds": round(curve.step_seconds, 1),
            "tokens_per_second": round(curve.tokens / seconds, 1),
            "words_per_second": round(curve.words / seconds, 1),
            "operations": curve.operations,
            "matrix_rate": loop.rate,
            "matrix_share": round(curve.operations / seconds / loop.rate, 4),
            "peak_memory_bytes": machine.peak_memory(self.devices.device),
            "precision": loop.precision,
            "processes": self.devices.world,
            "machine": asdict(machine.describe()),
            "versions": machine.versions(),
        }

    def _save(self, objective: Objective, facts: dict[str, Any]) -> None:
        """Writes the model beside its place, then moves it there: what loads is whole."""
        problem = f"The model cannot be written to {self.out}"
        with (
            telling(problem, "make room; the same command then goes on from the checkpoint"),
            tempfile.TemporaryDirectory(prefix="model.", dir=self.out) as temporary,
        ):
            objective.save(Path(temporary))
            write_card(Path(temporary), facts)
            for file in sorted(Path(temporary).iterdir()):
                file.replace(self.out / file.name)
            write_facts(self.out, facts)
        (self.out / CHECKPOINT).unlink(missing_ok=True)


@dataclass(frozen=True)
class Ready:
    """What is about to be trained.

    Attributes:
        objective: with its model.
        encoder: the part of it that tasks use.
        course: what is read.
        facts: what else is worth recording.
    """

    objective: Objective
    encoder: nn.Module
    course: Course
    facts: Mapping[str, Any]


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
