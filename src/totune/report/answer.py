"""What a reader sees first: which strategy to use, how sure that is, and each one's worth and cost.

In the words of someone who labels texts; the statistics behind it are in folded sections below.
"""

from collections.abc import Mapping, Sequence

from totune.advice import Advice, StrategySummary
from totune.metrics import METRICS
from totune.report import formatting
from totune.report.comparison import mark_of
from totune.report.document import Answer, Section
from totune.report.groups import best_first, by_strategy, unit_of
from totune.report.table import Column, Row, Table, drop_empty_columns, number, word
from totune.runs.records import RunRecord, StudyInfo

_RIGHT = {"accuracy": "of 100 right", "token-accuracy": "of 100 words right"}
_CLASSES = 10  # named with their counts
_FINDINGS = {
    "as good": "as good",
    "credibly worse": "worse, beyond chance",
    "open": "cannot be told yet",
    "worse as trained": "worse, perhaps for want of training",
}
_TERMS = {
    "strategy": "One way of using the encoder, such as training all of it (fine-tuning) or only a "
    "classifier on what it computes (feature-extraction).",
    "seed": "The number that fixes what is random in training. Other seeds give slightly different "
    "models, so each strategy is trained with several.",
    "fold": "One of the parts that the rows are dealt into, each tested by a model that was "
    "trained on the others (cross-validation).",
    "points": "Hundredths of a score: from 0.83 to 0.85 are two points. Of accuracy a point is "
    "one text in a hundred.",
    "credibly": "With 95% confidence, all comparisons of the study together: seeds and the choice "
    "of test rows alone would rarely produce it.",
    "95% interval": "Where the true number lies with 95% confidence.",
    "Holm": "A correction of p-values for testing several pairs at once, which would otherwise "
    "find differences by luck (Holm 1979).",
    "degenerate": "A run that gives every row the same answer: training has failed, though it "
    "ended without an error.",
    "constant answer": "What one gets without reading, by giving every text the same answer.",
    "calibration": "Whether a model that is 90% sure is right 9 times in 10. The expected "
    "calibration error is how far off it is on average, in points.",
}


def answer(info: StudyInfo, records: Sequence[RunRecord], advice: Advice) -> Answer:
    """Which strategy to use, how sure that is, and on which rows it was found."""
    groups = {group.strategy: group for group in by_strategy(info, records)}
    sure = _certainty(info, groups, advice)
    data = [sentence for sentence in (_rows(info), _classes(info)) if sentence]
    parts = (
        ("Sure of it?", (sure,) if sure else ()),
        ("The data:", (" ".join(data),) if data else ()),
    )
    verdict = "no verdict" if advice.verdict == "none" else advice.verdict
    return Answer(_headline(info, groups, advice), verdict, parts, advice.caveats)


def _headline(info: StudyInfo, groups: Mapping[str, StrategySummary], advice: Advice) -> str:
    choice = groups.get(advice.provisional or "")
    mean = None if choice is None else choice.mean(info.metric)
    if advice.verdict == "none" or choice is None or mean is None:
        return advice.headline
    rival, what = _rival(info, groups, choice, advice)
    theirs = None if rival is None else rival.mean(info.metric)
    score, other = _scores(info.metric, mean, theirs)
    now = " for now" if advice.verdict == "undecided" else ""
    text = f"Use {choice.strategy}{now}: it "
    if info.metric in _RIGHT:
        text += f"gets {score} {_RIGHT[info.metric]}"
    else:
        unit = " points" if formatting.is_bounded(info.metric) else ""
        lower = "" if METRICS[info.metric].higher_is_better else " (lower is better)"
        text += f"scores {score}{unit} {formatting.metric_name(info.metric)}{lower}"
    return f"{text}; {what}, {rival.strategy}, {other}." if rival else f"{text}."


def _rival(
    info: StudyInfo,
    groups: Mapping[str, StrategySummary],
    choice: StrategySummary,
    advice: Advice,
) -> tuple[StrategySummary | None, str]:
    """The cheapest other strategy, if it is cheaper; else the best other one.

    What gives every row one answer is a rival only where there is no other.
    """
    scored = [group for group in groups.values() if group.values(info.metric)]
    others = [group for group in scored if group.strategy != choice.strategy]
    if not others:
        return None, ""
    constant = {each.strategy for each in advice.standings if each.usable and each.is_constant}
    best = best_first(others, info.metric)[0]
    others = [group for group in others if group.strategy not in constant]
    if not others:
        return best, "one answer for every text"
    cheapest = min(others, key=lambda group: group.cost_order)
    if cheapest.cost_order < choice.cost_order:
        return cheapest, "the cheapest rival"
    return best_first(others, info.metric)[0], "the best of the others"


