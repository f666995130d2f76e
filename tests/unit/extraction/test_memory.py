"""Memory does not grow with the rows."""

import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from tests.end_to_end.commands import run_apart
from tests.tiny_runs import WORDS
from tests.unit.extraction.conftest import write_texts

from totune.extraction import ExtractionSettings, extract
from totune.progress import Progress

FEW, MANY = 250, 1000  # rows; each is 40 states of 5 layers of 32 numbers, 26 kB
WOULD_BE_HELD = (MANY - FEW) * 40 * 5 * 32 * 4


def extract_all(encoder: Path, files: Sequence[Path], answer: Path) -> None:
    """Writes the most memory that the process has had after each file, a line each."""
    torch.set_num_threads(1)
    settings = ExtractionSettings(str(encoder), pooling="none", layers="all", rows_per_shard=50)
    for data in files:
        extract(data, settings, data.with_suffix(".vectors"), Progress())
        with answer.open("a") as file:
            file.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}\n")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count in other units")
def test_four_times_the_rows_take_no_more_memory(encoder: Path, tmp_path: Path):
    """More rows add less than half of what they would take if they were held."""
    texts = [f"{row} " + " ".join(WORDS[:40]) for row in range(MANY)]
    few = write_texts(tmp_path / "few.csv", texts[:FEW])
    many = write_texts(tmp_path / "many.csv", texts)
    run_apart(extract_all, encoder, [few, many], tmp_path / "peaks")
    peaks = [1024 * int(line) for line in (tmp_path / "peaks").read_text().split()]
    assert peaks[1] - peaks[0] < WOULD_BE_HELD / 2
    assert peaks[0] > resource.getpagesize()
