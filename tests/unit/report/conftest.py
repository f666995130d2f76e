"""A study as a person might run it: four strategies, three seeds, one run failed, one collapsed."""

import math
from dataclasses import replace

import pytest
from tests.unit.report.sample_study import SEEDS, STRATEGIES, run_of

from totune.advice import Advice, Comparison
from totune.advice.compare import Finding
from totune.runs.records import RunRecord, StudyInfo


@pytest.fixture(scope="module")
def records() -> list[RunRecord]:
    runs = [run_of(strategy, seed) for strategy in STRATEGIES for seed in SEEDS]
    broken = next(run for run in runs if run.strategy == "fine-tuning" and run.seed == 2)
    runs[runs.index(broken)] = replace(
        broken,
        status="failed",
        epochs=broken.epochs[:1],
        best_epoch=-1,
        dev={},
        test={},
        costs=None,
        error="the loss is not finite in epoch 2, batch 31; lower learning_rate (2e-05)",
    )
    return runs


def comparison(
    strategy: str, verdict: Finding, difference: float, low: float, high: float, p: float
) -> Comparison:
    return Comparison(
        strategy=strategy,
        best="fine-tuning",
        verdict=verdict,
        difference=difference,
        low=low,
        high=high,
        p=p,
        p_adjusted=min(1.0, 2 * p),
        p_tolerance=p,
        welch_p=p,
        welch_p_adjusted=p,
        effect_size=3.2,
        seed_sd=0.002,
        example_sd=0.007,
        more_seeds=None,
        test_rows=None,
    )


@pytest.fixture(scope="module")
def advice() -> Advice:
    return Advice(
        verdict="recommended",
        headline="Tune: fine-tuning scores best, and every cheaper strategy is worse by more than"
        " 0.5 points.",
        metric="accuracy",
        tolerance=0.005,
        recommended="fine-tuning",
        best="fine-tuning",
        provisional="fine-tuning",
        standings=(),
        comparisons=(
            comparison("last-2", "credibly worse", 0.0381, 0.0162, 0.0611, 0.0013),
            comparison("feature-extraction", "credibly worse", 0.0675, 0.048, 0.088, 2e-9),
            comparison("tf-idf", "credibly worse", 0.0925, 0.068, 0.117, 3e-12),
        ),
        more_seeds=None,
        test_rows=None,
        reasons=(
            "fine-tuning scores best: 84.9 points accuracy (mean of 2 seeds, 95% interval 81.7 to"
            " 88.0).",
            "last-2 is credibly worse by more than 0.5 points: 3.81 points behind fine-tuning.",
            "feature-extraction is credibly worse by more than 0.5 points: 6.75 points behind.",
            "tf-idf is credibly worse by more than 0.5 points: 9.25 points behind fine-tuning.",
        ),
        costs=(
            "fine-tuning trains 340 times slower than tf-idf (3.5 min against 0.62 s per run) and"
            " stores 276 times more per task (90.9 MB against 330 kB).",
            "fine-tuning trains 4.4 times slower than last-2 (3.5 min against 48 s per run) and"
            " stores 6.4 times more per task (90.9 MB against 14.2 MB).",
        ),
        caveats=(
            "1 of 3 runs of fine-tuning failed (the loss is not finite in epoch 2, batch 31);"
            " the mean leaves them out.",
            "The fewest usable seeds of a strategy are 2: with fewer than 5, how much seeds matter"
            " is not well known.",
        ),
    )


@pytest.fixture
def undecided(advice: Advice) -> Advice:
    """One seed: differences are known, intervals are not, last-2 leads for now."""
    return replace(
        advice,
        verdict="undecided",
        headline="Undecided: last-2 keeps up with the best (fine-tuning) so far, but whether the"
        " cheaper feature-extraction keeps up within 0.5 points is open; 2 more seeds per strategy"
        " would show how far seeds matter.",
        recommended=None,
        provisional="last-2",
        comparisons=(
            comparison("last-2", "open", 0.0381, math.nan, math.nan, math.nan),
            comparison("feature-extraction", "open", 0.0675, math.nan, math.nan, math.nan),
        ),
        more_seeds=2,
    )


@pytest.fixture(scope="module")
def info() -> StudyInfo:
    return StudyInfo(
        name="rotten-tomatoes",
        task="classification",
        data={
            "name": "rotten-tomatoes",
            "digest": "5f0c1e9a7b2d4c6e8f0a1b2c3d4e5f60",
            "rows": {"train": 6824, "dev": 853, "test": 853},
            "columns": {"text": "text", "label": "label", "pair": None, "task": "classification"},
            "task": {"name": "classification", "labels": ["neg", "pos"]},
            "truncated": {"train": 0, "dev": 2, "test": 1},
            "source": "example:rotten-tomatoes",
            "notes": ["No dev or test file: seeded, stratified splits were made (80/10/10)."],
            "warnings": ["4 texts stand in train and in test too; their scores are flattered."],
        },
        model={
            "reference": "minilm",
            "name": "all-MiniLM-L6-v2",
            "kind": "bert",
            "layers": 6,
            "width": 384,
            "parameters": 22_713_216,
        },
        metric="accuracy",
        metrics=["accuracy", "f1"],
        strategies=list(STRATEGIES),
        seeds=list(SEEDS),
        settings={
            "precision": "float32",
            "per_device_train_batch_size": 32,
            "budget": None,
            "max_length": 128,
        },
        versions={"totune": "0.1.0", "torch": "2.13.0", "transformers": "5.23.0"},
        machine={"processor": "Example CPU", "cores": 2, "memory_bytes": 16_500_000_000},
        command="totune compare example:rotten-tomatoes --strategies"
        " feature-extraction,last-2,fine-tuning,tf-idf --seeds 3 --out study",
        created_at="2030-01-02T03:04:05+00:00",
    )


@pytest.fixture
def regression(info: StudyInfo) -> tuple[StudyInfo, list[RunRecord]]:
    """Much the same shape with scores on an open scale beside a correlation, and a single seed."""
    study = replace(
        info,
        name="sts.tsv",
        task="regression",
        metric="pearson",
        metrics=["pearson", "mse"],
        strategies=["feature-extraction", "fine-tuning"],
        seeds=[0],
    )
    runs = [
        replace(run_of(name, 0), test={"pearson": value, "mse": error}, epochs=[], best_epoch=-1)
        for name, value, error in (
            ("feature-extraction", 0.8123, 0.7312),
            ("fine-tuning", 0.8611, 12.345),
        )
    ]
    return study, runs
