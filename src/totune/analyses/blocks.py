"""What analyses block by block share: blocks in words, values over seeds, a figure and a table."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.analyses.base import Rows
from totune.analyses.inputs.hidden_states import PRETRAINED, Pool, block_name
from totune.report import plots
from totune.report.axes import GREY, INK, RED, draw_level, label_axes
from totune.report.table import Cell, Column, Row, Table, word
from totune.runs.records import RunRecord

POOLED: dict[Pool, str] = {
    "mean": "averaged over tokens",
    "max": "the largest over tokens",
    "cls": "of the first token",
}


def describe_block(block: int, depth: int) -> str:
    """A block in a sentence: "the embedding layer", "layer 5 of 12", "the top layer"."""
    if not block:
        return "the embedding layer"
    return "the top layer" if block == depth else f"layer {block} of {depth}"


def describe_blocks(blocks: Sequence[int]) -> str:
    """Blocks in a sentence: "the embeddings", "layers 1–3, 7", in their order."""
    layers = [block for block in sorted(blocks) if block]
    # Numbers of a consecutive run differ from their places by a constant.
    runs = [
        [block for _, block in run]
        for _, run in groupby(enumerate(layers), lambda place: place[1] - place[0])
    ]
    spans = [f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs]
    parts = ["the embeddings"] if 0 in blocks else []
    if layers:
        parts.append(f"layer{'s' if len(layers) > 1 else ''} {', '.join(spans)}")
    return " and ".join(parts)


def describe_subject(subject: str) -> str:
    """A subject as a sentence begins, or goes on, with it."""
    return subject if subject == PRETRAINED else f"after {subject}"


def subjects_of(rows: Rows) -> list[str]:
    """The labels of subjects in order of appearance."""
    return list(dict.fromkeys(row["subject"] for row in rows if row["subject"] is not None))


def only(rows: Rows, **values: Any) -> Rows:
    """The rows that have these values in these columns."""
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


def values_by_block(rows: Rows, key: str) -> NDArray[np.float64]:
    """One value per seed and block, [seeds, L + 1], of rows of one subject."""
    seeds = dict.fromkeys(row["seed"] for row in rows)
    return np.array([[row[key] for row in rows if row["seed"] == seed] for seed in seeds])


def spread_over_seeds(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Sample deviation of values [seeds, L + 1] over seeds, [L + 1]; None for one seed."""
    return np.asarray(values.std(axis=0, ddof=1)) if len(values) > 1 else None


def figure_rows(
    subject: str, values: NDArray[np.float64], controls: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """A row per block for `draw_blocks`: means over seeds, with one deviation around `mean`.

    Args:
        subject: label of the subject.
        values: [seeds, L + 1].
        controls: of the same blocks, [seeds, L + 1].
    """
    means, spread = values.mean(axis=0), spread_over_seeds(values)
    return [
        {
            "subject": subject,
            "block": block,
            "mean": float(mean),
            "low": None if spread is None else float(mean - spread[block]),
            "high": None if spread is None else float(mean + spread[block]),
            "control": float(control),
        }
        for block, (mean, control) in enumerate(zip(means, controls.mean(axis=0), strict=True))
    ]


def subject_colors(rows: Rows, records: Sequence[RunRecord]) -> dict[str, str]:
    """Colours of subjects: those that strategies have in the study's report, where there is one."""
    labels = [*(record.strategy for record in records), *subjects_of(rows)]
    return {PRETRAINED: INK} | plots.colors_of(name for name in labels if name != PRETRAINED)


def draw_blocks(
    title: str,
    label: str,
    rows: Rows,
    colors: Mapping[str, str],
    *,
    control: str,
    null: tuple[str, Rows] | None = None,
    bound: tuple[str, float] | None = None,
) -> str:
    """A measure by block: a line per subject, a band of one deviation over seeds, dotted controls.

    Args:
        title: what the picture shows, for those who cannot see it.
        label: name of the axis of values.
        rows: as `figure_rows` gives them, of every subject.
        colors: of subjects.
        control: name of the dotted lines.
        null: name and rows (`block`, `mean`) of a line that belongs to no subject.
        bound: name and height of a level that values cannot pass.
    """
    with plots.picture(title, 4.9, 3.9) as plot:
        one: dict[str, Any] = {"by": "subject", "color": colors}
        band = ("low", "high")
        plots.lines(plot.axes, rows, "block", "mean", **one, width=1.6, marker=3.5, band=band)
        thin: dict[str, Any] = {"style": "dotted", "width": 1.1}
        plots.lines(plot.axes, rows, "block", "control", **one, **thin, alpha=0.8, label="_")
        plots.lines(plot.axes, (), "block", "control", **thin, color=GREY, label=control)
        if null is not None:
            name, level = null
            dashes: dict[str, Any] = {"style": "dash-dotted", "width": 1.1}
            plots.lines(plot.axes, level, "block", "mean", **dashes, color=GREY, label=name)
        if bound is not None:
            draw_level(plot.axes, bound[1], color=RED, label=bound[0])
        label_axes(plot.axes, x="Layer (0: the embeddings)", y=label, ticks=13)
        plot.legend(columns=2)
    return plot.svg


def block_table(title: str, columns: Mapping[str, Sequence[Cell]], notes: Sequence[str]) -> Table:
    """A row per block, a column per subject."""
    rows = tuple(
        Row((word(block_name(block)), *cells))
        for block, cells in enumerate(zip(*columns.values(), strict=True))
    )
    heads = (Column("Block", numeric=False), *map(Column, columns))
    return Table(title, heads, rows, tuple(notes))
