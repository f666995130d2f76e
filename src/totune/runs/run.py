"""A run: one strategy or baseline under one seed, from its configuration to its record."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from totune.baselines.base import Baseline, FittedBaseline
from totune.data.examples import ALL_ROWS, Examples
from totune.errors import TotuneError
from totune.inputs.encoded import EncodingOptions, frame
from totune.machine import peak_memory, reset_peak_memory
from totune.metrics import METRICS
from totune.model import Model
from totune.registry import options_of
from totune.runs.config import Candidate, RunConfig
from totune.runs.context import Context
from totune.runs.model_spec import ModelSpec, head_of
from totune.runs.records import Costs, RunRecord
from totune.runs.store import Store
from totune.strategies.base import Strategy
from totune.strategies.coverage import trained_names
from totune.strategies.phases import Phase
from totune.text import hide_secrets
from totune.training.history import History
from totune.training.inputs import Split, open_source, predict
from totune.training.trainer import Trainer

LATENCY_ROWS = 32  # enough for a mean; more would be a large part of a short study
PREDICTIONS = "predictions.npz"
TRAINED = "trained.safetensors"


@dataclass(frozen=True)
class Run:
    """What one run is, as plain data that can be sent to another process.

    What it shares with the other runs of a study, the `Context`, and where its files belong, the
    `Store`, it gets when it is executed.

    Attributes:
        config: everything that its numbers depend on.
        method: the strategy or baseline with its options.
    """

    config: RunConfig
    method: Strategy | Baseline

    @property
    def label(self) -> str:
        """The name that it is compared under."""
        return self.config.label

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def fingerprint(self) -> str:
        """The hash that names its folder."""
        return self.config.fingerprint

    def spec(self, context: Context) -> ModelSpec:
        """What its model is made of; only of a strategy's run."""
        assert isinstance(self.method, Strategy)
        return ModelSpec(
            self.method,
            head_of(self.config.head),
            context.task,
            context.loaded.encoder,
            context.precision,
            context.max_length,
            has_pairs=context.dataset.train.pairs is not None,
        )

    def execute(self, context: Context, store: Store) -> RunRecord:
        """Trains, scores and stores the record.

        A fault of the run itself becomes a record with status "failed"; an interruption leaves the
        checkpoint of the last finished epoch behind. Of several processes only the main one writes.
        """
        context = context.of_run(self.config)
        context.callback.on_run_begin(self.config)
        try:
            if isinstance(self.method, Baseline):
                result = _run_baseline(self.config, self.method, context)
            else:
                result = _run_strategy(self, context, store)
            constant = isinstance(self.method, Baseline) and not self.method.reads_text
            record, arrays = _score(self.config, context, result, constant)
        except (TotuneError, RuntimeError, ValueError, MemoryError) as error:
            kind = "" if isinstance(error, TotuneError) else f"{type(error).__name__}: "
            return self.fail(f"{kind}{error}", context, store)
        if context.devices.is_main:
            result.save_weights(store.weights(self.fingerprint))
            record = store.save(record, arrays)
        context.callback.on_run_end(record)
        return record

    def fail(self, error: str, context: Context, store: Store) -> RunRecord:
        """Stores and gives the record of a run that failed, with the reason."""
        record = _record(self.config, context, status="failed", error=hide_secrets(error))
        if context.devices.is_main:
            store.save(record, {})
        context.callback.on_run_end(record)
        return record

    def fit(self, context: Context, checkpoint: Path | None) -> "Fitted":
        """Trains a strategy's model on the train split and scores epochs on dev; sees no test rows.

        Without dev rows the last epoch is kept.

        Args:
            context: what the runs of its study share.
            checkpoint: where the state is kept between epochs, to continue from; None keeps none.
        """
        spec = self.spec(context)
        model, plan = spec.build(self.config.seeds["init"])
        trainer = Trainer(
            model,
            context.split("train", spec.encoding_options),
            context.split("dev", spec.encoding_options) if len(context.dataset.dev) else None,
            context.settings,
            self.config.seeds["order"],
            cache=context.cache,
            devices=context.devices,
            progress=context.progress,
        )
        history = trainer.fit(
            plan, checkpoint, lambda epoch: context.callback.on_epoch_end(self.config, epoch)
        )
        return Fitted(model, plan, history, spec.encoding_options)

    def trained_model(
        self, context: Context, weights: Path
    ) -> tuple[Model, dict[str, torch.Tensor]]:
        """The model with the weights that it has trained, and those weights by name.

        Args:
            context: what the runs of its study share.
            weights: the folder that `execute` kept them in.
        """
        model, _ = self.spec(context).build(self.config.seeds["init"])
        trained = load_file(weights / TRAINED)
        for name, parameter in model.unique_parameters().items():
            if name in trained:
                parameter.data.copy_(trained[name])
        return model, trained


Runs = Sequence[Run]


