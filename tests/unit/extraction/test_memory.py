"""Memory does not grow with the rows."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tiny_runs import WORDS
from tests.unit.extraction.conftest import write_texts

FEW, MANY = 250, 1000  # rows; each is 40 states of 5 layers of 32 numbers, 26 kB
WOULD_BE_HELD = (MANY - FEW) * 40 * 5 * 32 * 4
PROGRAM = """
import resource, sys
from pathlib import Path
from totune.extraction import ExtractionSettings, extract
from totune.progress import Progress

settings = ExtractionSettings(sys.argv[1], pooling="none", layers="all", rows_per_shard=50)
for data in sys.argv[2:]:
    extract(data, settings, Path(data).with_suffix(".vectors"), Progress())
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count in other units")
def test_four_times_the_rows_take_no_more_memory(encoder: Path, tmp_path: Path):
    """More rows add less than half of what they would take if they were held."""
    texts = [f"{row} " + " ".join(WORDS[:40]) for row in range(MANY)]
    few = write_texts(tmp_path / "few.csv", texts[:FEW])
    many = write_texts(tmp_path / "many.csv", texts)
    command = [sys.executable, "-c", PROGRAM, str(encoder), str(few), str(many)]
    seen = subprocess.run(command, capture_output=True, check=True, text=True)
    peaks = [1024 * int(line) for line in seen.stdout.split()]
    assert peaks[1] - peaks[0] < WOULD_BE_HELD / 2
    assert peaks[0] > resource.getpagesize()
