"""From a study's settings to what its runs share: data, task, encoder, pieces, cache."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from totune.data.examples import TaskName
from totune.data.sources import load_dataset
from totune.data.tagging.schemes import Scheme
from totune.encoders.loading import load_encoder
from totune.encoders.sources import DEFAULT_ENCODER
from totune.errors import ConfigError
from totune.features import FeatureCache
from totune.machine import choose_precision, keep_freed_memory
from totune.progress import Progress
from totune.registry import did_you_mean
from totune.runs.config import Candidate, assign_options, check_candidates
from totune.runs.context import Context
from totune.strategies.defaults import batch_size
from totune.tasks.base import TASKS, Task
from totune.training.devices import Devices
from totune.training.trainer import TrainingSettings

_TUNING = (
    *("feature-extraction", "last-2", "gradual-unfreezing", "stack-and-finetune"),
    *("fine-tuning", "adapters", "lora"),
)
DEFAULT_STRATEGIES = ("tf-idf", *_TUNING)
DEFAULT_PAIR_STRATEGIES = ("tf-idf", "sentence-embedding", *_TUNING)
DEFAULT_TAGGING_STRATEGIES = ("most-frequent-tag", *_TUNING)


@dataclass(frozen=True)
class Settings:
    """Everything that can be said about a study; the command line's options have these names.

    Attributes:
        model: hub id, local folder, or the alias `minilm`.
        strategies: what is compared: names, or mappings {strategy, options, label}; if None, what
            suits the task.
        seeds: how many seeds (0, 1, ...), or which ones.
        head: the task network on top.
        options: `NAME` or `STRATEGY.NAME` -> value, for options of strategies and `head.NAME`.
        text, pair, label: columns; detected if None.
        task: "classification", "regression" or "tagging"; detected if None.
        tag_scheme: which scheme tags are converted to before anything is trained on them.
        encoding: of the data files; UTF-8 if None.
        fraction: share of the train rows that is used, stratified.
        split_seed: fixes the splits that are made where the data has none.
        metric: the metric that decides; the task's first if None.
        positive_label: of two classes the one that F1 is of; if None, the second in the order of
            the data (the hub's class names; numbers by value, words by alphabet).
        max_length: inputs are cut after this many word pieces (at most the encoder's own limit).
        per_device_train_batch_size: rows per optimizer step and process; if None, 32, or 16 where
            there are few train rows.
        tokens_per_batch: word pieces per optimizer step (padding included) instead of rows; None
            for a fixed number of rows.
        max_grad_norm: gradient clipping.
        precision: "auto", "bf16" or "fp32".
        tolerance: how much worse than the best a cheaper strategy may be, in the metric's own unit
            (0.005 is half a point of accuracy).
        keep_weights: whether a study keeps the trained weights of each strategy's `best` run, or of
            `all`, for analyses.
        budget: seconds after which no further run is begun; None for no limit.
        race: whether strategies run in rounds, a seed each, and leave when they are credibly worse
            or the seeds left would not settle them; `train` and `reproduce` do not race.
        race_fraction: share of the train rows of a first round with two seeds, in which a dearer
            strategy may already leave; None for no such round.
        search_trials: how many trials each strategy's options are searched with, on dev; the best
            then run over all seeds. None searches nothing, as do `train` and `reproduce`.
        search_seconds: seconds of training in place of a number of trials.
        search_storage: URL of a database in which several machines share the searches; None for a
            file in the study's folder.
        track: trackers that are told of every run and epoch: "tensorboard", "mlflow", "wandb". They
            keep their files in the study's folder unless their own environment variables
            (MLFLOW_TRACKING_URI, WANDB_MODE) say otherwise. A search's trials are not told.
        cache_dir: where frozen features are kept; by workers of a cluster, too, if it is named.
        cache_budget: bytes they may take; a quarter of the free disk if None.
        jobs: how many runs at once, each in a process of this machine with its share of the cores
            or GPUs. The last bits of what trains depend on the number of threads; they are those
            of one process with as many.
        executor: where runs take place: "local", or "ray" for a Ray cluster.
        address: of the Ray cluster ("auto" is the one of this machine); if None, $RAY_ADDRESS, or
            else one is started here for the study.
        cpus_per_run: processors of the cluster that a run reserves, as many threads it has; this
            machine's cores by `jobs` if None.
        gpus_per_run: GPUs that a run reserves; if None, one where the cluster has any.
    """

    model: str = DEFAULT_ENCODER
    strategies: Sequence[str | Mapping[str, Any]] | None = None
    seeds: int | Sequence[int] = 3
    head: str = "linear"
    options: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    pair: str | None = None
    label: str | None = None
    task: TaskName | None = None
    tag_scheme: Scheme = "iob2"
    encoding: str | None = None
    fraction: float = 1.0
    split_seed: int = 0
    metric: str | None = None
    positive_label: str | None = None
    max_length: int = 256
    per_device_train_batch_size: int | None = None
    tokens_per_batch: int | None = None
    max_grad_norm: float = 1.0
    precision: str = "auto"
    tolerance: float = 0.005
    keep_weights: Literal["best", "all"] = "best"
    budget: float | None = None
    race: bool = False
    race_fraction: float | None = None
    search_trials: int | None = None
    search_seconds: float | None = None
    search_storage: str | None = None
    track: Sequence[str] = ()
    cache_dir: Path | None = None
    cache_budget: int | None = None
    jobs: int = 1
    executor: Literal["local", "ray"] = "local"
    address: str | None = None
    cpus_per_run: float | None = None
    gpus_per_run: float | None = None

    @property
    def seed_list(self) -> list[int]:
        return list(range(self.seeds)) if isinstance(self.seeds, int) else list(self.seeds)

    @property
    def searches(self) -> bool:
        """Whether options are searched before the study's runs."""
        return self.search_trials is not None or self.search_seconds is not None

    def members(self, task: TaskName | None, pairs: bool) -> Sequence[str | Mapping[str, Any]]:
        """What is compared, or what suits the data where nothing was named."""
        if self.strategies is not None:
            return self.strategies
        if task == "tagging":
            return DEFAULT_TAGGING_STRATEGIES
        return DEFAULT_PAIR_STRATEGIES if pairs else DEFAULT_STRATEGIES

    def check(self, task: TaskName | None = None, pairs: bool = False) -> list[Candidate]:
        """The members with their options; finds every fault before anything is loaded.

        Args:
            task: decides what is compared where nothing was named; if None, the task that was.
            pairs: whether rows have two texts, which decides likewise.

        Raises:
            ConfigError: with all faults.
        """
        faults = self._faults()
        members: list[Candidate] = []
        try:
            choose_precision(self.precision)
        except ConfigError as error:
            faults += error.faults
        try:
            members = [
                Candidate.parse(spec, self.head) for spec in self.members(task or self.task, pairs)
            ]
            check_candidates(members)
            members = assign_options(members, self.options)
            check_candidates(members)
        except ConfigError as error:
            faults += error.faults
        except TypeError as error:
            faults.append(f"a member of strategies is not {{strategy, options, label}}: {error}.")
        if faults:
            raise ConfigError(faults)
        return members

    def _has_seeds(self) -> bool:
        seeds = self.seed_list
        return bool(seeds) and min(seeds) >= 0 and len(set(seeds)) == len(seeds)

    def _faults(self) -> list[str]:
        limits = {
            "fraction": (0 < self.fraction <= 1, "above 0 and at most 1"),
            "seeds": (self._has_seeds(), "at least one, none negative, none twice"),
            "max_length": (self.max_length >= 8, "at least 8 word pieces"),
            "per_device_train_batch_size": (
                self.per_device_train_batch_size is None or self.per_device_train_batch_size >= 1,
                "at least 1",
            ),
            "tokens_per_batch": (
                self.tokens_per_batch is None or self.tokens_per_batch >= 1,
                "at least 1",
            ),
            "max_grad_norm": (self.max_grad_norm > 0, "above 0"),
            "tolerance": (self.tolerance >= 0, "at least 0"),
            "strategies": (
                self.strategies is None or bool(self.strategies),
                "at least one name",
            ),
            "search_trials": (
                self.search_trials is None or self.search_trials >= 1,
                "at least 1",
            ),
            "search_seconds": (
                self.search_seconds is None or self.search_seconds > 0,
                "above 0",
            ),
            "jobs": (self.jobs >= 1, "at least 1"),
            "cpus_per_run": (self.cpus_per_run is None or self.cpus_per_run > 0, "above 0"),
            "gpus_per_run": (self.gpus_per_run is None or self.gpus_per_run >= 0, "at least 0"),
        }
        faults = [
            f"{name}={getattr(self, name)!r} is out of range: it must be {limit}."
            for name, (holds, limit) in limits.items()
            if not holds
        ]
        return faults + self._search_faults() + self._race_faults() + self._executor_faults()

    def _executor_faults(self) -> list[str]:
        faults = []
        spread = self.executor == "ray" or self.jobs > 1
        if spread and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            faults.append(
                "A launcher has started several processes, which share each run: leave out --jobs "
                "and --executor, which give each run to one process, or the launcher."
            )
        if self.executor == "ray":
            return faults + self._ray_faults()
        given = ("address", "cpus_per_run", "gpus_per_run")
        unused = [name for name in given if getattr(self, name) is not None]
        if unused:
            faults.append(
                f"{', '.join(unused)}: of use on a Ray cluster alone; add --executor ray."
            )
        return faults

    def _ray_faults(self) -> list[str]:
        faults = []
        if self.address is not None and self.address.startswith("ray://"):
            faults.append(
                f"address={self.address!r} is of a client that is no part of the cluster: run "
                "totune on one of its machines, with --address auto."
            )
        own_file = self.search_storage is None or self.search_storage.startswith("sqlite")
        if self.searches and own_file:
            faults.append(
                "A search on a Ray cluster needs a database that all its machines can reach: name "
                "one with --search-storage, as postgresql+psycopg://user:password@host/database."
            )
        return faults

    def _race_faults(self) -> list[str]:
        faults = []
        share = self.race_fraction
        if share is not None and not 0 < share < 1:
            faults.append(
                f"race_fraction={share!r} is out of range: it must be above 0 and below 1."
            )
        if share is not None and not self.race:
            faults.append("race_fraction is of no use without a race: add --race.")
        if self.race and len(self.seed_list) < 2:
            faults.append("A race needs at least 2 seeds: add --seeds 5.")
        return faults

    def _search_faults(self) -> list[str]:
        faults = []
        if self.search_trials is not None and self.search_seconds is not None:
            faults.append("search_trials and search_seconds are one budget or the other, not both.")
        if self.search_storage is not None and not self.searches:
            faults.append("search_storage is of no use without a search: add --search 20.")
        if self.searches and find_spec("optuna") is None:
            faults.append("A search needs Optuna: pip install 'totune[search]'.")
        return faults


def prepare(data: Any, settings: Settings, progress: Progress) -> Context:
    """Loads and tokenises everything that the runs of a study share."""
    keep_freed_memory()
    devices = Devices()
    progress = progress if devices.is_main else Progress()
    dataset = load_dataset(
        data,
        text=settings.text,
        pair=settings.pair,
        label=settings.label,
        task=settings.task,
        tag_scheme=settings.tag_scheme,
        encoding=settings.encoding,
        fraction=settings.fraction,
        split_seed=settings.split_seed,
    )
    for note in dataset.notes:
        progress.say(note)
    for warning in dataset.warnings:
        progress.warn(warning)
    task = TASKS.get(dataset.columns.task).from_examples(dataset.train, dataset.classes)
    if settings.positive_label is not None:
        task = task.with_positive(settings.positive_label)
    metric = check_metric(settings.metric, task)
    loaded = load_encoder(settings.model)
    progress.say(loaded.note)
    loaded.encoder.to(devices.device)
    max_length = min(settings.max_length, loaded.encoder.max_length)
    rows_per_step = settings.per_device_train_batch_size or batch_size(len(dataset.train))
    return Context(
        dataset=dataset,
        task=task,
        loaded=loaded,
        cache=FeatureCache(settings.cache_dir, settings.cache_budget, progress),
        settings=TrainingSettings(
            metric,
            rows_per_step * devices.world,
            settings.max_grad_norm,
            settings.tokens_per_batch,
        ),
        precision=choose_precision(settings.precision, devices.device),
        max_length=max_length,
        devices=devices,
        progress=progress,
        split_seed=settings.split_seed,
        batch_by_rule=settings.per_device_train_batch_size is None,
    )


def check_metric(name: str | None, task: Task) -> str:
    """The metric that decides: `name`, or the task's first.

    Raises:
        ConfigError: if the task has no such metric.
    """
    if name is None:
        return task.metrics[0]
    if name not in task.metrics:
        hint = did_you_mean(name, task.metrics)
        raise ConfigError(f"metric {name!r} is none of the task {task.name}. {hint}")
    return name