def configure(candidates: Sequence[Candidate], seeds: Sequence[int], context: Context) -> list[Run]:
    """Every run of a study, seed by seed and fold by fold, so that one cut short compares equals.

    Of a cross-validation a seed is a repetition of all folds.
    """
    fingerprint = ""
    if context.pretrained is not None:
        fingerprint = context.pretrained.encoder.fingerprint()  # reads all weights
    shared = {"seed": 0, "data": context.dataset.digest(), "task": context.task.to_json()}
    first = [_configure(candidate, context, fingerprint, shared) for candidate in candidates]
    folds = [None] if context.folds is None else range(1, context.folds.count + 1)
    return [_placed(run, seed, fold) for seed in seeds for fold in folds for run in first]


def on_all_rows(run: Run) -> Run:
    """The run that trains with a fold's options on all rows, and tests on none."""
    return _placed(run, run.seed, ALL_ROWS)


def _placed(run: Run, seed: int, fold: int | None) -> Run:
    """The same run under another seed and for another fold."""
    return replace(run, config=replace(run.config, seed=seed, fold=fold))


def _configure(
    candidate: Candidate, context: Context, fingerprint: str, shared: Mapping[str, Any]
) -> Run:
    """The run of a candidate under seed 0.

    Args:
        candidate: a strategy or baseline with its options.
        context: what the runs share.
        fingerprint: of the encoder.
        shared: what all configurations have in common.
    """
    read = {"max_length": context.max_length, "precision": context.precision}
    decided_by = _decided_by(context)
    if candidate.is_baseline:
        baseline = candidate.create()
        assert isinstance(baseline, Baseline)
        embeds = baseline.needs_encoder
        pairs = context.dataset.train.pairs is not None
        apart = {"pair_encoding": "separate"} if pairs else {}  # was joint once
        config = RunConfig(
            label=candidate.label or baseline.label,
            strategy={"name": baseline.name, "options": options_of(baseline)},
            head={},
            model=fingerprint if embeds else "",
            settings=(read | apart if embeds else {}) | decided_by,
            **shared,
        )
        return Run(config, baseline)
    encoder = context.loaded.encoder
    spec = ModelSpec.of_candidate(candidate, context.facts, context.task, encoder)
    strategy, head = spec.to_json()
    decided = sorted(candidate.by_rule(spec.strategy, context.facts))
    config = RunConfig(
        label=candidate.label or spec.strategy.label,
        strategy=strategy,
        head=head,
        model=fingerprint,
        settings=read | context.settings.to_json() | decided_by,
        by_rule=decided + ["per_device_train_batch_size"] * context.batch_by_rule,
        **shared,
    )
    return Run(config, spec.strategy)


def _decided_by(context: Context) -> dict[str, str]:
    """What else the predictions and scores of every run depend on, where it is not as usual."""
    metric = context.settings.metric
    tuned = {"tune_threshold": metric} if context.tune_threshold else {}
    code = METRICS[metric].code
    return tuned | ({"metric_code": code} if code else {})


@dataclass(frozen=True)
class Fitted:
    """A trained model in the state of the epoch that it keeps, with its plan and history."""

    model: Model
    plan: list[Phase]
    history: History
    encoding_options: EncodingOptions


@dataclass(frozen=True)
class _Result:
    """What the two kinds of runs hand over to be recorded."""

    dev: np.ndarray | None  # outputs [P, C]; None where the split has no rows
    test: np.ndarray | None
    costs: Costs
    fields: dict[str, Any]
    save_weights: Callable[[Path], None]


def _run_strategy(run: Run, context: Context, store: Store) -> _Result:
    reset_peak_memory(context.devices.device)
    context.cache.begin_account()
    fitted = run.fit(context, store.checkpoint(run.fingerprint))
    model, plan, history = fitted.model, fitted.plan, fitted.history
    encoding_options = fitted.encoding_options
    splits = context.dataset.splits()
    dev, test = (
        _outputs(model, context, context.split(n, encoding_options)) if len(splits[n]) else None
        for n in ("dev", "test")
    )
    parameters = model.unique_parameters()
    kept = plan_until(plan, history.epochs[history.best].phase)
    trained = {name: parameters[name] for name in trained_names(model, kept)}
    costs = Costs(
        trainable_parameters=sum(parameters[name].numel() for name in trained_names(model, plan)),
        total_parameters=sum(p.numel() for p in parameters.values()),
        train_seconds=history.train_seconds,
        feature_seconds=context.cache.account,
        examples_per_second=history.examples / max(history.step_seconds, 1e-9),
        peak_memory_bytes=peak_memory(context.devices.device),
        storage_bytes=weight_bytes(model, trained),
        latency_milliseconds=_latency(
            context, lambda rows: _predict_texts(model, context, rows, encoding_options)
        ),
    )
    fields = {"epochs": history.epochs, "best_epoch": history.best + 1}

    def save_weights(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: p.detach().cpu().contiguous() for name, p in trained.items()}
        save_file(tensors, folder / TRAINED)

    return _Result(dev, test, costs, fields, save_weights)


