"""The settings of a study: every one declared once, with its type, default, limits and meaning.

The command line's options (`totune.cli.options`), the tables of `docs/reference.md` and the checks
follow from the declarations. This module loads neither PyTorch nor transformers.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from totune.data.examples import TaskName
from totune.data.tagging.schemes import Scheme
from totune.encoders.sources import DEFAULT_ENCODER
from totune.errors import ConfigError
from totune.registry import DeclaredSettings, did_you_mean, out_of_range, setting

if TYPE_CHECKING:
    from totune.runs.config import Candidate

MOST_SEEDS = 10_000
_TUNING = (
    *("feature-extraction", "last-2", "gradual-unfreezing", "stack-and-finetune"),
    *("fine-tuning", "adapters", "lora"),
)
DEFAULT_STRATEGIES = ("tf-idf", *_TUNING)
DEFAULT_PAIR_STRATEGIES = ("tf-idf", "sentence-embedding", *_TUNING)
DEFAULT_TAGGING_STRATEGIES = ("most-frequent-tag", *_TUNING)

OF_TASK = "task."  # before the names of a task's options


@dataclass(frozen=True)
class StudyPreset:
    """What a study does where nobody says otherwise.

    Attributes:
        seeds: how many, of one split.
        repetitions: how many, of five folds: 2 are ten runs of each strategy.
        strategies: which of the default ones are compared; all if None.
        search_trials: of each strategy's search; None for no search.
        race: whether the study is a race.
    """

    seeds: int
    repetitions: int
    strategies: tuple[str, ...] | None = None
    search_trials: int | None = None
    race: bool = False


_CHEAP = ("tf-idf", "most-frequent-tag", "feature-extraction", "last-2")
PRESETS = {
    "quick": StudyPreset(seeds=1, repetitions=1, strategies=_CHEAP),
    "standard": StudyPreset(seeds=3, repetitions=2),
    "best": StudyPreset(seeds=5, repetitions=3, search_trials=20, race=True),
}

DATA, TRAINING, STUDY, MACHINE = "Data", "Training", "Study", "Machine"
# What one run has no use for: settings of `compare` alone.
OF_STUDIES = frozenset(
    {
        *("preset", "strategies", "seeds", "budget", "race", "race_fraction", "search_trials"),
        *(
            "search_seconds",
            "search_storage",
            "keep_weights",
            "tolerance",
            "folds",
            "texts",
            "jobs",
            "executor",
        ),
        *("address", "cpus_per_run", "gpus_per_run"),
    }
)


@dataclass(frozen=True)
class Settings(DeclaredSettings):
    """Everything that can be chosen for a study; each field's declaration says what it is.

    A member of `strategies` is a name, or a mapping {strategy, head, options, label}, so that one
    strategy can stand there more than once. Names in `options` are `NAME`, `STRATEGY.NAME`,
    `LABEL.NAME` or `head.NAME`, `LABEL.head.NAME` too. `train` neither races nor searches.
    """

    preset: Literal["quick", "standard", "best"] = setting(
        "standard",
        "How much is tried, where other settings leave it open. quick: a baseline, "
        "feature-extraction and last-2 once, in minutes. standard: the defaults below. best: a "
        "search of 20 trials for each strategy (if Optuna is installed), then a race of 5 seeds or "
        "3 repetitions.",
        STUDY,
        noun="a preset",
    )
    strategies: Sequence[str | Mapping[str, Any]] | None = setting(
        None,
        "What is compared (totune list strategies, totune list baselines); if not named: tf-idf "
        "(for tagging: most-frequent-tag), sentence-embedding (for pairs), "
        "feature-extraction, last-2, gradual-unfreezing, stack-and-finetune, fine-tuning, adapters "
        "and lora.",
        STUDY,
        typed="names",
    )
    seeds: int | Sequence[int] | None = setting(
        None,
        "How many seeds, or which; of a cross-validation each is a repetition of all folds. If not "
        "named 3, or 2 repetitions; `preset` says otherwise.",
        STUDY,
        typed="seeds",
    )
    budget: float | None = setting(
        None,
        "Begin no run after this time, nor one that would surely not end in it.",
        STUDY,
        metavar="DURATION",
        typed="duration",
    )
    race: bool | None = setting(
        None,
        "Run a seed of each per round, and stop what is credibly worse or cannot be settled: the "
        "verdict of many seeds (say `seeds=5`) at a part of their cost.",
        STUDY,
    )
    race_fraction: float | None = setting(
        None,
        "Begin a race on this share of the train rows, on which more expensive and worse "
        "strategies are eliminated.",
        STUDY,
        gt=0,
        lt=1,
    )
    search_trials: int | None = setting(
        None,
        "Trials of the search on dev for each strategy's options; none are searched if not named.",
        flag="search",
        ge=1,
    )
    search_seconds: float | None = setting(
        None,
        "Seconds of training for each strategy's search, instead of a number of trials.",
        flag="search",
        gt=0,
    )
    search_storage: str | None = setting(
        None,
        "Database in which several machines share the searches; a file of the study if not named.",
        STUDY,
        metavar="URL",
    )
    keep_weights: Literal["best", "all"] = setting(
        "best",
        "Keep the trained weights of each strategy's best run (best), or of every run (all).",
        STUDY,
    )
    tolerance: float = setting(
        0.005,
        "How much worse than the best a cheaper strategy may be, in the metric's own unit.",
        STUDY,
        ge=0,
    )
    metric: str | None = setting(
        None,
        "The metric that decides. For classes: accuracy, f1, matthews, balanced-accuracy, "
        "macro-f1, micro-f1, weighted-f1, roc-auc, pr-auc, log-loss, calibration-error. For "
        "scores: pearson, spearman, mse. For tags: span-f1, span-precision, span-recall, "
        "token-accuracy, token-f1. Or module:function, your own function of y_true and y_pred "
        "(class indices or scores; larger is better unless it has greater_is_better = False). If "
        "not named, the first that suits; where one class has over 80% of the train rows "
        "balanced-accuracy, with class_weight=balanced.",
        STUDY,
    )
    tune_threshold: bool = setting(
        False,
        "Of two classes, predict the second from that probability on which scores best on dev, "
        "instead of .5. Each run has its own; the saved model keeps it.",
        STUDY,
    )
    positive_label: str | None = setting(
        None,
        "Of two classes the one that F1 is of; if not named, the second in the data's order (the "
        "hub's class names; numbers by value, words by alphabet).",
        STUDY,
        metavar="CLASS",
    )
    texts: bool = setting(
        True,
        "Show the texts of mistakes in the report, 200 characters of each; without them rows have "
        "their numbers alone.",
        STUDY,
    )
    track: Sequence[str] = setting(
        (),
        "Trackers of every run and epoch: tensorboard, mlflow, wandb. "
        "Files lie in the folder's tracking/ unless MLFLOW_TRACKING_URI or WANDB_MODE=online says "
        "otherwise.",
        STUDY,
        metavar="NAMES",
        typed="names",
    )
    text: str | None = setting(
        None,
        "Column of the text: its name, or its number counted from 1; of several, which are joined, "
        "with commas between (title,body). Detected if not named.",
        DATA,
        metavar="COLUMN",
    )
    pair: str | None = setting(
        None,
        "Column of the second text, for pairs: its name or its number.",
        DATA,
        metavar="COLUMN",
    )
    label: str | None = setting(
        None,
        "Column of the label: its name or its number; or columns of 0 and 1, one for each label, "
        "with commas between.",
        DATA,
        metavar="COLUMN",
    )
    task: TaskName | None = setting(
        None,
        "classification, multi-label (any number of labels per row), regression or tagging. "
        "Detected if not named.",
        DATA,
    )
    label_separator: str | None = setting(
        None,
        "What stands between the labels of a row that are one text, as in joy;anger; | if not "
        "named. Naming it asks for the task multi-label.",
        DATA,
        metavar="TEXT",
    )
    tag_scheme: Scheme = setting("iob2", "iob1, iob2 or iobes: what tags are converted to.", DATA)
    encoding: str | None = setting(None, "Of the data files; UTF-8 if not named.", DATA)
    where: Mapping[str, str | Sequence[str]] = setting(
        {},
        "Only rows with this value in this column are used, in every split; of several values of a "
        "column any will do.",
        DATA,
        metavar="COLUMN=VALUE",
        typed="pairs",
    )
    label_map: Mapping[str, str | None] = setting(
        {},
        "Another name for a label; none at all leaves its rows out, and no label stands for rows "
        "without one.",
        DATA,
        metavar="LABEL=NAME",
        typed="pairs",
    )
    fraction: float = setting(1.0, "Share of the train rows that is used.", DATA, gt=0, le=1)
    split_seed: int = setting(0, "Fixes the splits that are made where data has none.", DATA)
    train: str | None = setting(
        None, "File of the train split, in place of DATA.", DATA, metavar="FILE"
    )
    dev: str | None = setting(None, "File of the dev split.", DATA, metavar="FILE")
    test: str | None = setting(None, "File of the test split.", DATA, metavar="FILE")
    evaluate_on: Literal["test", "dev"] = setting(
        "test",
        "The split that scores are measured on. With dev the given dev split stands for test, "
        "train is not shrunk, and no rows choose an epoch: the last one is kept.",
        DATA,
        noun="a split to score on",
    )
    folds: int | None = setting(
        None,
        "Cross-validate in so many folds, or draw one test split (1). If not named, 5 where there "
        "is no test split and there are fewer than 2,000 rows.",
        DATA,
        ge=1,
        le=100,
    )
    test_size: float | None = setting(
        None,
        "Share of the rows that a drawn test split gets, 0.1 if not named; no folds are made then.",
        DATA,
        gt=0,
        lt=1,
    )
    group: str | None = setting(
        None,
        "Column of groups that stay together where splits or folds are drawn (an author, a "
        "patient): its name or its number.",
        DATA,
        metavar="COLUMN",
    )
    model: str = setting(
        DEFAULT_ENCODER, "Encoder: a hub id, a local folder, or an alias.", TRAINING
    )
    head: str = setting("linear", "The task network on top.", TRAINING)
    options: Mapping[str, Any] = setting(
        {},
        "Options of strategies, of the head and of the task, as NAME, STRATEGY.NAME, "
        "LABEL.NAME, head.NAME or task.NAME.",
        flag="set",
    )
    per_device_train_batch_size: int | None = setting(
        None,
        "Rows per step and device; if not named 32, or 16 where there are few train rows.",
        TRAINING,
        ge=1,
    )
    tokens_per_batch: int | None = setting(
        None,
        "Word pieces per step (padding included) instead of a number of rows.",
        TRAINING,
        ge=1,
    )
    max_length: int = setting(
        256, "Texts are cut after this many word pieces.", TRAINING, unit="word pieces", ge=8
    )
    max_grad_norm: float = setting(1.0, "Gradients are clipped to this norm.", TRAINING, gt=0)
    bias_correction: bool = setting(
        True,
        "Whether Adam corrects its moments for starting at zero. BertAdam, with which BERT was "
        "first fine-tuned, does not.",
        TRAINING,
    )
    precision: Literal["auto", "bf16", "fp32"] = setting(
        "auto", "auto, bf16 or fp32.", MACHINE, noun="a precision"
    )
    cache_dir: Path | None = setting(
        None, "Where frozen features are kept.", MACHINE, metavar="FOLDER"
    )
    cache_budget: int | None = setting(
        None,
        "What they may take; a quarter of the free disk if not named.",
        MACHINE,
        typed="size",
    )
    jobs: int = setting(
        1,
        "Runs at once, each in a process with its share of the cores or GPUs. The last bits of "
        "what trains depend on the number of threads: they are those of one process with as many.",
        MACHINE,
        metavar="N",
        ge=1,
    )
    executor: Literal["local", "ray"] = setting(
        "local", "Where runs take place: local, or ray (a cluster).", MACHINE
    )
    address: str | None = setting(
        None,
        "Ray cluster, as auto or HOST:PORT; one is started on this machine if not named.",
        MACHINE,
    )
    cpus_per_run: float | None = setting(
        None,
        "CPUs that a run reserves on the cluster, and its threads; this machine's cores by `jobs` "
        "if not named.",
        MACHINE,
        gt=0,
    )
    gpus_per_run: float | None = setting(
        None,
        "GPUs that a run reserves on the cluster, 0.5 to share one; if not named 1, where there "
        "are any.",
        MACHINE,
        ge=0,
    )

    @property
    def seed_list(self) -> list[int]:
        """The seeds: what was named, or the preset's of one split or of `folds`."""
        seeds, preset = self.seeds, self._preset
        if seeds is None:
            seeds = preset.repetitions if (self.folds or 1) > 1 else preset.seeds
        return list(range(seeds)) if isinstance(seeds, int) else list(seeds)

    def source(self, data: Any) -> Any:
        """The data as `load_dataset` takes it.

        Args:
            data: as it was named, the train file where files of other splits are; or None.

        Raises:
            ConfigError: if no data was named, or train twice.
        """
        files = {"train": self.train, "dev": self.dev, "test": self.test}
        named = {name: file for name, file in files.items() if file is not None}
        if data is None and self.train is None:
            raise ConfigError("No data was named: give DATA, or the train file with `train`.")
        if data is None:
            return named
        if not named:
            return data
        shown = data if isinstance(data, str | Path) else "data in memory"
        if self.train is not None:
            raise ConfigError(
                f"The train rows are named twice, as {shown} and with `train={self.train!r}`. "
                "Leave out one of them."
            )
        if not isinstance(data, str | Path) or not Path(data).expanduser().is_file():
            more = " and ".join(f"`{name}`" for name in named)
            raise ConfigError(
                f"{more} can be added to a train file, and {shown} is none. Name the train file "
                "with `train` instead."
            )
        return {"train": data, **named}

    def reading(self, may_fold: bool = False) -> dict[str, Any]:
        """How `load_dataset` is to read the data.

        Args:
            may_fold: whether few rows are cross-validated where the settings leave that open.
        """
        names = (
            *("text", "pair", "label", "task", "label_separator", "tag_scheme", "encoding"),
            *("where", "label_map", "fraction", "split_seed", "group", "test_size", "evaluate_on"),
        )
        one_split = self.test_size is not None or self.race_fraction is not None or not may_fold
        folds = 1 if self.folds is None and one_split else self.folds
        return {name: getattr(self, name) for name in names} | {"folds": folds}

    @property
    def searches(self) -> bool:
        """Whether options are searched before the study's runs."""
        return self.search_trials is not None or self.search_seconds is not None

    @property
    def races(self) -> bool:
        """Whether the study is a race: as was said, or as the preset has it where seeds allow."""
        if self.race is None:
            return self._preset.race and len(self.seed_list) > 1
        return self.race

    @property
    def _preset(self) -> StudyPreset:
        return PRESETS.get(self.preset, PRESETS["standard"])  # `faults` says what is unknown

    @property
    def task_options(self) -> dict[str, Any]:
        """Those of `options` that are of the task, by their own names."""
        named = self.options.items()
        return {k.removeprefix(OF_TASK): v for k, v in named if k.startswith(OF_TASK)}

    @property
    def member_options(self) -> dict[str, Any]:
        """Those of `options` that are of strategies, baselines and heads."""
        return {k: v for k, v in self.options.items() if not k.startswith(OF_TASK)}

    def compared(self, task: TaskName | None, pairs: bool) -> Sequence[str | Mapping[str, Any]]:
        """What is compared: what was named, or else what suits the data."""
        if self.strategies is not None:
            return self.strategies
        usual = DEFAULT_PAIR_STRATEGIES if pairs else DEFAULT_STRATEGIES
        if task == "tagging":
            usual = DEFAULT_TAGGING_STRATEGIES
        chosen = self._preset.strategies
        return [name for name in usual if chosen is None or name in chosen]

    def with_preset(self) -> tuple["Settings", str]:
        """With the search and the race of the preset where they are open and possible.

        Returns:
            The settings, and why there is no search where the preset has one, or "".
        """
        preset, trials, without = self._preset, self.search_trials, ""
        if preset.search_trials is not None and not self.searches:
            tried = replace(self, search_trials=preset.search_trials)
            faults = [
                fault for fault in tried.contradictions() if fault not in self.contradictions()
            ]
            if int(os.environ.get("WORLD_SIZE", "1")) > 1:
                faults.append("A search trains one trial in one process.")
            without = " ".join(faults)
            trials = trials if faults else preset.search_trials
        return replace(self, search_trials=trials, race=self.races), without

    def candidates(self, task: TaskName | None = None, pairs: bool = False) -> "list[Candidate]":
        """What is compared, with options; finds every fault before anything is loaded.

        Args:
            task: decides what is compared where nothing was named; if None, the task that was.
            pairs: whether rows have two texts, which decides likewise.

        Raises:
            ConfigError: with all faults.
        """
        from totune.runs.config import Candidate, assign_options, check_candidates

        faults = [*self.faults(), *self._task_option_faults(task or self.task)]
        found: list[Candidate] = []
        try:
            compared = self.compared(task or self.task, pairs)
            found = [Candidate.parse(spec, self.head) for spec in compared]
            check_candidates(found)
            found = assign_options(found, self.member_options)
            check_candidates(found)
        except ConfigError as error:
            faults += error.faults
        if faults:
            raise ConfigError(faults)
        return found

    def _task_option_faults(self, task: TaskName | None) -> list[str]:
        """What is no option of the task; of any task as long as that is not known."""
        from totune.tasks.base import TASKS

        tasks = [task] if task else TASKS.names()
        known = [f"{OF_TASK}{option}" for name in tasks for option in TASKS.get(name).options]
        which = f"the task {task} has" if task else "no task has"
        found = []
        for name in self.task_options:
            if f"{OF_TASK}{name}" not in known:
                takes = did_you_mean(f"{OF_TASK}{name}", set(known)) if known else "It takes none."
                no = "no" if task else "an"
                found.append(f"{which} {no} option {OF_TASK + name!r}. {takes}")
        return found

    def contradictions(self) -> list[str]:
        faults = []
        if not self._has_seeds():
            sane = f"at least one, at most {MOST_SEEDS:,}, none negative, none twice"
            faults.append(out_of_range("seeds", self.seeds, sane))
        if self.strategies is not None and not self.strategies:
            faults.append(out_of_range("strategies", self.strategies, "at least one name"))
        return [
            *faults,
            *self._split_faults(),
            *self._search_faults(),
            *self._race_faults(),
            *self._executor_faults(),
        ]

    def _split_faults(self) -> list[str]:
        several = self.folds is not None and self.folds > 1
        given = {
            name: getattr(self, name)
            for name in ("test_size", "test")
            if getattr(self, name) is not None
        }
        if self.evaluate_on == "test":
            if not several:
                return []
            return [
                f"folds={self.folds} tests on every row of train, so {name}={value!r} has nothing "
                "to do. Leave out one of them."
                for name, value in given.items()
            ]
        if several:
            given["folds"] = self.folds
        faults = [
            f"evaluate_on='dev' tests on the dev split, so {name}={value!r} has nothing to do. "
            "Leave out one of them."
            for name, value in given.items()
        ]
        if self.searches:
            faults.append(
                "A search chooses options on dev, and evaluate_on='dev' holds out no rows for "
                "that. Leave out one of them."
            )
        return faults

    def _has_seeds(self) -> bool:
        if isinstance(self.seeds, int) and self.seeds > MOST_SEEDS:
            return False  # their list alone would take all memory
        seeds = self.seed_list
        return 0 < len(seeds) <= MOST_SEEDS and min(seeds) >= 0 and len(set(seeds)) == len(seeds)

    def _search_faults(self) -> list[str]:
        faults = []
        if self.search_trials is not None and self.search_seconds is not None:
            faults.append(
                "`search_trials` and `search_seconds` are one budget or the other, not both."
            )
        searches = self.searches or self._preset.search_trials is not None
        if self.search_storage is not None and not searches:
            faults.append("`search_storage` is of no use without a search: add `search_trials=20`.")
        if self.searches and find_spec("optuna") is None:
            faults.append("A search needs Optuna: pip install 'totune[search]'.")
        return faults

    def _race_faults(self) -> list[str]:
        faults = []
        if self.race_fraction is not None and (self.folds or 1) > 1:
            faults.append(
                f"race_fraction={self.race_fraction:g} begins on a share of one train split, and "
                f"there are {self.folds} folds: leave it out, or add `folds=1`."
            )
        if self.race_fraction is not None and not self.races:
            faults.append("`race_fraction` is of no use without a race: add `race=True`.")
        if self.race and self._has_seeds() and len(self.seed_list) < 2:
            faults.append("A race needs at least 2 seeds: add `seeds=5`.")
        return faults

    def _executor_faults(self) -> list[str]:
        faults = []
        spread = self.executor == "ray" or self.jobs > 1
        if spread and os.environ.get("WORLD_SIZE", "1") not in ("", "0", "1"):
            faults.append(
                "A launcher has started several processes, which share each run: leave out `jobs` "
                "and `executor`, which give each run to one process, or the launcher."
            )
        if self.executor == "ray":
            return faults + self._ray_faults()
        given = ("address", "cpus_per_run", "gpus_per_run")
        unused = [f"`{name}`" for name in given if getattr(self, name) is not None]
        if unused:
            faults.append(
                f"{', '.join(unused)}: of use on a Ray cluster alone; add `executor='ray'`."
            )
        return faults

    def _ray_faults(self) -> list[str]:
        faults = []
        if self.address is not None and self.address.startswith("ray://"):
            faults.append(
                f"address={self.address!r} is of a client that is no part of the cluster: run "
                "totune on one of its machines, with `address='auto'`."
            )
        own_file = self.search_storage is None or self.search_storage.startswith("sqlite")
        if self.searches and own_file:
            faults.append(
                "A search on a Ray cluster needs a database that all its machines can reach: name "
                "one with `search_storage`, as postgresql+psycopg://user:password@host/database."
            )
        return faults
