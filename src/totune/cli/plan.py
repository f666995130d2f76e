"""`totune plan`: what a strategy would train, before anything is trained."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from totune.cli.options import (
    DATA_OPTIONS,
    Json,
    examples,
    parse_assignments,
    read_settings,
    takes,
)
from totune.cli.output import emit, show_table
from totune.errors import ConfigError
from totune.registry import build
from totune.runs.settings import Settings

if TYPE_CHECKING:
    from totune.heads.base import Head
    from totune.model import Model
    from totune.strategies.phases import Group, Phase
    from totune.tasks.base import Task

EXAMPLES = examples(
    ("The top two layers of the default encoder:", "totune plan last-2"),
    ("How long and at which rate it would train on your data:", "totune plan lora --data a.csv"),
    (
        "Where the columns must be named:",
        "totune plan lora --data a.csv --text review --label stars --task regression",
    ),
    ("The same for 600 train rows:", "totune plan fine-tuning --rows 600"),
    (
        "A rate for each layer, on an encoder of which only config.json is there:",
        "totune plan fine-tuning --model configs/bert --set layer_decay=0.9",
    ),
    (
        "Adapters, one for three layers, and what they train:",
        "totune plan adapters --model configs/bert --set sharing=every-3 --json",
    ),
)


@takes(DATA_OPTIONS)
def run(
    strategy: Annotated[str, typer.Argument(help="A name of totune list strategies.")],
    model: Annotated[str, typer.Option(help="Encoder; its config.json is enough.")] = "minilm",
    head: Annotated[str, typer.Option(help="The task network on top.")] = "linear",
    num_labels: Annotated[int, typer.Option(min=1, help="Classes; 1 for scores.")] = 2,
    data: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="As for compare: its rows decide how long to train."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Train rows, where no data is named.")] = 1000,
    set: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option; repeatable.")
    ] = None,
    json: Json = False,
    **reading: Any,
) -> None:
    """Show a strategy's phases and what they train, without training."""
    options = parse_assignments(set or [])
    facts = describe(strategy, model, head, num_labels, options, *_sizes(data, rows, reading))
    if json:
        return emit(facts)
    typer.echo(f"{facts['strategy']} on {facts['model']}, {facts['parameters']:,} parameters")
    by_rule = facts["by_rule"].items()
    chosen = ", ".join(f"{name}={_text(value)}" for name, value in by_rule if value is not None)
    typer.echo(
        f"For {facts['train_rows']:,} train rows: {chosen or 'every option as set'}; "
        f"{facts['train_batch_size']} rows per step"
    )
    if facts["preparation"]:
        typer.echo(facts["preparation"])
    for number, phase in enumerate(facts["phases"], start=1):
        course = ", ".join(filter(None, (phase["schedule"], phase["stop"])))
        learns = "Learns from all pairs of a batch's rows. " * (phase["objective"] == "pairs")
        typer.echo(f"\nPhase {number}: {phase['name']}. {learns}{course}.")
        show_table(
            ("part", "kinds", "parameters", "learning rate", "weight decay"),
            [
                (row["part"], row["kinds"], f"{row['parameters']:,}", *_rates(row, phase))
                for row in phase["parts"]
            ],
        )
        without = phase["trainable_without_last_classifier"]
        rest = "" if without is None else f", {without:,} without the head's last layer"
        typer.echo(f"{phase['trainable']:,} parameters train{rest}")


def _rates(row: dict[str, Any], phase: dict[str, Any]) -> tuple[str, str]:
    if row["learning_rate"] is None:
        return "frozen", ""
    if row["learning_rate"] == 0:
        return "class means" if phase["objective"] == "pairs" else "solved", ""
    return f"{row['learning_rate']:g}", f"{row['weight_decay']:g}"