def _run_baseline(config: RunConfig, baseline: Baseline, context: Context) -> _Result:
    reset_peak_memory()
    data = context.dataset
    filling = context.cache.seconds
    context.cache.begin_account()
    targets = context.task.targets(data.train.labels or ())
    began = time.perf_counter()
    embed = context.embed if baseline.needs_encoder else None
    fitted = baseline.fit(data.train, targets, context.task, config.seeds["init"], embed)
    seconds = max(time.perf_counter() - began - (context.cache.seconds - filling), 1e-9)
    encoder = context.loaded.encoder if baseline.needs_encoder else None
    frozen = 0 if encoder is None else sum(p.numel() for p in encoder.parameters())
    costs = Costs(
        trainable_parameters=fitted.parameters,
        total_parameters=fitted.parameters + frozen,
        train_seconds=seconds,
        feature_seconds=context.cache.account,
        examples_per_second=len(data.train) / seconds,
        peak_memory_bytes=peak_memory(),
        storage_bytes=_stored_bytes(fitted),
        latency_milliseconds=_latency(context, fitted.outputs),
    )
    dev, test = (fitted.outputs(rows) if len(rows) else None for rows in (data.dev, data.test))
    return _Result(dev, test, costs, {}, fitted.save)


def plan_until(plan: list[Phase], phase: str) -> list[Phase]:
    """The phases up to the one of the kept epoch: what later ones trained is not kept."""
    names = [each.name for each in plan]
    return plan[: names.index(phase) + 1]


def weight_bytes(model: Model, trained: Mapping[str, torch.Tensor]) -> int:
    """What must be stored of a model beside its encoder: what was trained or inserted."""
    insert = model.encoder.inserted
    inserted = {id(p) for p in insert.parameters()} if insert is not None else set()
    tensors = [p for p in trained.values() if id(p) not in inserted]
    if insert is not None:
        tensors += insert.state_dict().values()
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _stored_bytes(fitted: FittedBaseline) -> int:
    """What saving takes: a vocabulary is often larger than the coefficients it names."""
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder))
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def _outputs(model: Model, context: Context, split: Split) -> np.ndarray:
    """Outputs [P, C] of the trained model; what was frozen to the end comes from the cache."""
    source = open_source(split, model, context.cache, model.freeze_prefix())
    return predict(model, source, context.devices).values


def _predict_texts(
    model: Model, context: Context, rows: Examples, encoding_options: EncodingOptions
) -> np.ndarray:
    """From raw text, as a served model would: nothing cached."""
    units = frame(rows, context.loaded.tokenizer, context.max_length, encoding_options)
    source = open_source(Split("latency", units), model, None, -1)
    return predict(model, source, context.devices).values


def _latency(context: Context, outputs: Callable[[Examples], np.ndarray]) -> float:
    """Milliseconds per example over a batch of test rows (train rows where there are none).

    After one warm-up call.
    """
    every = context.dataset.test if len(context.dataset.test) else context.dataset.train
    rows = every.take(range(min(LATENCY_ROWS, len(every))))
    outputs(rows.take(range(min(8, len(rows)))))
    began = time.perf_counter()
    outputs(rows)
    return (time.perf_counter() - began) * 1000 / len(rows)


def _score(
    config: RunConfig, context: Context, result: _Result, constant: bool
) -> tuple[RunRecord, dict[str, np.ndarray]]:
    """The record of a finished run and the arrays of its test predictions.

    One answer for every row is no sign of trouble where the member is `constant` by nature.
    """
    task, metrics = context.task, dict[str, dict[str, float]]()
    arrays: dict[str, np.ndarray] = {}
    degenerate = None
    if context.tune_threshold and result.dev is not None:
        targets = task.targets(context.dataset.dev.labels or ())
        task = task.tuned(targets, result.dev, context.settings.metric)
    for name, outputs in (("dev", result.dev), ("test", result.test)):
        if outputs is None:
            continue
        examples = context.dataset.splits()[name]  # type: ignore[index]
        targets = task.targets(examples.labels or ())
        predictions = task.predictions(outputs, examples.counts)
        metrics[name] = task.measure(targets, outputs, examples.counts)
        metrics[name] |= task.label_scores(targets, predictions)
        if name == "test":
            arrays = {"targets": targets, "predictions": predictions}
            degenerate = None if constant else task.degenerate(targets, predictions)
    scores = None if result.test is None else task.scores(result.test)
    if scores is not None:
        arrays["scores"] = scores
    thresholds = list(task.thresholds)
    if arrays and thresholds:
        arrays["thresholds"] = np.array(thresholds)
    if arrays and context.tested is not None:
        arrays["rows"] = context.tested
    record = _record(
        config,
        context,
        status="finished",
        dev=metrics.get("dev", {}),
        test=metrics.get("test", {}),
        costs=result.costs,
        predictions=PREDICTIONS if arrays else None,
        degenerate=degenerate,
        thresholds=thresholds,
        **result.fields,
    )
    return record, arrays


def _record(config: RunConfig, context: Context, **fields: Any) -> RunRecord:
    return RunRecord(
        fingerprint=config.fingerprint,
        strategy=config.label,
        seed=config.seed,
        config=config.to_json(),
        seeds=config.seeds,
        precision=context.precision if config.model else "fp64",
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        **fields,
    )
