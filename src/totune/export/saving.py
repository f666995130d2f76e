"""Writing a trained model or baseline."""

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from totune import sequence_classifier, token_classifier
from totune.baselines.base import Baseline, FittedBaseline
from totune.encoders.adapter_modules import AdapterModules
from totune.encoders.loading import quiet
from totune.encoders.transformers import TransformersEncoder
from totune.export.files import (
    ADAPTER_WEIGHTS,
    BASELINE,
    ENCODER,
    HEAD,
    describe,
    replaced_model,
    write_adapter_config,
    write_weights,
)
from totune.inputs.encodings import Tokenizer
from totune.model import Model
from totune.registry import options_of
from totune.tasks.base import Task
from totune.tasks.tagging import Tagging

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def save_model(
    folder: Path,
    model: Model,
    tokenizer: Tokenizer,
    task: Task,
    about: dict[str, Any],
    trained: Collection[str] = (),
) -> None:
    """Writes a trained model; where modules were inserted, without the encoder they are in.

    Args:
        folder: made if it is not there; an older model of totune in it is replaced.
        model: the trained model.
        tokenizer: the encoder's.
        task: its label space.
        about: facts worth keeping beside it: strategy, metrics, max_length, pair or not. Where
            modules were inserted also `model`, the encoder's reference, and `fingerprint`, the
            encoder's without them and before training.
        trained: names of `model.unique_parameters()` that were trained; read where modules were
            inserted, since all others are the encoder's own.

    Raises:
        ConfigError: if the folder holds something that is not a model of totune.
    """
    with replaced_model(folder) as new:
        _write_model(new, model, tokenizer, task, about, trained)


def _write_model(
    folder: Path,
    model: Model,
    tokenizer: Tokenizer,
    task: Task,
    about: dict[str, Any],
    trained: Collection[str],
) -> None:
    facts: dict[str, Any] = {
        "readout": asdict(model.readout),
        "head": {"name": model.head_options.name, "options": options_of(model.head_options)},
        "precision": model.precision,
    }
    insert = model.encoder.inserted
    if insert is None:
        write_weights(_upper(model), folder, HEAD)
        facts |= {"kind": "model"} | _save_whole(folder, model, tokenizer, task)
    else:
        write_weights(_upper(model) | _beside(model, insert, trained), folder, HEAD)
        write_adapter_config(insert.config(), folder)
        write_weights(insert.state_dict(), folder, ADAPTER_WEIGHTS)
        facts["kind"] = "adapter"
    describe(folder, task, facts | about, model.head_options)


def _upper(model: Model) -> dict[str, Tensor]:
    """Mixing and head, buffers included."""
    upper = {f"mixing.{n}": t for n, t in model.mixing.state_dict().items()}
    return upper | {f"head.{n}": t for n, t in model.head.state_dict().items()}


def _beside(model: Model, insert: AdapterModules, trained: Collection[str]) -> dict[str, Tensor]:
    """What was trained of the encoder itself."""
    inserted = {id(parameter) for parameter in insert.parameters()}
    return {
        name: parameter
        for name, parameter in model.unique_parameters().items()
        if name in trained
        and id(parameter) not in inserted
        and not name.startswith(("mixing.", "head."))
    }


def _save_whole(folder: Path, model: Model, tokenizer: Tokenizer, task: Task) -> dict[str, Any]:
    """Writes encoder and tokenizer as transformers does; says for which of its classes.

    Where it has none with this head, they go to a folder within: by a configuration beside the
    description, transformers would load the encoder and put a random head on it.
    """
    whole, kind, reason = _as_transformers(model, task)
    place = folder if whole is not None else folder / ENCODER
    place.mkdir(exist_ok=True)
    with quiet():
        if whole is None:
            model.encoder.save(place)
        else:
            whole.save_pretrained(place)
        tokenizer.save_pretrained(place)
    facts = {"transformers_class": kind, "transformers_note": reason}
    return facts | {"holds_encoder": whole is None}


def _as_transformers(model: Model, task: Task) -> tuple["PreTrainedModel | None", str, str]:
    """The model in transformers' own class, if it has one with this head.

    Returns:
        The model, or None where the encoder is written as it is; the class that reads the folder,
        or ""; and if there is none, why.
    """
    if not isinstance(model.encoder, TransformersEncoder):
        return None, "", f"transformers has no class for {model.encoder.kind}"
    if isinstance(task, Tagging):
        reason = token_classifier.why_not(model)
        if reason is None:
            twin = token_classifier.to_token_classifier(model, task)
            return twin, "AutoModelForTokenClassification", ""
    else:
        reason = sequence_classifier.why_not(model)
        if reason is None:
            twin = sequence_classifier.to_sequence_classifier(model, task)
            return twin, "AutoModelForSequenceClassification", ""
    return None, "", reason


def save_baseline(
    folder: Path, baseline: Baseline, fitted: FittedBaseline, task: Task, about: dict[str, Any]
) -> None:
    """Writes a trained baseline; `about` as for `save_model`, and `model`, its encoder if any."""
    options = {"name": baseline.name, "options": options_of(baseline)}
    with replaced_model(folder) as new:
        fitted.save(new / BASELINE)
        describe(new, task, {"kind": "baseline", "baseline": options, **about}, baseline)
