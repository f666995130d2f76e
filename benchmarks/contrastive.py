"""The contrastive strategy beside SetFit: accuracy and seconds on the same rows.

    python -m benchmarks.contrastive --setfit PYTHON    # sst2:8 news:8 sst2:16 ...; sst2:100r

Both sides tune the same encoder (MiniLM) with their defaults on one thread, one after the other in
turn, and are scored on the same test rows. SetFit runs in an environment of its own:

    python3 -m venv setfit && setfit/bin/pip install setfit==1.2.0 "sentence-transformers==5.7.*"

Its default trains on as many pairs as the rows have, which grows with their square. `--steps` ends
it earlier: then its accuracy is that of so many steps, and its seconds are scaled to the default's.

Needs the folder of data sets beside the checkout (or `TOTUNE_SHARED`).
"""

import argparse
import json
import math
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from benchmarks.common import ratio, save
from benchmarks.defaults import SOURCES, load_source, open_rows
from totune.data.examples import Dataset
from totune.encoders.sources import resolve
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.runs.run import configure
from totune.strategies.defaults import batch_size
from totune.training.inputs import open_source, predict

TEST_ROWS = 300
PAIRS_PER_STEP = 16  # SetFit's default
CELLS = ("sst2:8", "news:8", "sst2:16", "news:16", "sst2:100r", "news:100r", "sst2:300r")


@dataclass(frozen=True)
class FewRows:
    """Train rows of a data set: so many per class, or (`100r`) so many in all."""

    data: str
    size: int
    per_class: bool

    @classmethod
    def parse(cls, text: str) -> "FewRows":
        data, _, size = text.partition(":")
        return cls(data, int(size.removesuffix("r")), not size.endswith("r"))

    def draw(self, seed: int) -> Dataset:
        """Train rows, a quarter as many of dev, and test rows; other rows for every seed."""
        whole = load_source(SOURCES[self.data], self.data)
        rows, labels = whole.train, np.array(whole.train.labels)
        order = np.random.default_rng([seed, 77]).permutation(len(rows))
        train = order[: self.size]
        if self.per_class:
            each = (order[labels[order] == label][: self.size] for label in np.unique(labels))
            train = np.concatenate(list(each))
        rest = order[~np.isin(order, train)]
        dev, test = rest[: max(8, len(train) // 4)], rest[-TEST_ROWS:]
        return replace(whole, train=rows.take(train), dev=rows.take(dev), test=rows.take(test))


def ours(context: Context, seed: int) -> dict[str, float]:
    """Trains the strategy with its defaults and scores it."""
    [run] = configure([Candidate("contrastive")], [seed], context)
    options = run.spec(context).encoding_options
    for name in ("train", "dev", "test"):
        context.split(name, options)  # type: ignore[arg-type]
    wall, processor = time.perf_counter(), time.process_time()
    model = run.fit(context, None).model
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    test = context.split("test", options)
    values = predict(model, open_source(test, model, None, -1), context.devices).values
    assert test.flat is not None
    accuracy = 100 * float((values.argmax(axis=1) == test.flat).mean())
    return {"accuracy": accuracy, "seconds": wall, "cpu_seconds": processor}


def whole_steps(targets: np.ndarray) -> int:
    """Steps of SetFit's default: every pair of one label or of two, the fewer ones repeated."""
    counts = np.unique(targets, return_counts=True)[1]
    same = int((counts * (counts + 1) // 2).sum())  # a text with itself is one of them
    other = len(targets) * (len(targets) + 1) // 2 - same
    return math.ceil(2 * max(same, other) / PAIRS_PER_STEP)


class SetFit:
    """SetFit in the interpreter `python`, at most so many steps a run."""

    def __init__(self, python: str, steps: int | None) -> None:
        self.steps = steps
        script = Path(__file__).with_name("setfit_side.py")
        self._process = subprocess.Popen(
            [python, str(script), str(torch.get_num_threads())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
            text=True,
        )

    def __call__(self, context: Context, seed: int) -> dict[str, float]:
        rows, task = context.dataset, context.task
        targets = task.targets(rows.train.labels or ())
        whole = whole_steps(targets)
        steps = whole if self.steps is None else min(whole, self.steps)
        job = {
            "encoder": str(resolve("minilm").folder),
            "seed": seed,
            "max_length": context.max_length,
            "settings": {} if steps == whole else {"max_steps": steps},
            "texts": rows.train.texts,
            "labels": targets.tolist(),
            "test_texts": rows.test.texts,
            "test_labels": task.targets(rows.test.labels or ()).tolist(),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("setfit ended without an answer: is it installed there?")
        found = json.loads(answer) | {"steps": steps, "whole_steps": whole}
        scaled = {name: found[name] * whole / steps for name in ("seconds", "cpu_seconds")}
        return found | scaled


def measure(cell: FewRows, setfit: SetFit, seeds: int, cache: Path) -> dict[str, Any]:
    """Both sides on a cell, in turn, each seed with rows of its own."""
    sides: dict[str, list[dict[str, float]]] = {"ours": [], "setfit": []}
    for seed in range(seeds):
        context = open_rows(cell.draw(seed), "minilm", cache)
        rows = batch_size(len(context.dataset.train))
        context = replace(context, settings=replace(context.settings, train_batch_size=rows))
        sides["ours"].append(ours(context, seed))
        sides["setfit"].append(setfit(context, seed))
    of = {
        (side, name): [run[name] for run in runs]
        for side, runs in sides.items()
        for name in ("accuracy", "seconds", "cpu_seconds")
    }
    last = sides["setfit"][-1]
    name = f"{cell.data}, {cell.size} {'per class' if cell.per_class else 'rows'}"
    ratios = [ratio(of["setfit", each], of["ours", each]) for each in ("seconds", "cpu_seconds")]
    print(
        f"{name} ({seeds} seeds): {fmean(of['ours', 'accuracy']):.1f} against "
        f"{fmean(of['setfit', 'accuracy']):.1f}, {fmean(of['ours', 'seconds']):.0f} s against "
        f"{fmean(of['setfit', 'seconds']):.0f} s: SetFit takes {ratios[0]:.1f} times as long, "
        f"{ratios[1]:.1f} of processor time ({last['steps']:.0f} of {last['whole_steps']:.0f} "
        "steps run)",
        flush=True,
    )
    return {"cell": name, "ratio": ratios[0], "cpu_ratio": ratios[1], **sides}


def main() -> None:
    """Measures the cells that are named and writes their results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", nargs="*", default=CELLS, help="DATA:PER_CLASS or DATA:ROWSr")
    parser.add_argument("--setfit", required=True, metavar="PYTHON", help="of its environment")
    parser.add_argument("--steps", type=int, help="the most that SetFit runs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--name", default="contrastive", help="of the file of results")
    given = parser.parse_args()
    command = [given.setfit, "-c", "import setfit"]
    if not Path(given.setfit).is_file() or subprocess.run(command, check=False).returncode:
        raise SystemExit(f"{given.setfit} has no setfit: {__doc__}")
    torch.set_num_threads(1)
    setfit = SetFit(given.setfit, given.steps)
    with tempfile.TemporaryDirectory() as cache:
        cells = [FewRows.parse(cell) for cell in given.cells]
        found = [measure(cell, setfit, given.seeds, Path(cache)) for cell in cells]
    print(save(given.name, {"what": "contrastive beside SetFit 1.2.0", "cells": found}))


if __name__ == "__main__":
    main()