def _sizes(data: str | None, rows: int, reading: Mapping[str, Any]) -> tuple[int, int, str | None]:
    """How many train and dev rows there are, and the task, where data was named.

    Raises:
        ConfigError: if a setting cannot be, or says how to read data and none was named.
        DataError: if the data cannot be used.
    """
    settings = build(Settings, read_settings(reading), "plan")
    settings.check()
    if data is None and settings.train is None:
        usual = Settings()
        unused = [name for name in reading if getattr(settings, name) != getattr(usual, name)]
        if unused:
            raise ConfigError(f"`{unused[0]}` says how data is read: name it with `data`.")
        return rows, max(1, rows // 8), None  # as splits of 80, 10 and 10% have them
    from totune.data.sources import load_dataset

    found = load_dataset(settings.source(data), **settings.reading(may_fold=True))
    return len(found.train), len(found.dev), found.columns.task


def describe(
    strategy: str,
    model: str,
    head: str,
    num_labels: int,
    options: dict[str, Any],
    rows: int = 1000,
    dev_rows: int = 125,
    task: str | None = None,
) -> dict[str, Any]:
    """The plan as plain data.

    Raises:
        ConfigError: for an unknown strategy, head or option, or a baseline, which has no plan.
        ModelError: if the encoder's configuration cannot be had.
    """
    from totune.runs.config import Candidate, assign_options, check_candidates
    from totune.strategies.defaults import batch_size

    member = Candidate(strategy, head=head)
    check_candidates([member])
    (member,) = assign_options([member], options)
    check_candidates([member])
    if member.is_baseline:
        raise ConfigError(f"{strategy!r} is a baseline: it trains no encoder and has no plan.")
    built, name, phases, chosen, preparation = _build(
        member, model, num_labels, rows, dev_rows, task
    )
    return {
        "strategy": strategy,
        "model": name,
        "train_rows": rows,
        "train_batch_size": batch_size(rows),
        "by_rule": chosen,
        "preparation": preparation,
        "parameters": sum(p.numel() for p in built.unique_parameters().values()),
        "phases": [_phase(built, phase) for phase in phases],
    }


def _build(
    member: Any, reference: str, num_labels: int, rows: int, dev_rows: int, of_data: str | None
) -> "tuple[Model, str, list[Phase], dict[str, Any], str]":
    from totune.encoders.loading import plan_encoder
    from totune.runs.model_spec import ModelSpec
    from totune.strategies.defaults import TrainingFacts

    encoder, source = plan_encoder(reference)
    if of_data == "regression":
        num_labels = 1
    task = _task(member.create_head({}), num_labels)
    width = None if encoder.reads_words else encoder.width
    facts = TrainingFacts(rows, dev_rows, width, of_data or task.name)
    spec = ModelSpec.of_candidate(member, facts, task, encoder)
    model, phases = spec.check()
    preparation = spec.strategy.preparation(model)
    return model, source.name, phases, member.by_rule(spec.strategy, facts), preparation


def _task(head: "Head", num_labels: int) -> "Task":
    """A task that the head is for; only the number of its outputs matters to a plan."""
    from totune.tasks.base import TASKS

    labels = {"labels": [str(number) for number in range(num_labels)]}
    if "words" in head.wants and len(head.wants) == 1:
        return TASKS.create("tagging", {**labels, "scheme": ""})
    if num_labels == 1:
        return TASKS.create("regression", {"low": 0.0, "high": 1.0})
    return TASKS.create("classification", labels)


def _phase(model: "Model", phase: "Phase") -> dict[str, Any]:
    """A phase as plain data; every part with what trains of it, at which rate, and the rest."""
    from totune.strategies.coverage import assign, without_last_layer
    from totune.strategies.phases import Solved

    solved = isinstance(phase.stop, Solved)
    trained, unique = assign(model, phase.train), model.unique_parameters()
    names = {id(parameter): name for name, parameter in unique.items()}
    rows = []
    for part, named in model.parts().items():
        sizes = dict[Any, int]()
        for _, parameter in named:
            group = trained.get(names[id(parameter)])
            sizes[group] = sizes.get(group, 0) + parameter.numel()
        rows += [_row(part, group, size) for group, size in sizes.items()]
    rest = without_last_layer(trained)
    trainable = sum(unique[name].numel() for name in trained)
    return {
        "name": phase.name,
        "objective": phase.objective,
        "schedule": "" if solved else _words(phase.schedule),
        "stop": str(phase.stop) if solved else _words(phase.stop),
        "trainable": trainable,  # layers that share weights count once
        "trainable_without_last_classifier": (
            sum(unique[name].numel() for name in rest) if len(rest) < len(trained) else None
        ),
        "parts": rows,
    }


def _row(part: str, group: "Group | None", size: int) -> dict[str, Any]:
    return {
        "part": part,
        "kinds": "" if group is None else ", ".join(group.kinds) or "all",
        "parameters": size,
        "learning_rate": group and group.learning_rate,
        "weight_decay": group and group.weight_decay,
    }


def _words(item: Any) -> str:
    options = (f"{field.name}={_text(getattr(item, field.name))}" for field in fields(item))
    return f"{type(item).__name__}({', '.join(options)})"


def _text(value: Any) -> str:
    if is_dataclass(value):
        return _words(value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)
