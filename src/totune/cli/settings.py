"""The options of commands that train: one table, read into the settings of `totune.api`.

Names and defaults are those of `totune.runs.settings.Settings` (a test compares them); it is not
imported here because help should not wait for PyTorch.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from totune.cli.options import output
from totune.cli.parsing import (
    parse_assignments,
    parse_duration,
    parse_names,
    parse_search,
    parse_seeds,
)
from totune.errors import ConfigError

DATA, TRAINING, STUDY, MACHINE = "Data", "Training", "Study", "Machine"


def option(
    name: str, kind: Any, panel: str, text: str, default: Any = None, metavar: str | None = None
) -> inspect.Parameter:
    """A keyword parameter as typer reads it."""
    parser = output(f"--{name.replace('_', '-')}") if kind == Path | None else None
    annotation = Annotated[
        kind, typer.Option(parser=parser, help=text, rich_help_panel=panel, metavar=metavar)
    ]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=annotation)


COMMON_OPTIONS = [
    option("model", str, TRAINING, "Encoder: a hub id, a local folder, or an alias.", "minilm"),
    option("head", str, TRAINING, "The task network on top.", "linear"),
    option(
        "text",
        str | None,
        DATA,
        "Column of the text: its name, or its number counted from 1. Detected if not named.",
        metavar="COLUMN",
    ),
    option(
        "pair",
        str | None,
        DATA,
        "Column of the second text, for pairs: its name or its number.",
        metavar="COLUMN",
    ),
    option(
        "label", str | None, DATA, "Column of the label: its name or its number.", metavar="COLUMN"
    ),
    option(
        "task", str | None, DATA, "classification, regression or tagging. Detected if not named."
    ),
    option("tag_scheme", str, DATA, "iob1, iob2 or iobes: what tags are converted to.", "iob2"),
    option("encoding", str | None, DATA, "Of the data files; UTF-8 if not named."),
    option("fraction", float, DATA, "Share of the train rows that is used.", 1.0),
    option("split_seed", int, DATA, "Fixes the splits that are made where data has none.", 0),
    option("metric", str | None, STUDY, "The metric that decides; the task's first if not named."),
    option(
        "positive_label",
        str | None,
        STUDY,
        "Of two classes the one that F1 is of; if not named, the second in the data's order (the "
        "hub's class names; numbers by value, words by alphabet).",
        metavar="CLASS",
    ),
    option(
        "learning_rate",
        float | None,
        TRAINING,
        "Peak rate, of every strategy that has one; if not named, it follows from the encoder.",
    ),
    option(
        "num_train_epochs",
        int | None,
        TRAINING,
        "Epochs, of every strategy that has them; of several phases, those of the last. If not "
        "named, they follow from the number of train rows (totune plan shows them).",
    ),
    option("warmup_ratio", float | None, TRAINING, "Share of the steps with a rising rate."),
    option("weight_decay", float | None, TRAINING, "Decoupled weight decay."),
    option(
        "per_device_train_batch_size",
        int | None,
        TRAINING,
        "Rows per step and device; if not named 32, or 16 where there are few train rows.",
    ),
    option(
        "tokens_per_batch",
        int | None,
        TRAINING,
        "Word pieces per step (padding included) instead of a number of rows.",
    ),
    option("max_length", int, TRAINING, "Texts are cut after this many word pieces.", 256),
    option("max_grad_norm", float, TRAINING, "Gradients are clipped to this norm.", 1.0),
    option(
        "set",
        list[str] | None,
        TRAINING,
        "Any other option, as NAME=VALUE, STRATEGY.NAME=VALUE or head.NAME=VALUE; repeatable.",
        metavar="NAME=VALUE",
    ),
    option(
        "track",
        str | None,
        STUDY,
        "Trackers told of every run and epoch: tensorboard, mlflow, wandb, with commas between. "
        "Files lie in the folder's tracking/ unless MLFLOW_TRACKING_URI or WANDB_MODE=online says "
        "otherwise.",
        metavar="NAMES",
    ),
    option("precision", str, MACHINE, "auto, bf16 or fp32.", "auto"),
    option("cache_dir", Path | None, MACHINE, "Where frozen features are kept.", metavar="FOLDER"),
    option(
        "cache_budget",
        str | None,
        MACHINE,
        "What they may take, as 20GB; a quarter of the free disk if not named.",
    ),
]
_STUDY_OPTIONS = [
    option(
        "strategies",
        str | None,
        STUDY,
        "What is compared, with commas between (totune list strategies, totune list baselines); "
        "if not named: tf-idf (for tagging: most-frequent-tag), sentence-embedding (for pairs), "
        "feature-extraction, last-2, gradual-unfreezing, stack-and-finetune, fine-tuning, adapters "
        "and lora.",
    ),
    option("seeds", str, STUDY, "How many seeds, or which: 3,7,11.", "3"),
    option(
        "budget",
        str | None,
        STUDY,
        "Begin no run after this time, as 30m or 2h.",
        metavar="DURATION",
    ),
    option(
        "race",
        bool,
        STUDY,
        "Run a seed of each per round, and stop what is credibly worse or cannot be settled: the "
        "verdict of many seeds (say --seeds 5) at a part of their cost.",
        False,
    ),
    option(
        "race_fraction",
        float | None,
        STUDY,
        "Begin a race on this share of the train rows, where dearer and worse strategies leave.",
    ),
    option(
        "search",
        str | None,
        STUDY,
        "Search each strategy's options on dev first, as many trials (20) or as long (10m).",
        metavar="TRIALS|DURATION",
    ),
    option(
        "search_storage",
        str | None,
        STUDY,
        "Database in which several machines share the searches; a file of the study if not named.",
        metavar="URL",
    ),
    option(
        "keep_weights",
        str,
        STUDY,
        "Trained weights of each strategy's best run, or of all: best or all.",
        "best",
    ),
    option(
        "tolerance", float, STUDY, "How much worse than the best a cheaper strategy may be.", 0.005
    ),
]

_EXECUTOR_OPTIONS = [
    option(
        "jobs",
        int,
        MACHINE,
        "Runs at once, each in a process with its share of the cores or GPUs. The last bits of "
        "what trains depend on the number of threads: they are those of one process with as many.",
        1,
        metavar="N",
    ),
    option("executor", str, MACHINE, "Where runs take place: local, or ray (a cluster).", "local"),
    option(
        "address",
        str | None,
        MACHINE,
        "Ray cluster, as auto or HOST:PORT; one is started on this machine if not named.",
    ),
    option(
        "cpus_per_run",
        float | None,
        MACHINE,
        "CPUs that a run reserves on the cluster, and its threads; this machine's cores by --jobs "
        "if not named.",
    ),
    option(
        "gpus_per_run",
        float | None,
        MACHINE,
        "GPUs that a run reserves on the cluster, 0.5 to share one; if not named 1, where there "
        "are any.",
    ),
]

STUDY_OPTIONS = _STUDY_OPTIONS + COMMON_OPTIONS + _EXECUTOR_OPTIONS

_MEMBER_OPTIONS = ("learning_rate", "num_train_epochs", "warmup_ratio", "weight_decay")


def takes(
    options: Sequence[inspect.Parameter],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command these options; it receives them in its `**settings`."""

    def extend(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        parameters = [*(p.replace(kind=p.KEYWORD_ONLY) for p in own), *options]
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return command

    return extend


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options as typed, as keyword arguments of `totune.api`.

    Raises:
        ConfigError: with every value that cannot be read.
    """
    from totune.features import parse_size

    readers: dict[str, Callable[[Any], Any]] = {
        "strategies": parse_names,
        "track": parse_names,
        "seeds": parse_seeds,
        "budget": parse_duration,
        "cache_budget": parse_size,
        "set": parse_assignments,
        "search": parse_search,
    }
    settings: dict[str, Any] = {}
    faults: list[str] = []
    for name, value in given.items():
        if value is None:
            continue
        try:
            settings[name] = readers[name](value) if name in readers else value
        except ConfigError as error:
            faults += error.faults
    if faults:
        raise ConfigError(faults)
    options = {name: settings.pop(name) for name in _MEMBER_OPTIONS if name in settings}
    options |= settings.pop("set", {})
    budget = settings.pop("search", {})
    return {**settings, **budget, "options": options}
