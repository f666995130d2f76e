"""What mutual information was found: sentences, and a table and a picture per estimator."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

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
    told_subject,
    values_by_block,
)
from totune.report.document import Picture, Section
from totune.report.table import Cell, Table, number
from totune.runs.records import RunRecord

NEAR_ZERO = 0.01  # bits: what a check may give and still count as 0

NAMES = {"edge": "EDGE", "neighbours": "nearest neighbours"}
_NULL = "random representations"

Facts = Mapping[str, Any]


def information_section(title: str, values: Values, records: Sequence[RunRecord]) -> Section:
    """The finding of the first estimator, its checks, then what the other one says.

    Args:
        title: of the section.
        values: as `MutualInformation.run` gives them.
        records: of the study, for the order of colours and what its runs are worth.
    """
    facts, estimators = values.facts, values.facts["estimators"]
    by_estimator = {name: only(values.rows, "estimator", name) for name in estimators}
    figures = [
        information_figure(name, rows, facts, records) for name, rows in by_estimator.items()
    ]
    told = [_finding(name, rows, facts) for name, rows in by_estimator.items()]
    checks = [_checks(name, rows, facts) for name, rows in by_estimator.items()]
    odd = degenerate_warning(((row["subject"], row["seed"]) for row in values.rows), records)
    spread = [_spread(by_estimator["edge"])] if "edge" in by_estimator else []
    return Section(
        title,
        paragraphs=tuple(filter(None, [told[0], *checks, *told[1:], *spread, _bound(facts)])),
        warnings=(*odd, *_warnings(by_estimator, facts)),
        tables=tuple(_table(name, rows, facts) for name, rows in by_estimator.items()),
        pictures=tuple(Picture(draw_blocks(one), _caption(one)) for one in figures),
    )


def information_figure(
    estimator: str, rows: Rows, facts: Facts, records: Sequence[RunRecord]
) -> BlockFigure:
    """A line per subject, one for noise, and the most that labels allow.

    Args:
        estimator: by its name.
        rows: of this estimator.
        facts: as `MutualInformation.run` gives them.
        records: of the study, for the order of colours.
    """
    subjects, entropy = subjects_of(rows), facts["entropy"]
    null = tuple(values_by_block(only(rows, "what", _NULL), "bits").mean(axis=0))
    return BlockFigure(
        title=f"Information about the labels by {NAMES[estimator]}",
        label="I(H; Y), bits",
        lines=tuple(_line(subject, only(rows, "subject", subject)) for subject in subjects),
        strategies=strategies_of(subjects, records),
        control="permuted labels (check)",
        null=(f"{_NULL} (check)", null),
        bound=None if entropy is None else ("entropy of the labels", entropy),
    )


def _real(rows: Rows, subject: str) -> Rows:
    return only(only(rows, "subject", subject), "what", "labels")


def _control(rows: Rows, subject: str) -> Rows:
    return only(only(rows, "subject", subject), "what", "random labels")


def _line(subject: str, rows: Rows) -> BlockLine:
    bits = values_by_block(_real(rows, subject), "bits")
    deviations = spread_over_seeds(bits)
    return BlockLine(
        subject,
        tuple(bits.mean(axis=0)),
        None if deviations is None else tuple(deviations),
        tuple(values_by_block(_control(rows, subject), "bits").mean(axis=0)),
    )


def _caption(figure: BlockFigure) -> str:
    seeds = any(line.spread is not None for line in figure.lines)
    band = " Band: one standard deviation over seeds." if seeds else ""
    return f"{figure.title}, in bits by layer.{band} Both checks should lie at 0."


def _table(estimator: str, rows: Rows, facts: Facts) -> Table:
    columns = {subject: list(_cells(rows, subject)) for subject in subjects_of(rows)}
    null = values_by_block(only(rows, "what", _NULL), "bits")[0]
    columns[_NULL] = [number(float(bits), _said(bits)) for bits in null]
    seeds = any(len(values_by_block(_real(rows, one), "bits")) > 1 for one in subjects_of(rows))
    over = "; ± is the standard deviation over seeds" if seeds else ""
    notes = [
        f"Bits{over}. Below it the same states with permuted labels, where the truth is 0, as it "
        f"is for {_NULL}.",
        f"{facts['rows']:,} rows of {facts['split']}; states {POOLED[facts['pooling']]}. Estimates "
        "compare layers and encoders on the same rows; they are no ground truth.",
    ]
    return block_table(f"Information by {NAMES[estimator]}", columns, notes)


def _cells(rows: Rows, subject: str) -> Iterator[Cell]:
    bits = values_by_block(_real(rows, subject), "bits")
    controls, deviations = values_by_block(_control(rows, subject), "bits"), spread_over_seeds(bits)
    for block, mean in enumerate(bits.mean(axis=0)):
        over = "" if deviations is None else f" ± {_said(deviations[block])}"
        permuted = f"permuted {_said(controls[:, block].mean())}"
        yield number(float(mean), f"{_said(mean)}{over}", permuted)


def _said(bits: float) -> str:
    return f"{bits:.2f}"


def _finding(estimator: str, rows: Rows, facts: Facts) -> str:
    """Where each subject holds most, in one sentence."""
    parts, verb = [], "holds most information about the labels"
    for subject in subjects_of(rows):
        bits = values_by_block(_real(rows, subject), "bits").mean(axis=0)
        best, who = int(bits.argmax()), told_subject(subject)
        if bits[best] <= _chance(_control(rows, subject)):
            chance = values_by_block(_control(rows, subject), "bits").mean(axis=0).max()
            found = f"at best {_said(bits[best])} bits, against {_said(chance)}"
            parts.append(
                f"{who}, no layer shows more information than permuted labels do ({found})"
            )
            continue
        most = "" if facts["entropy"] is None else f" of {_said(facts['entropy'])}"
        where = told_block(best, facts["depth"])
        parts.append(f"{who}, {where} {verb} ({_said(bits[best])}{most} bits)")
        verb = "does"
    sentence = "; ".join(parts)
    if estimator != facts["estimators"][0]:
        return f"For comparison, by {_named(estimator, facts)}: {sentence}."
    return f"{sentence[:1].upper()}{sentence[1:]}, by {_named(estimator, facts)}."


def _chance(controls: Rows) -> float:
    """What the best of several blocks may reach without holding anything."""
    bits = values_by_block(controls, "bits").mean(axis=0)
    spreads = [row["spread"] for row in controls if row["spread"] is not None]
    return float(bits.max() + 3 * np.mean(spreads or [0.0]) + NEAR_ZERO)


def _named(estimator: str, facts: Facts) -> str:
    on = f" on {facts['components']} principal components" if estimator == "neighbours" else ""
    return f"{NAMES[estimator]}{on}"


def _checks(estimator: str, rows: Rows, facts: Facts) -> str:
    """The paper's two checks, in words; what "none" means where EDGE widens its cells."""
    permuted, noise = _check_values(rows)
    told = (
        f"Checks of {NAMES[estimator]}, which should give 0: at most {_said(permuted)} bits with "
        f"permuted labels, {_said(noise)} with {_NULL}."
    )
    if estimator == "edge" and facts["passes"] == 2:
        told += (
            " Its second pass turns little information into none, so 0 means little or none; "
            "passes=1 leaves it out."
        )
    return told


