"""Mutual information by block: sentences, and a table and a picture per estimator."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from totune.analyses.base import AnalysisResult, Rows, degenerate_warning
from totune.analyses.blocks import (
    POOLED,
    block_table,
    describe_block,
    describe_subject,
    draw_blocks,
    figure_rows,
    only,
    spread_over_seeds,
    subject_colors,
    subjects_of,
    values_by_block,
)
from totune.report.document import Picture, Section
from totune.report.table import Cell, Table, number
from totune.runs.records import RunRecord

NEAR_ZERO = 0.01  # bits: what a check may give and still count as 0

NAMES = {"edge": "EDGE", "neighbours": "nearest neighbours"}
_NULL = "random representations"

Facts = Mapping[str, Any]


def information_section(
    title: str, result: AnalysisResult, records: Sequence[RunRecord]
) -> Section:
    """The finding of the first estimator, its checks, then what the other one says.

    Args:
        title: of the section.
        result: as `MutualInformation.run` gives it.
        records: of the study, for the order of colours and what its runs are worth.
    """
    facts, estimators = result.facts, result.facts["estimators"]
    by_estimator = {name: only(result.rows, estimator=name) for name in estimators}
    findings = [_finding(name, rows, facts) for name, rows in by_estimator.items()]
    checks = [_checks(name, rows, facts) for name, rows in by_estimator.items()]
    odd = degenerate_warning(((row["subject"], row["seed"]) for row in result.rows), records)
    spread = [_spread(by_estimator["edge"])] if "edge" in by_estimator else []
    paragraphs = [findings[0], *checks, *findings[1:], *spread, _bound(facts)]
    return Section(
        title,
        paragraphs=tuple(filter(None, paragraphs)),
        warnings=(*odd, *_warnings(by_estimator, facts)),
        tables=tuple(_table(name, rows, facts) for name, rows in by_estimator.items()),
        pictures=tuple(_picture(name, rows, facts, records) for name, rows in by_estimator.items()),
    )


def information_figure(rows: Rows) -> list[dict[str, Any]]:
    """Rows of the figure of one estimator, those of each subject together; in bits."""
    return [
        row
        for subject in subjects_of(rows)
        for row in figure_rows(subject, _bits(rows, subject), _bits(rows, subject, "random labels"))
    ]


def _picture(estimator: str, rows: Rows, facts: Facts, records: Sequence[RunRecord]) -> Picture:
    """A line per subject, one for noise, and the most that labels allow."""
    drawn, entropy = information_figure(rows), facts["entropy"]
    title = f"Information about the labels by {NAMES[estimator]}"
    null = [{"block": row["block"], "mean": row["bits"]} for row in only(rows, what=_NULL)]
    svg = draw_blocks(
        title,
        "I(H; Y), bits",
        drawn,
        subject_colors(rows, records),
        control="permuted labels (check)",
        null=(f"{_NULL} (check)", null),
        bound=None if entropy is None else ("entropy of the labels", entropy),
    )
    has_seeds = any(row["low"] is not None for row in drawn)
    band = " Band: one standard deviation over seeds." if has_seeds else ""
    return Picture(svg, f"{title}, in bits by layer.{band} Both checks should lie at 0.")


def _bits(rows: Rows, subject: str | None, kind: str = "labels") -> Any:
    """Estimates [seeds, L + 1] of a subject with one kind of labels."""
    return values_by_block(only(rows, subject=subject, what=kind), "bits")


def _table(estimator: str, rows: Rows, facts: Facts) -> Table:
    columns = {subject: list(_cells(rows, subject)) for subject in subjects_of(rows)}
    columns[_NULL] = [number(float(bits), _said(bits)) for bits in _bits(rows, None, _NULL)[0]]
    has_seeds = any(len(_bits(rows, subject)) > 1 for subject in subjects_of(rows))
    over = "; ± is the standard deviation over seeds" if has_seeds else ""
    notes = [
        f"Bits{over}. Below it the same states with permuted labels, where the truth is 0, as it "
        f"is for {_NULL}.",
        f"{facts['rows']:,} rows of {facts['split']}; states {POOLED[facts['pooling']]}. Estimates "
        "compare layers and encoders on the same rows; they are no ground truth.",
    ]
    return block_table(f"Information by {NAMES[estimator]}", columns, notes)


def _cells(rows: Rows, subject: str) -> Iterator[Cell]:
    bits, controls = _bits(rows, subject), _bits(rows, subject, "random labels")
    deviations = spread_over_seeds(bits)
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
        bits, who = _bits(rows, subject).mean(axis=0), describe_subject(subject)
        best = int(bits.argmax())
        if bits[best] <= _chance(only(rows, subject=subject, what="random labels")):
            chance = _bits(rows, subject, "random labels").mean(axis=0).max()
            found = f"at best {_said(bits[best])} bits, against {_said(chance)}"
            parts.append(
                f"{who}, no layer shows more information than permuted labels do ({found})"
            )
            continue
        most = "" if facts["entropy"] is None else f" of {_said(facts['entropy'])}"
        where = describe_block(best, facts["depth"])
        parts.append(f"{who}, {where} {verb} ({_said(bits[best])}{most} bits)")
        verb = "does"
    sentence = "; ".join(parts)
    on = f" on {facts['components']} principal components" if estimator == "neighbours" else ""
    if estimator != facts["estimators"][0]:
        return f"For comparison, by {NAMES[estimator]}{on}: {sentence}."
    return f"{sentence[:1].upper()}{sentence[1:]}, by {NAMES[estimator]}{on}."


def _chance(controls: Rows) -> float:
    """What the best of several blocks may reach without holding anything, in bits."""
    bits = values_by_block(controls, "bits").mean(axis=0)
    spreads = [row["spread"] for row in controls if row["spread"] is not None]
    return float(bits.max() + 3 * np.mean(spreads or [0.0]) + NEAR_ZERO)


def _checks(estimator: str, rows: Rows, facts: Facts) -> str:
    """The paper's two checks, in words; what "none" means where EDGE widens its cells."""
    permuted, noise = _check_values(rows)
    sentence = (
        f"Checks of {NAMES[estimator]}, which should give 0: at most {_said(permuted)} bits with "
        f"permuted labels, {_said(noise)} with {_NULL}."
    )
    if estimator == "edge" and facts["passes"] == 2:
        sentence += (
            " Its second pass turns little information into none, so 0 means little or none; "
            "passes=1 leaves it out."
        )
    return sentence


def _check_values(rows: Rows) -> tuple[float, float]:
    """The most bits with permuted labels, and with random representations."""
    permuted, noise = (only(rows, what=kind) for kind in ("random labels", _NULL))
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
