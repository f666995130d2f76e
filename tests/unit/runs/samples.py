"""Records, configurations and contexts in few words."""

from types import SimpleNamespace
from typing import Any, cast

from totune.baselines.base import BASELINES
from totune.progress import Progress
from totune.runs.config import RunConfig
from totune.runs.context import Context
from totune.runs.records import Costs, EpochRecord, RunRecord, StudyInfo
from totune.runs.run import Run
from totune.training.devices import Devices
from totune.training.trainer import TrainingSettings

COSTS = Costs(
    trainable_parameters=10,
    total_parameters=100,
    train_seconds=1.5,
    feature_seconds=0.25,
    examples_per_second=80.0,
    peak_memory_bytes=1000,
    storage_bytes=40,
    latency_milliseconds=0.5,
)


def config_of(label: str = "tf-idf", seed: int = 0, **facts: Any) -> RunConfig:
    made = {
        "strategy": {"name": label, "options": {}},
        "head": {},
        "data": "d1",
        "task": {"name": "classification", "labels": ["a", "b"]},
        "model": "",
        "settings": {},
    }
    return RunConfig(label=label, seed=seed, **(made | facts))


def record_of(label: str = "tf-idf", seed: int = 0, dev: float = 0.5, **facts: Any) -> RunRecord:
    config = config_of(label, seed)
    made = {
        "status": "finished",
        "precision": "fp32",
        "epochs": [EpochRecord("all", 1, {"loss": 0.7}, {"accuracy": dev, "loss": 0.6}, 0.1)],
        "dev": {"accuracy": dev, "mse": dev},
        "test": {"accuracy": dev},
        "costs": COSTS,
    }
    return RunRecord(
        fingerprint=config.fingerprint,
        strategy=label,
        seed=seed,
        config=config.to_json(),
        seeds=config.seeds,
        **(made | facts),
    )


def failed(label: str = "tf-idf", seed: int = 0) -> RunRecord:
    return record_of(label, seed, status="failed", dev=0.0, costs=None, error="it broke")


def info_of(**facts: Any) -> StudyInfo:
    made: dict[str, Any] = {
        "name": "reviews",
        "task": "classification",
        "data": {"digest": "d1"},
        "model": {"name": "tiny", "fingerprint": "m1"},
        "metric": "accuracy",
        "metrics": ["accuracy"],
        "strategies": ["tf-idf"],
        "seeds": [0],
        "settings": {"tolerance": 0.005},
        "versions": {},
        "machine": {},
    }
    return StudyInfo(**(made | facts))


def context_of(progress: Progress) -> Context:
    """As much of a context as `execute` itself looks at."""
    settings = TrainingSettings("accuracy")
    facts = {"settings": settings, "devices": Devices(), "progress": progress}
    return cast(Context, SimpleNamespace(**facts))


def runs_of(*names: tuple[str, int]) -> list[Run]:
    """Configurations by label and seed; what would be run does not matter."""
    return [Run(config_of(label, seed), BASELINES.create("tf-idf")) for label, seed in names]
