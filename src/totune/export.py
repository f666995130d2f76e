"""A trained model as a folder, and back.

The folder holds `totune.json` (what the model is), the tokenizer, and
- `config.json` + `model.safetensors`: in the layout of `AutoModelForSequenceClassification` or
  `AutoModelForTokenClassification` where transformers has the very head, else of `AutoModel` (the
  encoder alone),
- `head.safetensors`: mixing and head,
or, for a baseline, a `baseline/` folder of JSON and safetensors.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import totune
from totune import sequence_classifier, token_classifier
from totune.baselines.base import BASELINES, Baseline, Embed, FittedBaseline
from totune.data.batches import tokenize
from totune.data.examples import Columns, Examples, Label
from totune.data.inputs import read_inputs
from totune.data.units import Framing, frame
from totune.encoders.loading import load_encoder, quiet
from totune.encoders.mixing import Readout, View
from totune.encoders.transformers import TransformersEncoder
from totune.errors import ConfigError, DataError, ModelError
from totune.features import compute
from totune.heads.base import HEADS
from totune.machine import choose_precision
from totune.model import Model
from totune.registry import build, options_of
from totune.tasks.base import Task, task_from_json
from totune.tasks.tagging import Tagging
from totune.training.devices import Devices
from totune.training.inputs import Split, open_source, predict

DESCRIPTION = "totune.json"
HEAD = "head.safetensors"
# What reading a folder with a file cut short, swapped or edited by hand can raise.
_DAMAGE = (ValueError, TypeError, KeyError, SafetensorError, RuntimeError, OSError)


def save_model(
    folder: Path,
    model: Model,
    tokenizer: PreTrainedTokenizerBase,
    task: Task,
    about: dict[str, Any],
) -> None:
    """Writes a trained model.

    Args:
        folder: made if it is not there.
        model: the trained model.
        tokenizer: the encoder's.
        task: its label space.
        about: facts worth keeping beside it: strategy, metrics, max_length, pair or not.
    """
    folder.mkdir(parents=True, exist_ok=True)
    whole, kind, reason = _as_transformers(model, task)
    with quiet():
        whole.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    upper = {f"mixing.{n}": p for n, p in model.mixing.state_dict().items()}
    upper |= {f"head.{n}": p for n, p in model.head.state_dict().items()}
    save_file({name: p.contiguous().cpu() for name, p in upper.items()}, folder / HEAD)
    facts = {
        "kind": "model",
        "readout": asdict(model.readout),
        "head": {"name": model.head_options.name, "options": options_of(model.head_options)},
        "precision": model.precision,
        "transformers_class": kind,
        "transformers_note": reason,
    }
    _describe(folder, task, facts | about)


def _as_transformers(model: Model, task: Task) -> tuple[PreTrainedModel, str, str]:
    """The model in transformers' own class, that class, and if it is the encoder's alone, why."""
    assert isinstance(model.encoder, TransformersEncoder)
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
    return model.encoder.model, "AutoModel", reason


def save_baseline(
    folder: Path, baseline: Baseline, fitted: FittedBaseline, task: Task, about: dict[str, Any]
) -> None:
    """Writes a trained baseline; `about` as for `save_model`, and `model`, its encoder if any."""
    folder.mkdir(parents=True, exist_ok=True)
    fitted.save(folder / "baseline")
    options = {"name": baseline.name, "options": options_of(baseline)}
    _describe(folder, task, {"kind": "baseline", "baseline": options, **about})


def _describe(folder: Path, task: Task, facts: dict[str, Any]) -> None:
    description = {"totune": totune.__version__, "task": task.to_json(), **facts}
    text = json.dumps(description, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")


class Predictor:
    """A trained model or baseline, ready for texts.

    Attributes:
        task: the label space.
        about: the whole description in `totune.json`.
    """

    def __init__(self, task: Task, about: dict[str, Any], outputs: Embed) -> None:
        self.task, self.about = task, about
        self._outputs = outputs

    @property
    def takes_pairs(self) -> bool:
        return bool(self.about.get("pairs", False))

    def outputs(self, examples: Examples) -> np.ndarray:
        """Raw outputs [P, C]: a row per text, or per word where words are tagged.

        Raises:
            DataError: if the model was trained on pairs and gets single texts, or the reverse.
        """
        if (examples.pairs is not None) != self.takes_pairs:
            wanted = "pairs of texts" if self.takes_pairs else "single texts"
            raise DataError(f"this model was trained on {wanted}; the input is not of that kind.")
        if examples.words is not None:  # a sentence without words has nothing to tag
            examples = examples.take(np.flatnonzero(examples.counts))
        if not len(examples):
            return np.zeros((0, self.task.outputs), dtype=np.float32)
        return self._outputs(examples)

    def predict(
        self, texts: Sequence[str] | Sequence[Sequence[str]], pairs: Sequence[str] | None = None
    ) -> list[Label]:
        """Labels (or scores) of texts, or of pairs of texts.

        Where words are tagged, a text is a list of words or a string that is split at white space,
        and its label is a tuple of tags.
        """
        examples = self._examples(texts, pairs)
        outputs = self.outputs(examples)
        return self.task.decode(self.task.predictions(outputs, examples.counts))

    def predict_proba(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None
    ) -> np.ndarray | None:
        """Class probabilities [N, C] in the order of the task's labels; None without classes."""
        return self.task.scores(self.outputs(self._examples(texts, pairs)))

    def evaluate(self, examples: Examples) -> dict[str, float]:
        """Every metric of the task on labelled rows.

        Raises:
            DataError: if the rows have no labels.
        """
        if examples.labels is None:
            raise DataError("these rows have no labels to compare with; name them with --label.")
        predictions = self.task.predictions(self.outputs(examples), examples.counts)
        return self.task.evaluate(self.task.targets(examples.labels), predictions)

    def _examples(
        self, texts: Sequence[str] | Sequence[Sequence[str]], pairs: Sequence[str] | None
    ) -> Examples:
        if self.task.per_word and len(texts):
            return read_inputs(texts, Columns("tokens", None, task="tagging"))
        return Examples(
            tuple(str(text) for text in texts), pairs=None if pairs is None else tuple(pairs)
        )


