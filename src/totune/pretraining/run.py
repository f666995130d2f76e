"""One pretraining into one folder: its texts, its claim on the folder, training, the record."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from totune import machine
from totune.errors import ConfigError, DataError
from totune.io import read_checked_json, sweep, write_checked_json
from totune.outputs import check_output_folder
from totune.pretraining.corpus import HUB, PretrainingCorpus, hold_out, read_corpus
from totune.pretraining.curriculum import LengthCurriculum
from totune.pretraining.files import disk_faults
from totune.pretraining.loop import CHECKPOINT, PretrainingLoop
from totune.pretraining.objective import Objective
from totune.pretraining.record import write_card
from totune.pretraining.settings import PretrainingSettings
from totune.progress import Progress
from totune.training.devices import Devices

FACTS = "pretraining.json"
Built = tuple[Objective, LengthCurriculum, dict[str, Any]]  # what to train, on what, its facts


@dataclass(frozen=True)
class Pretrained:
    """A finished pretraining.

    Attributes:
        folder: the encoder, which loads by this path.
        facts: text, settings, results and costs, as in `pretraining.json`.
    """

    folder: Path
    facts: Mapping[str, Any]

    @property
    def validation(self) -> dict[str, float]:
        """The metrics of the last evaluation: "perplexity" and others."""
        metrics: dict[str, float] = self.facts["validation"]
        return metrics


def read_texts(
    sources: Sequence[str | Path],
    validation: str | Path | None,
    max_words: int | None,
    progress: Progress,
) -> tuple[PretrainingCorpus, PretrainingCorpus]:
    """Counts and checks the text to train on and the text held out.

    Raises:
        DataError: if they cannot be used.
    """
    if not sources:
        raise DataError("No corpus is named: give text files, or hub:NAME.")
    corpus = read_corpus(sources, max_words)
    split = hold_out(corpus) if validation is None else (corpus, read_corpus([validation]))
    train, held_out = split
    progress.say(
        f"{train.words:,} words in {len(train):,} documents; held out: "
        f"{held_out.words:,} words in {len(held_out):,}"
    )
    return split


def describe_texts(train: PretrainingCorpus, held_out: PretrainingCorpus) -> dict[str, Any]:
    """The facts of both texts, without the folders that their files lie in."""
    return {
        name: {
            "sources": [one if one.startswith(HUB) else Path(one).name for one in corpus.sources],
            "documents": len(corpus),
            "words": corpus.words,
            "fingerprint": corpus.fingerprint,
        }
        for name, corpus in (("train", train), ("validation", held_out))
    }


class PretrainingRun:
    """One pretraining into one folder.

    Args:
        out: the folder; new, empty, or that of the same pretraining.
        about: what is trained and on what, as plain data: with the settings, everything that a
            checkpoint must agree with.
        settings: complete.
        progress: receives losses and evaluations.
    """

    def __init__(
        self, out: Path, about: Mapping[str, Any], settings: PretrainingSettings, progress: Progress
    ) -> None:
        self.out, self.about, self.settings = out, dict(about), settings
        self.progress, self.devices = progress, Devices()
        machine.choose_precision(settings.precision, self.devices.device)  # raises early
        facts = {**self.about, "settings": asdict(settings)}
        text = json.dumps(facts, sort_keys=True, default=str)
        self.identity = hashlib.sha256(text.encode()).hexdigest()[:32]

    def run(self, build: Callable[[], Built]) -> Pretrained:
        """Trains what `build` returns, or continues; does nothing if it is finished.

        Raises:
            ConfigError: if the folder holds something else.
            RunError: if training fails, or a file cannot be written.
        """
        finished = None
        with disk_faults(f"The folder {self.out} cannot be written", "name another folder"):
            if self.devices.is_main:
                finished = self._claim()
        self.devices.wait()
        if finished is None and not self.devices.is_main:
            finished = self._claim()
        if finished is not None:
            self.progress.say(f"{self.out} holds this pretraining, finished before")
            return Pretrained(self.out, finished)
        machine.keep_freed_memory()
        objective, curriculum, built = build()
        machine.reset_peak_memory(self.devices.device)
        loop = PretrainingLoop(
            objective,
            curriculum,
            self.settings,
            self.out,
            self.identity,
            self.progress,
            self.devices,
        )
        validation = loop.run()
        facts = self._facts(built, loop, validation)
        if self.devices.is_main:
            self._save(objective, facts)
        self.devices.wait()
        return Pretrained(self.out, facts)

    def _claim(self) -> dict[str, Any] | None:
        """Makes the folder this pretraining's; the facts found there, if it is finished.

        A folder that another one claimed and never wrote a checkpoint to is free.

        Raises:
            ConfigError: if the folder holds something else.
        """
        file = self.out / FACTS
        if not file.is_file():
            check_output_folder(self.out, f"a pretraining ({FACTS})", lambda _: False)
            self.out.mkdir(parents=True, exist_ok=True)
            sweep(self.out)
            self._write_facts({"identity": self.identity, "finished": False})
            return None
        try:
            facts: dict[str, Any] = read_checked_json(file)
            identity, finished = facts["identity"], bool(facts["finished"])
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"{file} cannot be read, so it is unknown which pretraining {self.out} holds. Name "
                "another folder, or remove this one."
            ) from None
        if identity == self.identity:
            return facts if finished else None
        if finished or (self.out / CHECKPOINT).exists():
            raise ConfigError(
                f"{self.out} holds another pretraining: other text, sizes or settings. Name "
                "another folder, or remove this one."
            )
        self._write_facts({"identity": self.identity, "finished": False})
        return None

    def _facts(
        self, built: dict[str, Any], loop: PretrainingLoop, validation: dict[str, float]
    ) -> dict[str, Any]:
        state = loop.state
        seconds = max(1e-9, state.step_seconds)
        return {
            "identity": self.identity,
            "finished": True,
            **self.about,
            **built,
            "settings": asdict(self.settings),
            "steps": state.step,
            "turned": state.turned,
            "words": round(state.words),
            "tokens": state.tokens,
            "validation": validation,
            "evaluations": state.evaluations,
            "seconds": round(state.seconds, 1),
            "step_seconds": round(state.step_seconds, 1),
            "tokens_per_second": round(state.tokens / seconds, 1),
            "words_per_second": round(state.words / seconds, 1),
            "operations": state.operations,
            "matrix_rate": loop.rate,
            "matrix_share": round(state.operations / seconds / loop.rate, 4),
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
            disk_faults(problem, "make room; the same call then continues from the checkpoint"),
            tempfile.TemporaryDirectory(prefix="model.", dir=self.out) as temporary,
        ):
            objective.save(Path(temporary))
            write_card(Path(temporary), facts)
            for file in sorted(Path(temporary).iterdir()):
                file.replace(self.out / file.name)
            self._write_facts(facts)
        (self.out / CHECKPOINT).unlink(missing_ok=True)

    def _write_facts(self, facts: Mapping[str, Any]) -> None:
        """Writes `pretraining.json` in one rename."""
        write_checked_json(self.out / FACTS, facts)


def count_parameters(encoder: nn.Module, objective: nn.Module) -> dict[str, int]:
    """The number of parameters of the encoder, and of everything that is trained."""
    sizes = {"encoder": encoder, "trained": objective}
    return {
        name: sum(parameter.numel() for parameter in module.parameters())
        for name, module in sizes.items()
    }
