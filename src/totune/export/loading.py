"""Reading a trained model or baseline.

PyTorch and encoders are imported where a model has one: answering with a baseline takes neither.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from totune.baselines.base import BASELINES
from totune.errors import ModelError
from totune.export.files import (
    BASELINE,
    ENCODER,
    HEAD,
    read_description,
    read_seen,
    read_weights,
    refusing_damage,
)
from totune.export.predictor import Predictor, embedder, predictor
from totune.tasks.base import Task

if TYPE_CHECKING:
    from totune.machine import Precision


def load_model(folder: Path, model: str | None = None) -> Predictor:
    """Reads a folder that `save_model` or `save_baseline` wrote.

    Args:
        folder: the model's.
        model: where the encoder is, for a folder without it whose encoder is no longer where it
            was: "minilm", a local folder or a hub id.

    Raises:
        ModelError: if the folder is not such a folder, or a file in it is missing or damaged; if
            the encoder cannot be loaded, or is not the one that the model was trained with.
    """
    task, about = read_description(folder)
    with refusing_damage(folder):
        trained = _load(folder, task, about, model)
        trained.seen = read_seen(folder)
    return trained


def _load(folder: Path, task: Task, about: dict[str, Any], model: str | None) -> Predictor:
    kind = about["kind"]
    if kind == "adapter":
        return _load_adapter(folder, task, about, model)
    if kind not in _LOADERS:
        raise ValueError(f"this version of totune reads no {kind!r}")
    if model is not None:
        raise ModelError(
            f"`model` {model}: {folder} needs no encoder named, since it holds no adapters to "
            "one. Leave `model` out."
        )
    return _LOADERS[kind](folder, task, about)


def _load_adapter(
    folder: Path, task: Task, about: dict[str, Any], reference: str | None
) -> Predictor:
    from totune.export.adapters import open_adapter, open_encoder

    loaded = open_encoder(folder, about, reference)
    model = open_adapter(folder, task, about, loaded, _precision(about))
    return predictor(model, loaded.tokenizer, task, about)


def _load_neural(folder: Path, task: Task, about: dict[str, Any]) -> Predictor:
    from totune.encoders.loading import load_encoder
    from totune.export.adapters import assemble, load_upper

    # Until version 0.1.0 the encoder always lay beside the description.
    place = folder / ENCODER if about.get("holds_encoder") else folder
    loaded = load_encoder(str(place))
    model = assemble(loaded, task, about, _precision(about))
    load_upper(model, read_weights(folder, HEAD))
    return predictor(model.eval(), loaded.tokenizer, task, about)


def _load_baseline(folder: Path, task: Task, about: dict[str, Any]) -> Predictor:
    baseline = BASELINES.create(about["baseline"]["name"], about["baseline"]["options"])
    embed = None
    if baseline.needs_encoder:
        embed = embedder(about["model"], int(about["max_length"]), _setting(about))
    fitted = baseline.load(folder / BASELINE, task, embed)
    return Predictor(task, about, fitted.outputs)


_LOADERS = {"model": _load_neural, "baseline": _load_baseline}


def _precision(about: dict[str, Any]) -> "Precision":
    from totune.machine import choose_precision
    from totune.training.devices import Devices

    return choose_precision(_setting(about), Devices().device)


def _setting(about: dict[str, Any]) -> str:
    """What was trained in float32 answers in float32, so that its scores stay what they were."""
    return "fp32" if about.get("precision") == "fp32" else "auto"
