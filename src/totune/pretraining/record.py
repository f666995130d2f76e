"""What a pretraining leaves beside the model: how far it has come, its log, and its model card."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from totune.pretraining.files import disk_faults
from totune.pretraining.objective import StepBatch

LOG, CARD = "log.jsonl", "README.md"
Lines = list[tuple[str, object]]  # of a table of the card


@dataclass
class TrainingState:
    """How far a training has come.

    Attributes:
        step: optimizer steps done.
        seconds: wall time, evaluations included.
        step_seconds: wall time without evaluations, checkpoints and the measurements before the
            first step.
        words: white-space separated words read.
        tokens: tokens read.
        operations: floating-point operations of matrix products.
        turned: the step at which rows of full length began; None before.
        evaluations: metrics of each evaluation, with its step.
    """

    step: int = 0
    seconds: float = 0.0
    step_seconds: float = 0.0
    words: float = 0.0
    tokens: int = 0
    operations: float = 0.0
    turned: int | None = None
    evaluations: list[dict[str, float]] = field(default_factory=list)


class RunningSums:
    """Sums over the steps since the last line of the log.

    Attributes:
        sums: of losses by name, on the device of this process.
        targets: number of predictions, by the name of the loss.
        tokens: tokens read.
        seconds: wall time of the steps.
    """

    def __init__(self) -> None:
        self.sums: dict[str, torch.Tensor] = {}
        self.targets: dict[str, int] = {}
        self.tokens, self.seconds = 0, 0.0

    def add(self, sums: dict[str, torch.Tensor], batch: StepBatch) -> None:
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, torch.zeros_like(value)) + value
        for name, count in batch.targets.items():
            self.targets[name] = self.targets.get(name, 0) + count
        self.tokens += batch.tokens

    def load(self, state: dict[str, Any], device: torch.device) -> None:
        """Restores what `vars` gave."""
        vars(self).update(state)
        self.sums = {name: value.to(device) for name, value in self.sums.items()}


class TrainingLog:
    """A file with a JSON object per line, in the order of steps.

    Args:
        path: the file.
        step: the last step done; lines of later steps are removed, as they will be written again.
    """

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        kept = [line for line in lines if _step_of(line) <= step] if step else []
        path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    def write(self, facts: Mapping[str, Any]) -> None:
        problem = f"The log {self._path} cannot be written"
        remedy = "make room; the same call continues from the last checkpoint"
        with disk_faults(problem, remedy), self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")


def _step_of(line: str) -> float:
    """The step of a line; infinity for a line that was cut short."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


def write_card(folder: Path, facts: Mapping[str, Any]) -> None:
    """Writes a model card for a person who finds the folder, from the facts of the training."""
    kind = {"bert": "masked language model", "elmo": "bidirectional language model"}
    sections = [
        f"# {facts['kind'].upper()}, pretrained with totune\n\nA {kind[facts['kind']]}: "
        f"{facts['parameters']['encoder']:,} parameters in the encoder"
        f" ({facts['parameters']['trained']:,} with what only pretraining uses). It loads as "
        "`--model` of every totune command.\n",
        _table("Text", _text(facts)),
        _table("Training", _training(facts)),
        _table("Results", _results(facts)),
        _curve(facts["evaluations"]),
        _table("Cost", _cost(facts)),
        _table("Versions", [*facts["versions"].items()]),
        "Everything here is in `pretraining.json` as plain data; `log.jsonl` has the losses.\n",
    ]
    (folder / CARD).write_text("\n".join(sections), encoding="utf-8")


def _text(facts: Mapping[str, Any]) -> Lines:
    rows: Lines = []
    for name, label in (("train", "trained on"), ("validation", "held out")):
        corpus = facts["corpus"][name]
        sources = ", ".join(corpus["sources"])
        sizes = f"{corpus['words']:,} words in {corpus['documents']:,} documents"
        rows.append((label, f"{sources}: {sizes}"))
    rows.append(("vocabulary", f"{facts['vocab_size']:,}"))
    if "unknown_share" in facts:
        rows.append(("words outside it", f"{facts['unknown_share']:.2%} of the text"))
    return rows


def _training(facts: Mapping[str, Any]) -> Lines:
    settings = facts["settings"]
    begin = facts["continued_from"] or f"random weights (preset {facts['preset']})"
    options = ("next_sentence", "whole_word_mask", "cased", "clip")
    chosen = [f"{name} {facts[name]}" for name in options if facts.get(name)]
    notes = [("note", note) for note in facts.get("notes", [])]
    return [
        ("from", begin),
        *notes,
        ("options", ", ".join(chosen) or "none"),
        ("read", f"{facts['words']:,} words, {facts['tokens']:,} tokens, {facts['steps']:,} steps"),
        ("a step", _step(facts)),
        ("learning rate", f"{settings['learning_rate']:g}, AdamW, linear decay after warm-up"),
        ("precision", facts["precision"]),
        ("seed", settings["seed"]),
    ]


def _step(facts: Mapping[str, Any]) -> str:
    settings = facts["settings"]
    whole = f"{settings['batch_size']} rows of up to {settings['max_length']} tokens"
    short = settings.get("short_length")
    if short is None or facts.get("turned") is None:
        return whole
    return f"rows of up to {short} tokens; from step {facts['turned']:,} on {whole}"


def _results(facts: Mapping[str, Any]) -> Lines:
    return [
        (f"held-out {name.replace('_', ' ')}", f"{value:.4g}")
        for name, value in facts["validation"].items()
    ]


def _cost(facts: Mapping[str, Any]) -> Lines:
    machine = facts["machine"]
    devices = ", ".join(machine["cuda_devices"]) or machine["processor"]
    return [
        ("time", f"{facts['seconds'] / 60:.1f} minutes"),
        ("speed", f"{facts['tokens_per_second']:,.0f} tokens/s"),
        ("of the machine's matrix rate", f"{facts['matrix_share']:.1%}"),
        ("matrix products", f"{facts['operations']:.3g} floating-point operations"),
        ("peak memory", f"{facts['peak_memory_bytes'] / 2**30:.1f} GiB"),
        ("on", f"{devices} ({facts['processes']} process(es), {machine['cores']} cores)"),
    ]


def _curve(evaluations: list[Mapping[str, Any]]) -> str:
    """Evaluations during training, each on the same part of the held-out text."""
    if not evaluations:
        return ""
    names = [name for name in evaluations[0] if name not in ("step", "seconds")]
    head = " | ".join(name.replace("_", " ") for name in names)
    lines = [
        " | ".join(f"{row[name]:,}" if name == "words" else f"{row[name]:.4g}" for name in names)
        for row in evaluations
    ]
    body = "\n".join(f"| {line} |" for line in lines)
    rule = "---|" * len(names)
    return f"During training, on a part of the held-out text:\n\n| {head} |\n|{rule}\n{body}\n"


def _table(title: str, rows: Lines) -> str:
    body = "\n".join(f"| {name} | {str(value).replace('|', ' ')} |" for name, value in rows)
    return f"## {title}\n\n| | |\n|---|---|\n{body}\n"
