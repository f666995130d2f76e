"""The typed keywords of the Python calls; written by `make docs` from the declarations.

A change belongs there (`runs/settings.py`, `extraction/settings.py`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from totune.baselines.base import Baseline
from totune.heads.base import Head
from totune.runs.config import Candidate
from totune.strategies.base import Strategy


class TrainKeywords(TypedDict, total=False):
    """What `totune.train` takes."""

    metric: str | None
    """The metric that decides. For classes: accuracy, f1, matthews, balanced-accuracy, macro-f1,
    micro-f1, weighted-f1, roc-auc, pr-auc, log-loss, calibration-error. For scores: pearson,
    spearman, mse. For tags: span-f1, span-precision, span-recall, token-accuracy, token-f1. Or
    module:function, your own function of y_true and y_pred (class indices or scores; larger is
    better unless it has greater_is_better = False). If not named, the first that suits; where one
    class has over 80% of the train rows balanced-accuracy, with class_weight=balanced.
    """

    tune_threshold: bool
    """Of two classes, predict the second from that probability on which scores best on dev, instead
    of .5. Each run has its own; the saved model keeps it. Default: False.
    """

    positive_label: str | None
    """Of two classes the one that F1 is of; if not named, the second in the data's order (the hub's
    class names; numbers by value, words by alphabet).
    """

    track: Sequence[str]
    """Trackers of every run and epoch: tensorboard, mlflow, wandb. Files lie in the folder's
    tracking/ unless MLFLOW_TRACKING_URI or WANDB_MODE=online says otherwise.
    """

    text: str | None
    """Column of the text: its name, or its number counted from 1; of several, which are joined,
    with commas between (title,body). Detected if not named.
    """

    pair: str | None
    """Column of the second text, for pairs: its name or its number."""

    label: str | None
    """Column of the label: its name or its number; or columns of 0 and 1, one for each label, with
    commas between.
    """

    task: Literal["classification", "multi-label", "regression", "tagging"] | None
    """classification, multi-label (any number of labels per row), regression or tagging. Detected
    if not named.
    """

    label_separator: str | None
    """What stands between the labels of a row that are one text, as in joy;anger; | if not named.
    Naming it asks for the task multi-label.
    """

    tag_scheme: Literal["iob1", "iob2", "iobes"]
    """iob1, iob2 or iobes: what tags are converted to. Default: 'iob2'."""

    encoding: str | None
    """Of the data files; UTF-8 if not named."""

    where: Mapping[str, str | Sequence[str]]
    """Only rows with this value in this column are used, in every split; of several values of a
    column any will do.
    """

    label_map: Mapping[str, str | None]
    """Another name for a label; none at all leaves its rows out, and no label stands for rows
    without one.
    """

    fraction: float
    """Share of the train rows that is used. Must be above 0 and at most 1. Default: 1.0."""

    split_seed: int
    """Fixes the splits that are made where data has none. Default: 0."""

    train: str | None
    """File of the train split, in place of DATA."""

    dev: str | None
    """File of the dev split."""

    test: str | None
    """File of the test split."""

    evaluate_on: Literal["test", "dev"]
    """The split that scores are measured on. With dev the given dev split stands for test, train is
    not shrunk, and no rows choose an epoch: the last one is kept. Default: 'test'.
    """

    test_size: float | None
    """Share of the rows that a drawn test split gets, 0.1 if not named; no folds are made then.
    Must be above 0 and below 1.
    """

    group: str | None
    """Column of groups that stay together where splits or folds are drawn (an author, a patient):
    its name or its number.
    """

    model: str
    """Encoder: a hub id, a local folder, or an alias. Default: 'minilm'."""

    head: str | Head
    """The task network on top. Default: 'linear'."""

    options: Mapping[str, Any]
    """Options of strategies, of the head and of the task, as NAME, STRATEGY.NAME, LABEL.NAME,
    head.NAME or task.NAME.
    """

    per_device_train_batch_size: int | None
    """Rows per step and device; if not named 32, or 16 where there are few train rows. Must be at
    least 1.
    """

    tokens_per_batch: int | None
    """Word pieces per step (padding included) instead of a number of rows. Must be at least 1."""

    max_length: int
    """Texts are cut after this many word pieces. Must be at least 8 word pieces. Default: 256."""

    max_grad_norm: float
    """Gradients are clipped to this norm. Must be above 0. Default: 1.0."""

    bias_correction: bool
    """Whether Adam corrects its moments for starting at zero. BertAdam, with which BERT was first
    fine-tuned, does not. Default: True.
    """

    precision: Literal["auto", "bf16", "fp32"]
    """auto, bf16 or fp32. Default: 'auto'."""

    cache_dir: str | Path | None
    """Where frozen features are kept."""

    cache_budget: int | None
    """What they may take; a quarter of the free disk if not named."""


class CompareKeywords(TrainKeywords, total=False):
    """What `totune.compare` takes."""

    preset: Literal["quick", "standard", "best"]
    """How much is tried, where other settings leave it open. quick: a baseline, feature-extraction
    and last-2 once, in minutes. standard: the defaults below. best: a search of 20 trials for each
    strategy (if Optuna is installed), then a race of 5 seeds or 3 repetitions. Default: 'standard'.
    """

    strategies: Sequence[str | Mapping[str, Any] | Strategy | Baseline | Candidate] | None
    """What is compared (totune list strategies, totune list baselines); if not named: tf-idf (for
    tagging: most-frequent-tag), sentence-embedding (for pairs), feature-extraction, last-2,
    gradual-unfreezing, stack-and-finetune, fine-tuning, adapters and lora.
    """

    seeds: int | Sequence[int] | None
    """How many seeds, or which; of a cross-validation each is a repetition of all folds. If not
    named 3, or 2 repetitions; `preset` says otherwise.
    """

    budget: float | None
    """Begin no run after this time, nor one that would surely not end in it."""

    race: bool | None
    """Run a seed of each per round, and stop what is credibly worse or cannot be settled: the
    verdict of many seeds (say `seeds=5`) at a part of their cost.
    """

    race_fraction: float | None
    """Begin a race on this share of the train rows, on which more expensive and worse strategies
    are eliminated. Must be above 0 and below 1.
    """

    search_trials: int | None
    """Trials of the search on dev for each strategy's options; none are searched if not named. Must
    be at least 1.
    """

    search_seconds: float | None
    """Seconds of training for each strategy's search, instead of a number of trials. Must be above
    0.
    """

    search_storage: str | None
    """Database in which several machines share the searches; a file of the study if not named."""

    keep_weights: Literal["best", "all"]
    """Keep the trained weights of each strategy's best run (best), or of every run (all). Default:
    'best'.
    """

    tolerance: float
    """How much worse than the best a cheaper strategy may be, in the metric's own unit. Must be at
    least 0. Default: 0.005.
    """

    texts: bool
    """Show the texts of mistakes in the report, 200 characters of each; without them rows have
    their numbers alone. Default: True.
    """

    folds: int | None
    """Cross-validate in so many folds, or draw one test split (1). If not named, 5 where there is
    no test split and there are fewer than 2,000 rows. Must be at least 1 and at most 100.
    """

    jobs: int
    """Runs at once, each in a process with its share of the cores or GPUs. The last bits of what
    trains depend on the number of threads: they are those of one process with as many. Must be at
    least 1. Default: 1.
    """

    executor: Literal["local", "ray"]
    """Where runs take place: local, or ray (a cluster). Default: 'local'."""

    address: str | None
    """Ray cluster, as auto or HOST:PORT; one is started on this machine if not named."""

    cpus_per_run: float | None
    """CPUs that a run reserves on the cluster, and its threads; this machine's cores by `jobs` if
    not named. Must be above 0.
    """

    gpus_per_run: float | None
    """GPUs that a run reserves on the cluster, 0.5 to share one; if not named 1, where there are
    any. Must be at least 0.
    """


class ExtractionKeywords(TypedDict, total=False):
    """What `totune.extract_features` takes."""

    model: str
    """Encoder: a hub id, a local folder, or an alias. Default: 'minilm'."""

    layers: str | Sequence[int]
    """top, all, or numbers of layers; 0 is the embeddings. Default: 'top'."""

    pooling: Literal["mean", "cls", "max", "none"]
    """Over a text's tokens: mean, cls (the first token), max, or none: a vector per token. Default:
    'mean'.
    """

    max_length: int
    """Texts are cut after this many word pieces. Must be at least 8 word pieces. Default: 256."""

    dtype: Literal["float32", "float16"]
    """float32 or float16. Default: 'float32'."""

    text: str | None
    """Column of the text: its name, or its number counted from 1; of several, which are joined,
    with commas between (title,body). Detected if not named.
    """

    pair: str | None
    """Column of the second text, for pairs: its name or its number."""

    encoding: str | None
    """Of the data files; UTF-8 if not named."""

    format: Literal["safetensors", "arrow", "parquet"]
    """safetensors (tensor 'vectors'; of every token also 'offsets', where each row begins), arrow
    or parquet (columns 'row' and 'vector', of several layers 'vector.0', ...). Default:
    'safetensors'.
    """

    keep: Sequence[str]
    """Further columns of the data for arrow or parquet; kept as text."""

    rows_per_shard: int | None
    """Memory grows with it. If not named 10,000, or fewer where vectors would take over 64 MB. Must
    be at least 1.
    """

    precision: Literal["auto", "bf16", "fp32"]
    """auto, bf16 or fp32. Default: 'auto'."""

    executor: Literal["local", "ray"]
    """local, or ray: a Ray cluster, on which data, encoder and `out` have the same path on every
    machine. Default: 'local'.
    """

    address: str | None
    """Of the Ray cluster; RAY_ADDRESS if not named, or else one started on this machine."""
