"""What a model gets wrong on the test rows, as plain rows of data; `error_section` draws them.

Everything follows from the recorded predictions of runs, so nothing is predicted again. Targets and
predictions are those of tasks: class indices [N] (below 0 for a class that training never saw),
numbers [N], or codes of tags [N, W].
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.metrics.metric import ratio
from totune.metrics.probabilities import BINS
from totune.metrics.spans import Spans, find_spans

ErrorRow = dict[str, Any]
Array = NDArray[Any]

NOT_TRAINED = "(not in training)"
NO_SPAN = "(no span)"
_MOST_ROWS = 20  # of a list of mistakes
_MOST_TEXTS = 5  # that one strategy gets right and the other does not
_BANDS = 4  # of the targets of a regression


def name_of(label: int, labels: Sequence[str]) -> str:
    """The class of an index; one that training never saw has no name."""
    return labels[label] if 0 <= label < len(labels) else NOT_TRAINED


def confusion_rows(targets: Array, predictions: Array, labels: Sequence[str]) -> list[ErrorRow]:
    """A row for each pair of label and prediction that occurs, the most frequent first.

    `share` is of the rows with this label, `share_of_predicted` of those predicted so.
    """
    known = np.where(targets < 0, len(labels), targets)
    size = len(labels) + 1
    pairs, counts = np.unique(known.astype(np.int64) * size + predictions, return_counts=True)
    actual = np.bincount(known, minlength=size)
    predicted = np.bincount(predictions, minlength=size)
    order = np.argsort(-counts, kind="stable")
    return [
        {
            "label": name_of(int(pair // size), labels),
            "predicted": name_of(int(pair % size), labels),
            "rows": int(count),
            "share": count / actual[pair // size],
            "share_of_predicted": count / predicted[pair % size],
        }
        for pair, count in zip(pairs[order].tolist(), counts[order].tolist(), strict=True)
    ]


def class_rows(targets: Array, predictions: Array, labels: Sequence[str]) -> list[ErrorRow]:
    """Support, precision, recall and F1 of each class, that with most test rows first."""
    size = len(labels)
    right = np.bincount(targets[targets == predictions], minlength=size)
    support = np.bincount(targets[targets >= 0], minlength=size)
    predicted = np.bincount(predictions, minlength=size)
    columns = (
        support.tolist(),
        ratio(right, predicted).tolist(),
        ratio(right, support).tolist(),
        ratio(2 * right, predicted + support).tolist(),
    )
    names = ("support", "precision", "recall", "f1")
    rows = [
        {"label": label, **dict(zip(names, values, strict=True))}
        for label, *values in zip(labels, *columns, strict=True)
    ]
    return sorted(rows, key=lambda row: -row["support"])


def calibration_rows(targets: Array, scores: Array) -> list[ErrorRow]:
    """Mean confidence and share of right answers in bins of confidence that hold any row.

    The bins are those of the metric calibration-error (Guo et al. 2017, equation 5).

    Args:
        targets: [N].
        scores: probabilities of the classes, [N, C].
    """
    sure = scores.max(axis=1).astype(np.float64)
    right = scores.argmax(axis=1) == targets
    bins = np.clip(np.ceil(sure * BINS).astype(int) - 1, 0, BINS - 1)
    return [
        {
            "confidence": float(sure[bins == each].mean()),
            "right": float(right[bins == each].mean()),
            "rows": int((bins == each).sum()),
        }
        for each in np.unique(bins).tolist()
    ]


def mistake_rows(
    targets: Array,
    predictions: Array,
    scores: Array,
    others: Sequence[Array],
    labels: Sequence[str],
) -> tuple[list[ErrorRow], list[ErrorRow]]:
    """The most confident mistakes, those apart whose label may be the mistake.

    A label is doubtful where at least two strategies, and more than half of all, agree on another.

    Args:
        targets: [N].
        predictions: of the model, [N].
        scores: its probabilities, [N, C].
        others: predictions of the other strategies, [N] each.
        labels: names of the classes.

    Returns:
        Rows with doubtful labels, most agreeing strategies first, and the other mistakes, most
        confident first; `place` is that of the row among the test rows.
    """
    wrong = np.flatnonzero((targets != predictions) & (targets >= 0))
    confidence = scores[wrong, predictions[wrong]]
    agreeing = 1 + sum((other[wrong] == predictions[wrong]).astype(int) for other in others)
    rows: list[ErrorRow] = [
        {
            "place": int(place),
            "label": name_of(int(targets[place]), labels),
            "predicted": name_of(int(predictions[place]), labels),
            "confidence": float(sure),
            "agreeing": int(count),
            "strategies": 1 + len(others),
        }
        for place, sure, count in zip(
            wrong, confidence, np.broadcast_to(agreeing, wrong.shape), strict=True
        )
    ]
    rows.sort(key=lambda row: (-row["confidence"], row["place"]))
    least = max(2, (len(others) + 1) // 2 + 1)
    doubtful = [row for row in rows if row["agreeing"] >= least]
    doubtful.sort(key=lambda row: -row["agreeing"])
    doubtful = doubtful[:_MOST_ROWS]
    taken = {row["place"] for row in doubtful}
    return doubtful, [row for row in rows if row["place"] not in taken][:_MOST_ROWS]


def rival_rows(targets: Array, mine: Array, theirs: Array) -> list[ErrorRow]:
    """How many rows the model, its rival, both or neither get right, with some of their places.

    A row of tags or of several labels is right if all of it is.
    """
    own, other = (_right(targets, each) for each in (mine, theirs))
    kinds = {
        "both": own & other,
        "only the recommended": own & ~other,
        "only the other": ~own & other,
        "neither": ~own & ~other,
    }
    return [
        {
            "right": kind,
            "rows": int(found.sum()),
            "share": float(found.mean()),
            "places": np.flatnonzero(found)[:_MOST_TEXTS].tolist() if "only" in kind else [],
        }
        for kind, found in kinds.items()
    ]


def _right(targets: Array, predictions: Array) -> NDArray[np.bool_]:
    same = targets == predictions
    return same if same.ndim == 1 else np.asarray(same.all(axis=1))


def residual_rows(targets: Array, predictions: Array) -> list[ErrorRow]:
    """The rows whose prediction is furthest off, furthest first."""
    residuals = predictions.astype(np.float64) - targets
    furthest = np.argsort(-abs(residuals), kind="stable")[:_MOST_ROWS]
    return [
        {
            "place": int(place),
            "label": float(targets[place]),
            "predicted": float(predictions[place]),
            "residual": float(residuals[place]),
        }
        for place in furthest
    ]


def band_rows(targets: Array, predictions: Array) -> list[ErrorRow]:
    """Mean residual and mean absolute residual over quarters of the rows, by their targets."""
    residuals = predictions.astype(np.float64) - targets
    order = np.argsort(targets, kind="stable")
    return [
        {
            "low": float(targets[band].min()),
            "high": float(targets[band].max()),
            "rows": len(band),
            "mean": float(residuals[band].mean()),
            "absolute": float(abs(residuals[band]).mean()),
        }
        for band in np.array_split(order, _BANDS)
        if len(band)
    ]


def span_rows(targets: Array, predictions: Array, types: Sequence[str]) -> list[ErrorRow]:
    """What became of the spans of each type, and how many were found where there is none.

    A span of the targets is right; found with the right extent but another type (`type`); met by a
    span of its type with other boundaries (`boundaries`), or by one of another type (`both`); or
    `missed`. A found span that meets none is `spurious`, under its own type.

    Args:
        targets: codes of tags, [N, W].
        predictions: likewise.
        types: their names, of the kinds that training knows.
    """
    gold, found = find_spans(targets), find_spans(predictions)
    fates = ("right", "boundaries", "type", "both", "missed", "spurious")
    counts = {kind: dict.fromkeys(fates, 0) for kind in range(len(types))}
    for kind, fate, _ in _fates(gold, found):
        if kind in counts:
            counts[kind][fate] += 1
    for kind, fate, _ in _fates(found, gold):
        if fate == "missed":
            counts[kind]["spurious"] += 1
    predicted = np.bincount(found.kind, minlength=len(types))
    rows = []
    for kind, own in counts.items():
        support = sum(own.values()) - own["spurious"]
        right = own["right"]
        rows.append(
            {
                "label": types[kind] or "_",
                "support": support,
                "precision": right / max(1, predicted[kind]),
                "recall": right / max(1, support),
                "f1": 2 * right / max(1, predicted[kind] + support),
                **own,
            }
        )
    return sorted(rows, key=lambda row: -row["support"])


def type_confusion(targets: Array, predictions: Array, types: Sequence[str]) -> list[ErrorRow]:
    """As `confusion_rows`, of the spans of the targets and the type of what meets them."""
    none = len(types)
    pairs = [
        (kind if kind < none else -1, none if met is None else met)
        for kind, _, met in _fates(find_spans(targets), find_spans(predictions))
    ]
    gold, met = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return confusion_rows(gold, met, [*(kind or "_" for kind in types), NO_SPAN])


def _fates(spans: Spans, others: Spans) -> list[tuple[int, str, int | None]]:
    """Type and fate of each span, and the type of the other span that it meets first."""
    words = spans.shape[0] * spans.shape[1]
    owner = np.full(words, -1)
    for number, (first, last) in enumerate(zip(others.first, others.last, strict=True)):
        owner[first : last + 1] = number
    found: list[tuple[int, str, int | None]] = []
    for first, last, kind in zip(spans.first, spans.last, spans.kind, strict=True):
        met = [int(each) for each in np.unique(owner[first : last + 1]) if each >= 0]
        same = [each for each in met if others.kind[each] == kind]
        exact = [e for e in met if others.first[e] == first and others.last[e] == last]
        fate = "missed" if not met else "boundaries" if same else "both"
        if exact:
            fate = "right" if same else "type"
        chosen = (same or met or [None])[0]  # type: ignore[list-item]
        found.append((int(kind), fate, None if chosen is None else int(others.kind[chosen])))
    return found


def places_shown(rows: Sequence[Mapping[str, Any]]) -> set[int]:
    """The places of the rows that these name, whose texts a report shows."""
    single = {row["place"] for row in rows if "place" in row}
    return single | {place for row in rows for place in row.get("places", ())}
