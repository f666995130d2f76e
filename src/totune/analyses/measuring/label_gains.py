"""What tuning gains over not tuning at each size of the training set; part of `label_cost`."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.metrics import Metric
from totune.statistics import paired_bootstrap

Arrays = Mapping[str, NDArray[Any]]
Runs = dict[tuple[int, str], list[tuple[float, Arrays]]]  # (size, strategy) -> dev score, arrays
PAIR = ("feature-extraction", "fine-tuning")
NAME = f"{PAIR[1]} over {PAIR[0]}"
BEST = "best of each"  # the pair of the best untuned and the best tuned strategy, by dev score


def gains(
    runs: Runs, labels: Sequence[str], untuned: Sequence[str], metric: Metric
) -> list[dict[str, Any]]:
    """How much better a tuned strategy is than an untuned one, per size and pair.

    Pairs are feature extraction with fine-tuning, and at each size the best tuned with the best
    untuned strategy, chosen by their mean dev scores, unless they are those two at every size.

    Args:
        runs: dev score, targets [N] and predictions [N] of every usable run.
        labels: of all strategies, in order.
        untuned: of those that leave the encoder as it is.
        metric: what is compared.

    Returns:
        A mapping per size and pair with the gain in the metric's scale, positive where tuning is
        better, and its 95% interval over seeds and test rows (see `totune.statistics.paired`);
        the interval is None for one seed.
    """
    groups = untuned, [label for label in labels if label not in untuned]
    named, best = [], []
    for size in sorted({size for size, _ in runs}):
        here = {label: found for (at, label), found in runs.items() if at == size}
        if all(label in here for label in PAIR):
            named.append({"pair": NAME, "size": size, **_gain(here, *PAIR, metric)})
        one, other = (_best(here, group, metric) for group in groups)
        if one is not None and other is not None:
            best.append({"pair": BEST, "size": size, **_gain(here, one, other, metric)})
    same = [(gain["untuned"], gain["tuned"]) for gain in best] == [PAIR] * len(named)
    return named if same else named + best


def begins(gains: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Per pair, the smallest size at which tuning is credibly better.

    Returns:
        For each pair `size` (None where there is none), and `stays`: whether it is credibly better
        at every larger size too.
    """
    found = []
    for pair in dict.fromkeys(gain["pair"] for gain in gains):
        own = [gain for gain in gains if gain["pair"] == pair]
        better = [gain["low"] is not None and gain["low"] > 0 for gain in own]
        first = better.index(True) if any(better) else None
        found.append(
            {
                "pair": pair,
                "size": None if first is None else own[first]["size"],
                "stays": first is not None and all(better[first:]),
            }
        )
    return found


def _best(
    here: Mapping[str, Sequence[tuple[float, Arrays]]], group: Sequence[str], metric: Metric
) -> str | None:
    known = [label for label in group if label in here]
    return max(
        known, key=lambda label: metric.sign * fmean(dev for dev, _ in here[label]), default=None
    )


def _gain(
    here: Mapping[str, Sequence[tuple[float, Arrays]]], untuned: str, tuned: str, metric: Metric
) -> dict[str, Any]:
    one, other = (
        np.stack([arrays["predictions"] for _, arrays in here[label]]) for label in (untuned, tuned)
    )
    arrays = here[tuned][0][1]
    classes = arrays["scores"].shape[-1] if "scores" in arrays else None
    better, worse = (other, one) if metric.higher_is_better else (one, other)
    found = paired_bootstrap(metric, arrays["targets"], better, worse, classes)
    known = math.isfinite(found.low)
    return {
        "untuned": untuned,
        "tuned": tuned,
        "gain": found.difference,
        "low": found.low if known else None,
        "high": found.high if known else None,
    }
