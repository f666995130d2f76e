"""One run: one task, one strategy (or baseline), one seed, from its configuration to its record."""

import copy
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from totune.baselines.base import Baseline, FittedBaseline
from totune.data.examples import Examples
from totune.errors import ConfigError, TotuneError
from totune.heads.base import HEADS, Head, InputKind
from totune.inputs.encoded import EncodingOptions, PairEncoding, frame
from totune.machine import peak_memory, reset_peak_memory
from totune.model import Model, wants_of
from totune.runs.config import RunConfig
from totune.runs.context import Context
from totune.runs.records import Costs, RunRecord
from totune.runs.store import Store
from totune.strategies.base import Strategy
from totune.strategies.coverage import trained_names
from totune.strategies.phases import Phase
from totune.training.history import History
from totune.training.inputs import Split, open_source, predict
from totune.training.trainer import Trainer

LATENCY_ROWS = 128
PREDICTIONS = "predictions.npz"
TRAINED = "trained.safetensors"


@dataclass(frozen=True)
class _Result:
    """What the two kinds of runs hand over to be recorded."""

    dev: np.ndarray  # outputs [P, C]
    test: np.ndarray
    costs: Costs
    fields: dict[str, Any]
    save_weights: Callable[[Path], None]


def run(
    config: RunConfig, member: Strategy | Baseline, context: Context, store: Store
) -> RunRecord:
    """Runs one configuration and stores its record.

    A fault of the run itself becomes a record with status "failed"; an interruption leaves the
    checkpoint of the last finished epoch behind. Of several processes only the main one writes.
    """
    context.callback.on_run_begin(config)
    try:
        if isinstance(member, Baseline):
            result = _run_baseline(config, member, context)
        else:
            result = _run_strategy(config, member, context, store)
    except (TotuneError, RuntimeError, ValueError, MemoryError) as error:
        kind = "" if isinstance(error, TotuneError) else f"{type(error).__name__}: "
        return save_failure(config, f"{kind}{error}", context, store)
    constant = isinstance(member, Baseline) and not member.reads_text
    record, arrays = _score(config, context, result, constant)
    if context.devices.is_main:
        result.save_weights(store.weights(config.fingerprint))
        store.save(record, arrays)
    context.callback.on_run_end(record)
    return record


def save_failure(config: RunConfig, error: str, context: Context, store: Store) -> RunRecord:
    """Stores and gives the record of a run that failed, with the reason."""
    record = _record(config, context, status="failed", error=error)
    if context.devices.is_main:
        store.save(record, {})
    context.callback.on_run_end(record)
    return record


def build_model(
    config: RunConfig, strategy: Strategy, context: Context
) -> tuple[Model, list[Phase]]:
    """A fresh model with the strategy's modules in it, and its plan.

    Raises:
        ConfigError: if head, task, data and strategy do not fit each other.
    """
    torch.manual_seed(config.seeds["init"])
    head = HEADS.create(config.head["name"], config.head["options"])
    wants = wants_of(head, context.task)
    has_pairs = context.dataset.train.pairs is not None
    encoder = copy.deepcopy(context.loaded.encoder)
    check_pairs(head, wants, has_pairs, strategy.encoding_options(encoder, wants).pair_encoding)
    readout = strategy.readout(encoder, wants)
    model = Model(encoder, readout, head, context.task, context.precision)
    strategy.prepare(model)
    if model.encoder.max_length < context.max_length:  # something inserted takes places of its own
        raise ConfigError(
            f"{strategy.label}: beside what it inserts, the encoder has room for "
            f"{model.encoder.max_length} word pieces, and inputs may have {context.max_length}. "
            f"Use `max_length={model.encoder.max_length}`."
        )
    return model, strategy.plan(model)


def encoding_options_of(config: RunConfig, strategy: Strategy, context: Context) -> EncodingOptions:
    """How the rows of a run become encoder inputs."""
    head = HEADS.create(config.head["name"], config.head["options"])
    return strategy.encoding_options(context.loaded.encoder, wants_of(head, context.task))


