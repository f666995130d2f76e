"""Skewed classes: what class weights and a tuned threshold do to accuracy, balanced accuracy, F1.

    python -m benchmarks.skew [FOLDER]

Two sets of tweets: whether one says that global warming exists ("Y" and "Yes", "N" and "No" read as
one class each; rows labelled "NA" or "N/A" left out), and what a company's message is for (four
classes). Each strategy trains on `ROWS` rows, without and with class_weight=balanced and, of two
classes, with a threshold tuned on dev. All are compared on balanced accuracy; the page
`docs/skew.md` shows what this prints.
"""

import csv
import gzip
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import totune
from benchmarks.common import SHARED, save
from totune.metrics import METRICS
from totune.runs.store import Store

ROWS, SEEDS = 400, 1
STRATEGIES = ("tf-idf", "feature-extraction", "fine-tuning")
SCORES = ("accuracy", "balanced-accuracy", "macro-f1")
SETS = {
    "cf_global_warming": ("tweet", "existence", {"Y": "yes", "Yes": "yes", "N": "no", "No": "no"}),
    "cf_corporate_messaging": ("text", "category", None),
}
VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "class_weight=balanced": {"options": {"task.class_weight": "balanced"}},
    "tuned threshold": {"tune_threshold": True},
}


def read(name: str, folder: Path) -> tuple[Path, Counter[str]]:
    """A set as a table of text and label, and its classes."""
    text, label, names = SETS[name]
    with gzip.open(SHARED / "data" / name / "train.csv.gz", "rt", encoding="utf-8") as file:
        rows = [(row[text], row[label]) for row in csv.DictReader(file)]
    if names is not None:
        rows = [(words, names[found]) for words, found in rows if found in names]
    path = folder / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path, Counter(found for _, found in rows)


def measure(name: str, folder: Path) -> Iterator[dict[str, Any]]:
    """A row per variant and strategy: each score on the test rows."""
    data, classes = read(name, folder)
    fraction = ROWS / (0.8 * classes.total())  # dev and test take a tenth each
    for variant, settings in VARIANTS.items():
        if "tune_threshold" in settings and len(classes) != 2:
            continue
        options = {"fine-tuning.num_train_epochs": 4, **settings.get("options", {})}
        study = totune.compare(
            data,
            strategies=STRATEGIES,
            seeds=SEEDS,
            fraction=fraction,
            metric="balanced-accuracy",
            max_length=64,
            out=folder / f"{name} {variant}",
            **{**settings, "options": options},
        )
        store = Store(study.folder)
        for strategy in STRATEGIES:
            runs = [record for record in study.records if record.strategy == strategy]
            arrays = [store.predictions(record) for record in runs]
            scores = {
                score: fmean(
                    METRICS[score](each["targets"], each["predictions"], len(classes))
                    for each in arrays
                )
                for score in SCORES
            }
            thresholds = [threshold for record in runs for threshold in record.thresholds]
            yield {
                "data": name,
                "classes": dict(classes),
                "rows": study.info.data["rows"],
                "strategy": strategy,
                "variant": variant,
                "thresholds": thresholds,
                **scores,
            }


def main() -> None:
    """Prints a table for each set, and saves all rows."""
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        for name in SETS:
            print(f"\n{name}\n\n| strategy | trained | {' | '.join(SCORES)} |")
            print(f"|---|---|{'---:|' * len(SCORES)}")
            for row in measure(name, folder):
                cells = " | ".join(f"{100 * row[score]:.1f}" for score in SCORES)
                print(f"| {row['strategy']} | {row['variant']} | {cells} |", flush=True)
                rows.append(row)
    save("skew", {"seeds": SEEDS, "rows": rows})


if __name__ == "__main__":
    main()