def load_model(folder: Path) -> Predictor:
    """Reads a folder that `save_model` or `save_baseline` wrote.

    Raises:
        ModelError: if the folder is not such a folder, or a file in it is missing or damaged.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        raise ModelError(
            f"{folder} holds no model of totune (there is no {DESCRIPTION} in it). Name the folder "
            "that 'totune train --out' made, or the 'best' folder of a study."
        )
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        task = task_from_json(about["task"])
        if about["kind"] not in _LOADERS:
            raise ValueError(f"this version of totune reads no {about['kind']!r}")
        return _LOADERS[about["kind"]](folder, task, about)
    except (*_DAMAGE, ConfigError) as error:
        raise ModelError(f"{folder} cannot be read as a model: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else f"{error}"


def _load_neural(folder: Path, task: Task, about: dict[str, Any]) -> Predictor:
    loaded = load_encoder(str(folder))
    head = HEADS.create(about["head"]["name"], about["head"]["options"])
    readout = build(Readout, about["readout"], "readout")
    precision = choose_precision(_precision(about), Devices().device)
    model = Model(loaded.encoder, readout, head, task, precision)
    weights = load_file(folder / HEAD)
    for name, module in (("mixing", model.mixing), ("head", model.head)):
        prefix = f"{name}."
        own = {k[len(prefix) :]: v for k, v in weights.items() if k.startswith(prefix)}
        module.load_state_dict(own)
    model.eval()
    return predictor(model, loaded.tokenizer, task, about)


def _precision(about: dict[str, Any]) -> str:
    """What was trained in float32 answers in float32, so that its scores stay what they were."""
    return "fp32" if about.get("precision") == "fp32" else "auto"


def predictor(
    model: Model, tokenizer: PreTrainedTokenizerBase, task: Task, about: dict[str, Any]
) -> Predictor:
    """A trained model in memory, ready for texts.

    Of `about` it needs `max_length`, `pairs`, and `framing` where that is not the usual one.
    """
    devices, max_length = Devices(), int(about["max_length"])
    framing = build(Framing, about.get("framing", {}), "framing")
    model.to(devices.device)

    def outputs(examples: Examples) -> np.ndarray:
        split = Split("input", frame(examples, tokenizer, max_length, framing))
        return predict(model, open_source(split, model, None, -1), devices).values

    return Predictor(task, about, outputs)


def _load_baseline(folder: Path, task: Task, about: dict[str, Any]) -> Predictor:
    baseline = BASELINES.create(about["baseline"]["name"], about["baseline"]["options"])
    embed = None
    if baseline.needs_encoder:
        embed = embedder(about["model"], int(about["max_length"]), _precision(about))
    fitted = baseline.load(folder / "baseline", task, embed)
    return Predictor(task, about, fitted.outputs)


_LOADERS = {"model": _load_neural, "baseline": _load_baseline}


def embedder(reference: str, max_length: int, setting: str = "auto") -> Embed:
    """Texts -> mean-pooled top-layer vectors [N, H] of a frozen encoder, without a cache."""
    loaded = load_encoder(reference)
    precision = choose_precision(setting, loaded.encoder.device)

    def embed(examples: Examples) -> np.ndarray:
        pieces = tokenize(examples, loaded.tokenizer, max_length)
        view = View((loaded.encoder.depth,), "mean")
        features = compute(loaded.encoder, pieces, view, precision == "bf16")
        return features.rows(np.arange(len(pieces)))[:, 0].float().numpy()

    return embed
