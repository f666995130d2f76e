"""Runs the campaign: `python -m campaign [PART ...] [--share 0.1] [--seed 3]`.

Prints what was tried and what was found; ends with exit code 1 if anything was. `--share 1` is the
whole of it, hours on two cores.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from campaign import damage, inputs, kills, places
from campaign.common import Place, Tally

# The parts and how often each is tried in a whole campaign.
PARTS: dict[str, tuple[Callable[[Place, int, int], Tally], int]] = {
    "kills": (kills.run, 500),
    "damage": (damage.run, 300),
    "inputs": (inputs.run, 2000),
    "together": (places.together, 50),
    "permissions": (places.permissions, 60),
}


def main() -> int:
    """Runs what the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--share", type=float, default=0.02, help="of a whole campaign")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    asked = parser.parse_args()
    unknown = set(asked.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    found = 0
    with tempfile.TemporaryDirectory(prefix="totune-campaign-") as folder:
        Path(folder).chmod(0o755)
        place = Place.make(Path(folder) / "place")
        for name in asked.parts or PARTS:
            run, whole = PARTS[name]
            began = time.monotonic()
            tally = run(place, max(1, round(whole * asked.share)), asked.seed)
            print(f"{tally}\n  {time.monotonic() - began:.0f} s", flush=True)
            found += len(tally.found)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
