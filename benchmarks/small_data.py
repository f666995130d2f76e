"""Small sets cut from large ones: how often does a study of them agree with one of many rows?

    python -m benchmarks.small_data

Cuts of 100, 300 and 600 rows are compared twice with cheap strategies: cross-validated (two
repetitions of five folds) and on one split (three seeds, 10% test rows), each as `compare` does by
itself. What they find is set against a study of 3,000 other rows, half of them test rows. A study
agrees if the same strategy scores best, it is certain if the other is credibly worse, and wrong if
it is certain and does not agree.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import totune
from benchmarks.common import SHARED, save

SETS = {
    "sst2": ("sst2/train.tsv.gz", "sentence", "label"),
    "disaster tweets": ("disaster_tweets/train.csv.gz", "text", "target"),
}
STRATEGIES = ["tf-idf", "sentence-embedding"]
MANY = 3_000
CUTS = {100: 5, 300: 3, 600: 2}  # how many of each size
DESIGNS: dict[str, dict[str, Any]] = {"folds": {"folds": 5, "seeds": 2}, "one split": {"folds": 1}}


def cuts(rows: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame]]:
    """Disjoint cuts with their sizes."""
    start = 0
    for size, count in CUTS.items():
        for _ in range(count):
            yield size, rows.iloc[start : start + size]
            start += size


def study(rows: pd.DataFrame, folder: Path, **settings: Any) -> dict[str, Any]:
    """What `compare` finds of these rows."""
    folder.mkdir(parents=True)
    rows.to_csv(folder / "rows.csv", index=False)
    found = totune.compare(
        folder / "rows.csv",
        out=folder / "study",
        strategies=STRATEGIES,
        text=rows.columns[0],
        label=rows.columns[1],
        cache_dir=folder / "cache",
        **settings,
    )
    advice, standings = found.advice, {each.strategy: each for each in found.advice.standings}
    widths = [one.high - one.low for one in advice.comparisons]
    return {
        "verdict": advice.verdict,
        "use": advice.provisional,
        "best": advice.best,
        "finding": advice.comparisons[0].verdict,
        "half-width": max(widths) / 2,
        "scores": {name: each.score.mean for name, each in standings.items()},
        "seconds": sum(run.costs.train_seconds for run in found.records if run.costs),
    }


def agreement(studies: Sequence[dict[str, Any]], many: dict[str, Any]) -> dict[str, Any]:
    """Over the studies of one size and design: how often they agree, are certain, and are wrong."""
    count = len(studies)
    right = [one["best"] == many["best"] for one in studies]
    certain = [one["finding"] == "credibly worse" for one in studies]
    return {
        "studies": count,
        "agree": sum(right),
        "certain": sum(certain),
        "wrong": sum(sure and not same for sure, same in zip(certain, right, strict=True)),
        "half-width": sum(one["half-width"] for one in studies) / count,
    }


def main(names: Sequence[str] = tuple(SETS)) -> None:
    """Compares all cuts and writes results."""
    results: dict[str, Any] = {}
    for name in names:
        file, *columns = SETS[name]
        path = SHARED / "data" / file
        table = pd.read_csv(path, sep="\t" if ".tsv" in file else ",")[columns].dropna()
        rows = table.drop_duplicates(columns[0]).sample(frac=1.0, random_state=0)
        with tempfile.TemporaryDirectory() as folder:
            half = {"folds": 1, "test_size": 0.5, "seeds": 2}
            many = study(rows.iloc[-MANY:], Path(folder) / "many", **half)
            print(f"{name}, {MANY} rows: {many}", flush=True)
            found: dict[str, list[dict[str, Any]]] = {}
            for number, (size, cut) in enumerate(cuts(rows)):
                for design, settings in DESIGNS.items():
                    place = Path(folder) / f"{number} {design}"
                    found.setdefault(f"{size}, {design}", []).append(study(cut, place, **settings))
        results[name] = {"many": many, "studies": found, "agreement": {}}
        for key, studies in found.items():
            results[name]["agreement"][key] = rates = agreement(studies, many)
            print(f"  {key}: {rates}", flush=True)
    print(save("small_data", {"sets": results}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=list(SETS), help="one alone")
    alone = parser.parse_args().set
    main([alone] if alone else list(SETS))
