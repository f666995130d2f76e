"""What memory `totune features` needs for more and more rows, and how many it does in a second.

Each size runs in a process of its own, whose highest resident memory is told. The texts are random
words and the encoder is tiny and random, so that 100,000 rows take a minute: memory does not depend
on what the numbers are, but rates of real encoders are far lower.
"""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers import BertConfig

from benchmarks.common import save
from totune import machine
from totune.encoders.loading import load_encoder
from totune.encoders.transformers import TransformersEncoder
from totune.extraction import ExtractionSettings, extract
from totune.progress import Progress

SIZES = (1_000, 10_000, 100_000)
ROWS_PER_SHARD = 1_000
WORDS = 20  # of a text, on average
ENCODER = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}


def texts(rows: int) -> Iterator[str]:
    """Random texts over 5,000 words that are made of syllables."""
    rng = random.Random(0)
    syllables = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
    words = ["".join(rng.choices(syllables, k=rng.randrange(1, 5))) for _ in range(5000)]
    for _ in range(rows):
        yield " ".join(rng.choices(words, k=rng.randrange(1, 2 * WORDS)))


def save_encoder(folder: Path) -> None:
    """A tiny random encoder with MiniLM's tokenizer."""
    tokenizer = load_encoder().tokenizer
    config = BertConfig(vocab_size=len(tokenizer), intermediate_size=128, **ENCODER)
    TransformersEncoder.from_config(config).save(folder)
    tokenizer.save_pretrained(folder)


def measure_here(folder: Path, rows: int) -> dict[str, Any]:
    """Extracts so many rows in this process."""
    before = machine.peak_memory()
    settings = ExtractionSettings(str(folder / "encoder"), rows_per_shard=ROWS_PER_SHARD)
    found = extract(folder / f"{rows}.txt", settings, folder / f"vectors-{rows}", Progress())
    done = found.facts["last_command"]
    return {
        "rows": len(found),
        "peak_memory_bytes": machine.peak_memory(),
        "after_imports_bytes": before,
        "rows_per_second": done["rows"] / done["seconds"],
    }


def measure(folder: Path, rows: int) -> dict[str, Any]:
    """Extracts so many rows in a new process."""
    (folder / f"{rows}.txt").write_text("\n".join(texts(rows)) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks.extraction", str(folder), str(rows)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    figures: dict[str, Any] = json.loads(told.splitlines()[-1])
    return figures


def main() -> None:
    """Measures every size and writes `extraction.json`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "encoder").mkdir()
        save_encoder(folder / "encoder")
        found = [measure(folder, rows) for rows in SIZES]
    peaks = [figures["peak_memory_bytes"] for figures in found]
    figures = {
        "what": "totune features, random words, a tiny random encoder",
        "encoder": ENCODER,
        "rows_per_shard": ROWS_PER_SHARD,
        "sizes": found,
        "ratio_of_peaks": max(peaks) / peaks[0],
    }
    path = save("extraction", figures)
    for size in found:
        print(
            f"{size['rows']:,} rows: {size['peak_memory_bytes'] / 1e6:,.0f} MB at the highest, "
            f"{size['rows_per_second']:,.0f} rows/s"
        )
    print(f"highest over that of {SIZES[0]:,} rows: {max(peaks) / peaks[0]:.3f} -> {path.name}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measure_here(Path(sys.argv[1]), int(sys.argv[2]))))
    else:
        main()
