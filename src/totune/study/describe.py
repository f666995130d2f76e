"""What a study says of itself: what is compared, on what, where."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from totune import machine
from totune.data.examples import Dataset, classes_of
from totune.data.splits import eligible_rows
from totune.encoders.loading import Loaded
from totune.report.error_section import TEXT_LENGTH
from totune.runs.context import Context
from totune.runs.records import StudyInfo
from totune.runs.run import Runs
from totune.runs.settings import Settings
from totune.text import hide_secrets


def describe(
    runs: Runs,
    settings: Settings,
    context: Context,
    command: str,
) -> StudyInfo:
    """`study.json` of these runs."""
    data = context.dataset
    metric = context.settings.metric
    others = [name for name in context.task.metrics if name != metric]
    recorded = asdict(settings)
    apart = ("cache_dir", "cache_budget", "strategies", "seeds", "search_storage", "track")
    for name in (*apart, "train", "dev", "test"):
        recorded.pop(name)
    recorded |= {"max_length": context.max_length, "precision": context.precision}
    return StudyInfo(
        name=data.name,
        task=context.task.name,
        data={
            "name": data.name,
            "digest": data.digest(),
            "rows": _rows(data),
            "class_counts": _class_counts(data),
            "columns": asdict(data.columns),
            "task": context.task.to_json(),
            "truncated": context.truncated(),
            "cautions": context.cautions(),
            "notes": list(data.notes),
            "warnings": list(data.warnings),
            **data.provenance,
        },
        model={} if context.pretrained is None else _describe_encoder(context.pretrained),
        metric=metric,
        metrics=[metric, *others],
        strategies=list(dict.fromkeys(run.label for run in runs)),
        seeds=settings.seed_list,
        runs=[run.fingerprint for run in runs],
        settings=recorded,
        versions=machine.versions(),
        machine=asdict(machine.describe()) | {"processes": context.devices.world},
        command=hide_secrets(command),
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _rows(data: Dataset) -> dict[str, int]:
    """Rows of every split; of a cross-validation all that are predicted, and those of a fold."""
    sizes = {str(name): len(split) for name, split in data.splits().items()}
    if data.folds is None:
        return sizes
    return {"all": int(eligible_rows(data.folds.rows).sum()), **sizes}


def describe_rows(context: Context, places: Sequence[int], texts: bool) -> dict[str, Any]:
    """`shown_rows.json`: the number of test rows in the data, and their texts cut short.

    Args:
        context: of the study.
        places: among the test rows; of a cross-validation among the rows that it predicts.
        texts: whether their texts are written.
    """
    data = context.dataset
    examples = data.test
    if context.folds is not None:
        every = context.folds.rows
        examples = every.take(np.flatnonzero(eligible_rows(every)))
    shown = examples.take(places)
    columns = [" | ".join(" ".join(text.split()) for text in row) for row in shown]
    rows: dict[str, dict[str, Any]] = {str(place): {} for place in places}
    for number, (found, text) in enumerate(zip(rows.values(), columns, strict=True)):
        if shown.rows:
            found["row"] = int(shown.rows[number])
        if texts:
            found["text"] = text if len(text) <= TEXT_LENGTH else f"{text[: TEXT_LENGTH - 1]}…"
    return {"rows": rows}


def _class_counts(data: Dataset) -> dict[str, int]:
    """How many rows of all splits have each class or label; empty for scores and tagged words."""
    if data.columns.task not in ("classification", "multi-label"):
        return {}
    splits = data.splits().values() if data.folds is None else [data.folds.rows]
    labels = (label for split in splits for label in split.labels or ())
    return dict(Counter(str(each) for label in labels for each in classes_of(label)))


def _describe_encoder(loaded: Loaded) -> dict[str, Any]:
    encoder = loaded.encoder
    return {
        "reference": loaded.reference,
        "name": loaded.name,
        "kind": encoder.kind,
        "layers": encoder.depth,
        "width": encoder.width,
        "parameters": sum(p.numel() for p in encoder.parameters()),
        "fingerprint": encoder.fingerprint(),
    }
