"""Where output goes: results to standard output, everything said on the way to standard error."""

import dataclasses
import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

WIDTH_OF_A_FILE = 160

if TYPE_CHECKING:
    from totune.report import table as report


def emit(data: Any) -> None:
    """One JSON object on one line: the last line of standard output under `--json`."""
    typer.echo(json.dumps(plain(data), allow_nan=False))


def plain(value: Any) -> Any:
    """`value` as what JSON can hold; a number that is not finite becomes null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def model_lines(folder: Path) -> Iterator[str]:
    """Where a trained model lies, and who can load it and how."""
    from totune.export import who_loads

    yield f"Model:  {folder} (totune predict {shlex.quote(str(folder))} INPUT)"
    yield from (f"        {sentence}" for sentence in who_loads(folder))


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table for a person, on standard output; cells are text, not markup."""
    table = Table(*map(escape, header), box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(escape, row))
    _console().print(table)


def _console() -> Console:
    """Standard output; a file or a pipe has no width, so no name is cut short there."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH_OF_A_FILE)


def show_report_table(table: "report.Table") -> None:
    """A table of a report, on standard output: the same cells, numbers aligned right."""
    drawn = Table(title=escape(table.title), title_justify="left", box=None, pad_edge=False)
    for column in table.columns:
        drawn.add_column(escape(column.name), justify="right" if column.numeric else "left")
    for row in table.rows:
        texts = [f"{cell.text}\n{cell.detail}".strip() for cell in row.cells]
        if row.mark:
            texts[0] += f"\n({row.mark})"
        drawn.add_row(*map(escape, texts))
    _console().print(drawn)
    for note in table.notes:
        typer.echo(note)


def show_metrics(metrics: Mapping[str, Mapping[str, float]]) -> None:
    """Metrics of one or more splits, a row for each, on standard output.

    Those of single types ("f1:PER"), which can be many, get a row each in a table of their own; of
    labels with their support ("support:joy") a row for each label.
    """
    from totune.metrics import METRICS
    from totune.report.formatting import metric_label, score

    names = list(dict.fromkeys(name for values in metrics.values() for name in values))
    overall = [name for name in names if ":" not in name or name in METRICS]
    show_table(
        ("", *map(metric_label, overall)),
        [
            (split, *(score(name, values.get(name)) for name in overall))
            for split, values in metrics.items()
        ],
    )
    of_types = [name for name in names if name not in overall]
    if any(name.startswith("support:") for name in of_types):
        typer.echo()
        return _show_label_scores(metrics, of_types)
    if of_types:
        typer.echo()
        rows = [(name, [values.get(name) for values in metrics.values()]) for name in of_types]
        show_table(
            ("", *metrics),
            [(metric_label(name), *(score(name, value) for value in row)) for name, row in rows],
        )


def _show_label_scores(metrics: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> None:
    """Support, precision, recall and F1 of each label, a row for each."""
    from totune.report.formatting import count, metric_label, score

    kinds = list(dict.fromkeys(name.partition(":")[0] for name in names))
    labels = list(dict.fromkeys(name.partition(":")[2] for name in names))
    columns = [(split, kind) for split in metrics for kind in kinds]
    header = [
        metric_label(kind) + (f", {split}" if len(metrics) > 1 else "") for split, kind in columns
    ]
    rows = []
    for label in labels:
        found = [(f"{kind}:{label}", metrics[split]) for split, kind in columns]
        shown = (
            (count if name.startswith("support:") else partial(score, name))(values.get(name))
            for name, values in found
        )
        rows.append([label, *shown])
    show_table(("Label", *header), rows)
