"""How fast language models are pretrained: tokens per second, and the share of the matrix rate.

The preset `mini` of both kinds reads film reviews for a number of steps, in this process. A share
of the matrix rate is the operations of matrix products in a step over its time, over what large
products reach on this machine in the same precision.
"""

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path

from benchmarks.common import save
from totune.data.sources import load_dataset
from totune.pretraining.bert import pretrain_bert
from totune.pretraining.elmo import pretrain_elmo
from totune.pretraining.settings import PretrainingSettings

DATA = "example:rotten-tomatoes"
TEXTS_OF_A_DOCUMENT = 20


def write_corpus(path: Path) -> Path:
    """The reviews, a paragraph each, some to a document."""
    texts = [" ".join(text.split()) for text in load_dataset(DATA).train.texts]
    documents = [
        "\n".join(texts[start : start + TEXTS_OF_A_DOCUMENT])
        for start in range(0, len(texts), TEXTS_OF_A_DOCUMENT)
    ]
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return path


def speeds(folder: Path) -> dict[str, float]:
    """Medians over the log's lines, the first left out since it warms up."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "loss" in line][1:]
    names = ("tokens_per_second", "matrix_share")
    return {name: statistics.median(line[name] for line in steps) for name in names}


def main(steps: int = 50) -> None:
    """Measures both kinds and writes `benchmarks/results/pretraining.json`."""
    settings = PretrainingSettings(max_steps=steps, eval_steps=steps + 1)
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["TOTUNE_CACHE"] = str(folder / "cache")
        corpus = write_corpus(folder / "reviews.txt")
        for kind, pretrain in (("bert", pretrain_bert), ("elmo", pretrain_elmo)):
            facts = pretrain([corpus], folder / kind, preset="mini", settings=settings).facts
            figures[kind] = {
                **speeds(folder / kind),
                "matrix_rate_gflops": facts["matrix_rate"] / 1e9,
                "precision": facts["precision"],
                "parameters": facts["parameters"],
            }
    path = save("pretraining", {"what": f"preset mini, {steps} steps on {DATA}", **figures})
    for kind, found in figures.items():
        print(
            f"pretraining, {kind}: {found['tokens_per_second']:.0f} tokens/s, "
            f"{found['matrix_share']:.1%} of the matrix rate"
        )
    print(f"pretraining: -> {path.name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    main(parser.parse_args().steps)