def check_pairs(head: Head, wants: InputKind, has_pairs: bool, pair_encoding: PairEncoding) -> None:
    """Refuses heads for pairs on single texts, and encodings of pairs that a head cannot read.

    Raises:
        ConfigError: with the remedy.
    """
    reads_pairs = wants in ("pair", "pooled-pair")
    if reads_pairs and not has_pairs:
        raise ConfigError(
            f"head {head.name!r} compares two texts, and this data has one per row: name the "
            "second with `pair`, or use another head."
        )
    if wants == "pooled-pair" and pair_encoding == "joint":
        raise ConfigError(
            f"pair_encoding=joint: head {head.name!r} compares vectors of texts that were encoded "
            "apart. Leave pair_encoding out, or use another head."
        )
    if has_pairs and not reads_pairs and pair_encoding == "separate":
        raise ConfigError(
            f"pair_encoding=separate: head {head.name!r} reads one text and would see half of each "
            "pair. Use pair_encoding=joint, or a head for pairs."
        )


@dataclass(frozen=True)
class Fitted:
    """A trained model in the state of the epoch that it keeps, with its plan and history."""

    model: Model
    plan: list[Phase]
    history: History
    encoding_options: EncodingOptions


def fit(config: RunConfig, strategy: Strategy, context: Context, checkpoint: Path | None) -> Fitted:
    """Trains a configuration on the train split, watched on dev; looks at nothing else.

    Args:
        config: of the run.
        strategy: of the run.
        context: what the runs of its study share.
        checkpoint: where the state is kept between epochs, to continue from; None keeps none.
    """
    model, plan = build_model(config, strategy, context)
    encoding_options = encoding_options_of(config, strategy, context)
    trainer = Trainer(
        model,
        context.split("train", encoding_options),
        context.split("dev", encoding_options),
        context.settings,
        config.seeds["order"],
        cache=context.cache,
        checkpoint=checkpoint,
        devices=context.devices,
        progress=context.progress,
        on_epoch=lambda epoch: context.callback.on_epoch_end(config, epoch),
    )
    return Fitted(model, plan, trainer.fit(plan), encoding_options)


def _run_strategy(config: RunConfig, strategy: Strategy, context: Context, store: Store) -> _Result:
    reset_peak_memory(context.devices.device)
    context.cache.begin_account()
    fitted = fit(config, strategy, context, store.checkpoint(config.fingerprint))
    model, plan, history = fitted.model, fitted.plan, fitted.history
    encoding_options = fitted.encoding_options
    dev, test = (
        _outputs(model, context, context.split(n, encoding_options)) for n in ("dev", "test")
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
    return _Result(fitted.outputs(data.dev), fitted.outputs(data.test), costs, {}, fitted.save)


def plan_until(plan: list[Phase], phase: str) -> list[Phase]:
    """The phases up to the one of the best epoch: what later ones trained is not kept."""
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
    """Milliseconds per example over a batch of test rows, after one warm-up call."""
    rows = context.dataset.test.take(range(min(LATENCY_ROWS, len(context.dataset.test))))
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
    task, metrics = context.task, {}
    for name, outputs in (("dev", result.dev), ("test", result.test)):
        examples = context.dataset.splits()[name]  # type: ignore[index]
        targets = task.targets(examples.labels or ())
        predictions = task.predictions(outputs, examples.counts)
        metrics[name] = task.evaluate(targets, predictions)
    arrays = {"targets": targets, "predictions": predictions}
    scores = task.scores(result.test)
    if scores is not None:
        arrays["scores"] = scores
    degenerate = None if constant else task.degenerate(targets, predictions)
    record = _record(
        config,
        context,
        status="finished",
        dev=metrics["dev"],
        test=metrics["test"],
        costs=result.costs,
        predictions=PREDICTIONS,
        degenerate=degenerate,
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
