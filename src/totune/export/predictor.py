"""A trained model in memory, ready for texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from totune.baselines.base import Embed
from totune.data.batches import tokenize
from totune.data.examples import Columns, Examples, Label
from totune.data.inputs import read_inputs
from totune.data.tokenizer import Tokenizer
from totune.data.units import Framing, frame
from totune.encoders.loading import load_encoder
from totune.encoders.mixing import View
from totune.errors import DataError
from totune.features import compute
from totune.machine import choose_precision
from totune.model import Model
from totune.registry import build
from totune.tasks.base import Task
from totune.training.devices import Devices
from totune.training.inputs import Split, open_source, predict


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


def predictor(model: Model, tokenizer: Tokenizer, task: Task, about: dict[str, Any]) -> Predictor:
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
