"""What a person waits for before anything happens: medians of short commands, each its own process.

    python -m benchmarks.startup             # on a busy machine: prints
    python -m benchmarks.startup --save      # on a quiet one: also benchmarks/results/startup.json

`predict` reads a model of tf-idf and one of fine-tuning with a small random encoder, `compare` is a
study of tf-idf alone; 60 rows of random words are all their data. Beside the wall time stand the
seconds of processor time, which a busy machine changes less, and, of one more run under
`-X importtime`, how much of it imports took and which packages most.
"""

import argparse
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from transformers import BertConfig, BertModel, BertTokenizerFast

from benchmarks.common import ROOT, save

RUNS = 5
SHOWN = 4  # packages whose share of a command is printed
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


def run(folder: Path, *arguments: str, python: tuple[str, ...] = ()) -> tuple[float, float, str]:
    """One command: seconds of wall time, of processor time, and its standard error.

    Args:
        folder: where it runs.
        *arguments: those of `totune`.
        python: further options of the interpreter.
    """
    command = [sys.executable, *python, "-m", "totune", *arguments]
    environment = {**os.environ, "TOTUNE_CACHE": str(folder / "cache")}
    before, start = _processor_seconds(), time.perf_counter()
    ended = subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return time.perf_counter() - start, _processor_seconds() - before, ended.stderr


def _processor_seconds() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def import_seconds(report: str) -> Counter[str]:
    """Seconds that importing took by package, from what `-X importtime` writes."""
    found: Counter[str] = Counter()
    for own, package in re.findall(r"^import time: +(\d+) \| +\d+ \| +(\w+)", report, re.MULTILINE):
        found[package] += int(own) / 1e6
    return found


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
        run(folder, "train", *of_data, "--strategy", "tf-idf", "--out", "sparse")
        tuned = ("--strategy", "fine-tuning", "--num-train-epochs", "1", "--out", "tuned")
        run(folder, "train", *of_data, *tuned)
        commands = {
            "--help": ("--help",),
            "list": ("list",),
            "cache ls": ("cache", "ls"),
            "doctor --help": ("doctor", "--help"),
            "predict, tf-idf": ("predict", "sparse", "one.csv"),
            "predict, fine-tuning": ("predict", "tuned", "one.csv"),
            "compare, tf-idf": ("compare", *of_data, "--strategies", "tf-idf", "--seeds", "1"),
        }
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for turn in range(RUNS):
            for name, arguments in commands.items():
                measured[name].append(run(folder, *_fresh(arguments, f"study-{turn}"))[:2])
        shares = {
            name: _shares(*run(folder, *_fresh(arguments, "study"), python=("-X", "importtime")))
            for name, arguments in commands.items()
        }
    facts = {
        name: {
            "median_seconds": statistics.median(wall for wall, _ in pairs),
            "fastest_seconds": min(wall for wall, _ in pairs),
            "median_processor_seconds": statistics.median(used for _, used in pairs),
            **shares[name],
        }
        for name, pairs in measured.items()
    }
    for name, of in facts.items():
        packages = ", ".join(f"{each} {share:.0%}" for each, share in of["packages"].items())
        print(
            f"totune {name:22} {of['median_seconds']:6.2f} s (fastest {of['fastest_seconds']:.2f}, "
            f"processor {of['median_processor_seconds']:.2f}); "
            f"imports {of['imports']:.0%}: {packages}"
        )
    if saving:
        save("startup", {"runs": RUNS, "commands": facts})


def _fresh(arguments: tuple[str, ...], out: str) -> tuple[str, ...]:
    """The arguments, of `compare` with a folder that is new, so that it runs what it compares."""
    return (*arguments, "--out", out) if arguments[0] == "compare" else arguments


def _shares(wall: float, _: float, report: str) -> dict[str, Any]:
    """How much of a command's wall time is importing, in all and by the slowest packages."""
    found = import_seconds(report)
    slowest = {name: spent / wall for name, spent in found.most_common(SHOWN)}
    return {"imports": found.total() / wall, "packages": slowest}


if __name__ == "__main__":
    main()
