"""Runs every benchmark: `python -m benchmarks` (make bench)."""

from benchmarks import (
    adaptation,
    crf,
    extraction,
    fine_tuning,
    folds,
    frozen_prefix,
    heads,
    language_models,
    pretraining,
    racing,
    scaling,
    small_data,
    verdicts,
)

if __name__ == "__main__":
    frozen_prefix.main()
    fine_tuning.main()
    crf.main()
    heads.main()
    adaptation.main()
    language_models.main()
    pretraining.main()
    racing.main()
    extraction.main()
    scaling.main()
    verdicts.main()
    folds.main()
    small_data.main()
