"""Runs every benchmark: `python -m benchmarks` (make bench)."""

from benchmarks import fine_tuning, frozen_prefix

if __name__ == "__main__":
    frozen_prefix.main()
    fine_tuning.main()
