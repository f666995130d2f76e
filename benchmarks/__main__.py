"""Runs every benchmark: `python -m benchmarks` (make bench)."""

from benchmarks import crf, fine_tuning, frozen_prefix, heads

if __name__ == "__main__":
    frozen_prefix.main()
    fine_tuning.main()
    crf.main()
    heads.main()