def _check_values(rows: Rows) -> tuple[float, float]:
    """The most bits with permuted labels, and with random representations."""
    permuted, noise = (only(rows, "what", what) for what in ("random labels", _NULL))
    return max(row["bits"] for row in permuted), max(row["bits"] for row in noise)


def _spread(rows: Rows) -> str:
    """How much of an estimate is its random projection."""
    spreads = [row["spread"] for row in rows if row["what"] == "labels"]
    if None in spreads or max(spreads) < NEAR_ZERO / 2:
        return ""
    return (
        f"From one random projection to the next, estimates by EDGE move by {_said(max(spreads))} "
        f"bits at most and {_said(float(np.mean(spreads)))} on average (standard deviation); "
        "smaller differences between layers tell nothing, and other rows would move them too."
    )


def _bound(facts: Facts) -> str:
    if facts["entropy"] is not None:
        return ""
    return "Labels are scores, which have no entropy in bits that could bound the information."


def _warnings(by_estimator: Mapping[str, Rows], facts: Facts) -> Iterator[str]:
    classes = facts["classes"]
    if "edge" in by_estimator and classes is not None and facts["told_apart"] < classes:
        yield (
            f"By EDGE with its defaults, {classes} classes fall into {facts['told_apart']} cells, "
            "those with neighbouring names together: it finds less than there is. Use more rows, "
            'or estimators=["neighbours"].'
        )
    for name, rows in by_estimator.items():
        worst = max(_check_values(rows))
        if worst > NEAR_ZERO:
            yield (
                f"By {NAMES[name]}, {_said(worst)} bits are found where the truth is 0: read only "
                "what rises above that. Such estimators err upwards on few rows."
            )
        most = max(row["bits"] for row in rows)
        if facts["entropy"] is not None and most > facts["entropy"] + NEAR_ZERO:
            yield (
                f"By {NAMES[name]}, {_said(most)} bits are found, more than the entropy of the "
                f"labels ({_said(facts['entropy'])}): no states can hold that much."
            )
