"""What a person waits for before anything happens: medians of short commands, each its own process.

    python -m benchmarks.startup             # on a busy machine: prints
    python -m benchmarks.startup --save      # on a quiet one: also benchmarks/results/startup.json

`predict` reads a model of tf-idf and one of fine-tuning with a small random encoder, `compare` is a
study of tf-idf alone; 60 rows of random words are all their data.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from transformers import BertConfig, BertModel, BertTokenizerFast

from benchmarks.common import ROOT, save

RUNS = 5
WORDS = [f"w{number}" for number in range(50)]


def write_data(folder: Path) -> None:
    """Labelled rows, one row to predict, and an encoder of random weights."""
    rng = random.Random(0)
    rows = [f"{' '.join(rng.choices(WORDS, k=8))},{number % 2}" for number in range(60)]
    (folder / "rows.csv").write_text("\n".join(["text,label", *rows]))
    (folder / "one.csv").write_text("text\nw1 w2\n")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(vocabulary), num_hidden_layers=2, **sizes)
    BertModel(config).save_pretrained(folder / "encoder")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder / "encoder")


def seconds(folder: Path, *arguments: str) -> float:
    """Wall time of one command."""
    command = [sys.executable, "-m", "totune", *arguments]
    start = time.perf_counter()
    environment = {**os.environ, "TOTUNE_CACHE": str(folder / "cache")}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Measures every command in turn, round by round, so that a busy moment is shared."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--save", action="store_true", help="write the results too")
    saving = parser.parse_args().save
    source = str(ROOT / "src")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)
        of_data = ("rows.csv", "--model", "encoder")
        seconds(folder, "train", *of_data, "--strategy", "tf-idf", "--out", "sparse")
        tuned = ("--strategy", "fine-tuning", "--num-train-epochs", "1", "--out", "tuned")
        seconds(folder, "train", *of_data, *tuned)
        commands = {
            "--help": ("--help",),
            "list": ("list",),
            "cache ls": ("cache", "ls"),
            "doctor --help": ("doctor", "--help"),
            "predict, tf-idf": ("predict", "sparse", "one.csv"),
            "predict, fine-tuning": ("predict", "tuned", "one.csv"),
            "compare, tf-idf": ("compare", *of_data, "--strategies", "tf-idf", "--seeds", "1"),
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(RUNS):
            for name, arguments in commands.items():
                out = ("--out", f"study-{turn}") if name.startswith("compare") else ()
                times[name].append(seconds(folder, *arguments, *out))
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        print(f"totune {name:22} {median:6.2f} s  (fastest {min(times[name]):.2f})")
    if saving:
        save("startup", {"runs": RUNS, "median_seconds": medians, "seconds": times})


if __name__ == "__main__":
    main()
