"""Judges a paper's guidelines by what other recipes measured: confirmed, contradicted, undecided.

The results of a recipe are those of `totune reproduce` in the folder of its name, beside the
judgement's own.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from totune.errors import DataError
from totune.recipes.recipe import Evidence, Guideline, Judgement
from totune.report.document import Section
from totune.report.formatting import metric_label
from totune.report.table import Cell, Column, Row, Table, word
from totune.statistics import welch

RESULTS = "results.json"
Verdict = Literal["confirmed", "contradicted", "undecided"]


@dataclass(frozen=True)
class Finding:
    """What one comparison says of a guideline.

    Attributes:
        what: the comparison in words.
        verdict: what it says.
        reason: the figures behind it, or what is missing.
    """

    what: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class JudgedGuideline:
    """A guideline with what every comparison says of it.

    It is confirmed, or contradicted, if some comparison says so and none says the opposite.
    """

    guideline: Guideline
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        told = {finding.verdict for finding in self.findings} - {"undecided"}
        return next(iter(told)) if len(told) == 1 else "undecided"


def judge(plan: Judgement, folder: Path) -> tuple[JudgedGuideline, ...]:
    """Every guideline with its findings.

    Args:
        plan: the guidelines.
        folder: holds the results of other recipes, each in the folder of its name.

    Raises:
        DataError: there are no results at all, or some cannot be read.
    """
    names = {one.recipe for guideline in plan.guidelines for one in guideline.evidence}
    results = {name: _read(folder / name / RESULTS) for name in sorted(names)}
    if not any(results.values()):
        commands = "; ".join(f"totune reproduce {name}" for name in sorted(names))
        raise DataError(
            f"{folder} holds the results of none of {', '.join(sorted(names))}, by which the "
            f"guidelines are judged. Run them first, there ({commands}), or name a folder beside "
            "theirs with `out`."
        )
    return tuple(
        JudgedGuideline(
            guideline,
            tuple(
                finding
                for evidence in guideline.evidence
                for finding in _findings(evidence, results[evidence.recipe], plan.margin)
            ),
        )
        for guideline in plan.guidelines
    )


def _read(path: Path) -> Mapping[str, Any] | None:
    if not path.is_file():
        return None
    try:
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} cannot be read: {error}. Run the recipe again.") from None
    return found


def _findings(
    evidence: Evidence, results: Mapping[str, Any] | None, margin: float
) -> Iterator[Finding]:
    """What the evidence says on each data set."""
    for data in evidence.data:
        what = f"{evidence.first} against {evidence.second} on {data} ({evidence.recipe})"
        if results is None:
            yield Finding(what, "undecided", f"not run: totune reproduce {evidence.recipe}")
            continue
        group = next((one for one in results["groups"] if one["data"] == data), None)
        rows = {} if group is None else {one["label"]: one for one in group["outcomes"]}
        pair = [rows.get(label) for label in (evidence.first, evidence.second)]
        lacking = [one["absent"] for one in pair if one is not None and one["absent"]]
        metric = (group["metrics"] or results["recipe"]["metrics"])[0] if group else ""
        values = [one["scores"].get(metric, []) if one else [] for one in pair]
        if min(map(len, values)) < 2:
            reason = lacking[0] if lacking else "fewer than two seeds"
            yield Finding(what, "undecided", f"not run: {reason}")
            continue
        found = welch(*values)
        verdict = _verdict(evidence.expect, found.low, found.high, margin)
        middle = (found.low + found.high) / 2
        figures = f"{middle:+.3f} ({found.low:+.3f} to {found.high:+.3f})".replace("-", "−")
        yield Finding(what, verdict, f"{metric_label(metric)} {figures}, n = {len(values[0])}")


def _verdict(
    expect: Literal["higher", "lower", "alike"], low: float, high: float, margin: float
) -> Verdict:
    """What the 95% interval of a difference says of what was expected."""
    if expect == "alike":
        if -margin <= low and high <= margin:
            return "confirmed"
        return "contradicted" if low > margin or high < -margin else "undecided"
    if expect == "lower":
        low, high = -high, -low
    if low > 0:
        return "confirmed"
    return "contradicted" if high < 0 else "undecided"


def judgement_section(judged: tuple[JudgedGuideline, ...], margin: float) -> Section:
    """A table of guidelines with their verdicts, and one of the evidence."""
    rules = tuple(Row((word(one.guideline.rule), word(one.verdict))) for one in judged)
    evidence = tuple(
        Row((Cell(at, str(at)), word(each.what), word(each.verdict), word(each.reason)))
        for at, one in enumerate(judged, start=1)
        for each in one.findings
    )
    columns = tuple(Column(name, numeric=False) for name in ("Guideline", "Verdict"))
    shown = tuple(
        Column(name, numeric=name == "Guideline")
        for name in ("Guideline", "Comparison", "Verdict", "Difference, 95% interval over seeds")
    )
    note = f"Alike: the interval lies within {margin:g} of 0. Seeds vary; test rows do not."
    tables = (Table("Guidelines", columns, rules), Table("Evidence", shown, evidence, (note,)))
    return Section("Guidelines", tables=tables)
