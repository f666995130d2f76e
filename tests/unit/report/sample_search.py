"""Searches as a study might leave them: fine-tuning over 6 options, feature extraction over 3."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from totune.search.records import SearchRecord, TrialRecord

RANGES: dict[str, dict[str, Any]] = {
    "learning_rate": {"kind": "floats", "low": 2e-5, "high": 5e-4, "log": True},
    "layer_decay": {"kind": "floats", "low": 0.6, "high": 1.0, "log": False},
    "weight_decay": {"kind": "floats", "low": 1e-4, "high": 0.1, "log": True},
    "num_train_epochs": {"kind": "ints", "low": 2, "high": 5, "log": False},
    "schedule": {"kind": "choices", "values": ["linear", "slanted-triangular", "constant"]},
    "head.dropout": {"kind": "floats", "low": 0.0, "high": 0.5, "log": False},
}
DEFAULTS: dict[str, Any] = {
    "learning_rate": 1e-4,
    "layer_decay": 1.0,
    "weight_decay": 0.01,
    "num_train_epochs": 3,
    "schedule": "linear",
    "head.dropout": 0.1,
}


def trial(number: int, score: float | None, **changes: Any) -> TrialRecord:
    """A trial with this score; `options` are the defaults with a rate of its own."""
    options = {**DEFAULTS, "learning_rate": 1e-4 * (1 + number / 4)}
    state = "failed" if score is None else "complete"
    record = TrialRecord(number, options, state, score, seconds=30.0)
    return replace(record, **changes)


def search(trials: list[TrialRecord], **changes: Any) -> SearchRecord:
    """A search with these trials; the best complete one won."""
    known = [t for t in trials if t.state == "complete" and t.score is not None]
    best = max(known, key=lambda t: t.score or 0.0).number if known else -1
    record = SearchRecord(
        strategy="fine-tuning",
        metric="accuracy",
        ranges=RANGES,
        fixed={},
        trials=trials,
        best=best,
        importance={},
        budget={"trials": float(len(trials))},
        seed=0,
    )
    return replace(record, **changes)


def sampled(count: int = 20) -> SearchRecord:
    """A search that looks like one: the rate matters most, too high a rate fails."""
    random = np.random.default_rng(7)
    trials = []
    for number in range(count):
        options = dict(DEFAULTS) if number == 0 else _drawn(random)
        far = abs(math.log10(options["learning_rate"] / 2e-4))
        lost = 0.06 * far**2 + 0.02 * abs(options["head.dropout"] - 0.2)
        score = 0.862 - lost - 0.004 * random.random()
        state = "pruned" if number % 4 == 3 else "complete"
        trials.append(TrialRecord(number, options, state, score - 0.02 * (number % 4 == 3), [], 31))
    trials[5] = replace(trials[5], state="failed", score=None, error="the loss is not finite")
    trials[9] = replace(trials[9], state="complete", score=0.507)
    trials[12] = replace(trials[12], **_numbers(trials[4]), same_as=4)
    importance = dict(zip(RANGES, (0.71, 0.04, 0.02, 0.1, 0.001, 0.129), strict=True))
    return search(trials, importance=importance)


def _numbers(other: TrialRecord) -> dict[str, Any]:
    return {"options": other.options, "score": other.score, "state": other.state}


def _drawn(random: np.random.Generator) -> dict[str, Any]:
    names = RANGES["schedule"]["values"]
    return {
        "learning_rate": float(10 ** random.uniform(math.log10(2e-5), math.log10(5e-4))),
        "layer_decay": float(random.uniform(0.6, 1.0)),
        "weight_decay": float(10 ** random.uniform(-4, -1)),
        "num_train_epochs": int(random.integers(2, 6)),
        "schedule": names[int(random.integers(3))],
        "head.dropout": float(random.uniform(0, 0.5)),
    }
