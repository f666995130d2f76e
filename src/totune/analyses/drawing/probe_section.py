"""What layer probes found: sentences, a table and a picture."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from totune.analyses.base import Values
from totune.analyses.drawing.blocks import (
    BlockFigure,
    BlockLine,
    block_table,
    draw_blocks,
    strategies_of,
)
from totune.analyses.drawing.degenerate import degenerate_warning
from totune.analyses.measuring.blocks import (
    POOLED,
    Rows,
    only,
    spread_over_seeds,
    subjects_of,
    told_block,
    told_blocks,
    told_subject,
    values_by_block,
)
from totune.report.canvas import axis_label
from totune.report.document import Picture, Section
from totune.report.formatting import interval, is_bounded, metric_name, score, spread
from totune.report.table import Cell, number
from totune.runs.records import RunRecord

Facts = Mapping[str, Any]


def probe_section(title: str, values: Values, records: Sequence[RunRecord]) -> Section:
    """The finding first, then how sure it is, a table and a picture.

    Args:
        title: of the section.
        values: rows with subject, seed, block, score, control and selectivity; facts as
            `LayerProbe.run` gives them.
        records: of the study, for the order of colours and what its runs are worth.
    """
    facts = values.facts
    figure = probe_figure(values, records)
    columns = {
        subject: list(_cells(only(values.rows, "subject", subject), facts["metric"]))
        for subject in subjects_of(values.rows)
    }
    has_seeds = any(line.spread is not None for line in figure.lines)
    caption = (
        f"Dev {metric_name(facts['metric'])} of a linear probe on each block"
        f"{', band: one standard deviation over seeds' if has_seeds else ''}. "
        "Dotted: the same probe on permuted labels."
    )
    return Section(
        title,
        paragraphs=(_finding(facts), _doubt(facts), _control(values)),
        warnings=degenerate_warning(
            ((row["subject"], row["seed"]) for row in values.rows), records
        ),
        tables=(block_table("Probe score by block", columns, _notes(facts, has_seeds)),),
        pictures=(Picture(draw_blocks(figure), caption),),
    )


def probe_figure(values: Values, records: Sequence[RunRecord]) -> BlockFigure:
    """A line per subject; bounded metrics in points."""
    metric, subjects = values.facts["metric"], subjects_of(values.rows)
    lines = tuple(
        _line(subject, only(values.rows, "subject", subject), metric) for subject in subjects
    )
    return BlockFigure(
        title="Probe score by block",
        label=f"Dev {metric_name(metric)}{', points' if is_bounded(metric) else ''}",
        lines=lines,
        strategies=strategies_of(subjects, records),
        control="permuted labels (control)",
    )


def _line(subject: str, rows: Rows, metric: str) -> BlockLine:
    unit = 100 if is_bounded(metric) else 1
    scores, controls = (unit * values_by_block(rows, key) for key in ("score", "control"))
    deviations = spread_over_seeds(scores)
    return BlockLine(
        subject,
        tuple(scores.mean(axis=0)),
        None if deviations is None else tuple(deviations),
        tuple(controls.mean(axis=0)),
    )


def _cells(rows: Rows, metric: str) -> Iterator[Cell]:
    """Mean and deviation over seeds of each block, and below them the selectivity."""
    scores, selectivity = values_by_block(rows, "score"), values_by_block(rows, "selectivity")
    deviations = spread_over_seeds(scores)
    for block, mean in enumerate(scores.mean(axis=0)):
        over = "" if deviations is None else f" ± {spread(metric, deviations[block])}"
        above = score(metric, float(selectivity[:, block].mean()), signed=True)
        yield number(float(mean), f"{score(metric, float(mean))}{over}", above)


def _finding(facts: Facts) -> str:
    """Which block leads for each subject, in one sentence."""
    metric, parts, verb = facts["metric"], [], "tells a linear probe most about the labels"
    for lead in facts["leading"]:
        found, who = score(metric, lead["score"]), told_subject(lead["subject"])
        if not lead["selective"]:
            chance = f"{found}, on permuted labels {score(metric, lead['control'])}"
            parts.append(f"{who}, no layer tells more than chance would (at best {chance})")
            continue
        named = "" if verb == "does" else f"{metric_name(metric)} "
        parts.append(f"{who}, {told_block(lead['block'], facts['depth'])} {verb} ({named}{found})")
        verb = "does"
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _doubt(facts: Facts) -> str:
    """What other dev rows could have said."""
    told = []
    for lead in facts["leading"]:
        ends = interval(facts["metric"], lead["low"], lead["high"])
        ties = told_blocks(lead["ties"]) if lead["ties"] else "no other block"
        told.append(f"{lead['subject']}, {ends}, level with {ties}")
    return (
        f"How sure that is: over resamples of the {facts['dev_rows']:,} dev rows, the 95% interval "
        f"of the best block, and the blocks that they do not set apart from it: {'; '.join(told)}."
    )


def _control(values: Values) -> str:
    controls = [row["control"] for row in values.rows]
    ends = interval(values.facts["metric"], min(controls), max(controls))
    return f"The same probes score {ends} on permuted labels, which is chance."


def _notes(facts: Facts, has_seeds: bool) -> list[str]:
    metric = axis_label(facts["metric"])
    over = "; ± is the standard deviation over seeds" if has_seeds else ""
    return [
        f"{metric} on dev{over}. Below it the selectivity: what the probe scores above the same "
        "probe on permuted labels.",
        f"Probes: {facts['model']} on standardised states, {POOLED[facts['pooling']]}, trained on "
        f"{facts['train_rows']:,} rows; the penalty is chosen by cross-validation among these.",
    ]