def _scores(metric: str, mine: float, theirs: float | None) -> tuple[str, str]:
    """Two means: texts of a hundred in whole numbers, unless these hide that they differ."""
    if metric in _RIGHT:
        shown = [f"{100 * value:.0f}" for value in (mine, theirs or 0.0)]
        hides = theirs is not None and theirs != mine and shown[0] == shown[1]
        if not hides and not (shown[0] == "100" and mine < 1):
            return shown[0], shown[1]
    return formatting.score(metric, mine), formatting.score(metric, theirs)


def _certainty(info: StudyInfo, groups: Mapping[str, StrategySummary], advice: Advice) -> str:
    """Whether more seeds or rows could change the answer, and what would settle it."""
    if advice.verdict == "undecided":
        return " ".join(("Not yet.", *advice.doubts))
    choice = groups.get(advice.recommended or "")
    if choice is None:
        return ""
    limit = formatting.tolerance(info.metric, advice.tolerance)
    cheaper = [
        comparison
        for comparison in advice.comparisons
        if (other := groups.get(comparison.strategy)) and other.cost_order < choice.cost_order
    ]
    if choice.strategy != advice.best:
        reason = f"it is credibly within {limit} of the best, {advice.best}, and costs less"
    elif not cheaper:
        reason = "of what was compared it scores best, and nothing costs less"
    else:
        reason = f"it scores best, and whatever costs less is credibly worse by more than {limit}"
        if any(comparison.verdict != "credibly worse" for comparison in cheaper):
            reason += " or no better than a constant answer"
    return f"Yes: {reason}.{' Mind what stands below.' if advice.caveats else ''}"


def _rows(info: StudyInfo) -> str:
    rows, unit = info.data.get("rows") or {}, unit_of(info.metric)
    what = "sentences" if unit == "sentences" else "rows"
    if info.folds > 1:
        count = formatting.count(rows.get("all"))
        return f"{count} {what}, each tested by a model that did not train on it."
    known = [(rows.get("train"), f"{what} to learn from"), (rows.get("dev"), "to choose epochs by")]
    known.append((rows.get("test"), "to test on"))
    parts = [f"{formatting.count(count)} {use}" for count, use in known if count]
    return f"{', '.join(parts)}." if parts else ""


def _classes(info: StudyInfo) -> str:
    """The classes, most frequent first, with their counts where these are known."""
    counts: Mapping[str, int] = info.data.get("class_counts") or {}
    if not counts:
        return ""
    ordered = sorted(counts, key=lambda name: -counts[name])
    shown = [f"{name[:40]} {formatting.count(counts[name])}" for name in ordered[:_CLASSES]]
    more = len(ordered) - len(shown)
    rest = f" and {more:,} more" if more else ""
    what = "Labels" if info.task == "multi-label" else "Classes"
    return f"{what} ({len(ordered):,}): {', '.join(shown)}{rest}."


def glance_table(info: StudyInfo, records: Sequence[RunRecord], advice: Advice) -> Table:
    """Each strategy's score, finding and costs, best first, and what is better and cheaper."""
    groups = best_first(by_strategy(info, records), info.metric)
    findings = {each.strategy: _FINDINGS[each.verdict] for each in advice.comparisons}
    if advice.best:
        findings[advice.best] = "best score"
    rows = []
    for place, group in enumerate(groups):
        mean, seconds = group.mean(info.metric), group.seconds()
        if mean is None:
            continue
        storage, latency = group.cost("storage_bytes"), group.cost("latency_milliseconds")
        cheaper = [each.strategy for each in groups[:place] if each.cost_order < group.cost_order]
        cells = (
            word(group.strategy),
            number(mean, formatting.score(info.metric, mean)),
            word(findings.get(group.strategy, "")),
            number(seconds, formatting.duration(seconds)),
            number(storage, formatting.byte_size(storage)),
            number(latency, formatting.significant(latency, 2)),
            word(", ".join(cheaper)),
        )
        rows.append(Row(cells, mark_of(group.strategy, advice)))
    unit = " of 100" if info.metric in _RIGHT else ""
    head = "Right" if unit else formatting.metric_label(info.metric)
    columns = (
        Column(f"{head}{unit}"),
        Column("Against the best", numeric=False),
        Column("Training"),
        Column("Stored"),
        Column("Prediction, ms/text"),
        Column("Better and cheaper", numeric=False),
    )
    table = Table("At a glance", (Column("Strategy", numeric=False), *columns), tuple(rows))
    return drop_empty_columns(table)


def glossary(info: StudyInfo) -> Section:
    """What the terms of the report mean, folded away at its end."""
    left_out = "" if info.folds > 1 else "fold"
    columns = (Column("Term", numeric=False), Column("Meaning", numeric=False))
    rows = [Row((word(name), word(text))) for name, text in _TERMS.items() if name != left_out]
    return Section("Glossary", tables=(Table("Glossary", columns, tuple(rows)),), folded=True)
