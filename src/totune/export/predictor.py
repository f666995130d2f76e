"""A trained model in memory, ready for texts."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from totune.baselines.base import Embed
from totune.data.audit import SeenTexts, name_classes
from totune.data.examples import Columns, Examples, Label, TaskName, classes_of
from totune.data.inputs import Text, read_inputs, read_texts
from totune.data.memory import MemoryTable
from totune.data.tagging.schemes import Scheme
from totune.errors import DataError
from totune.registry import build
from totune.tasks.base import Task
from totune.text import counted

if TYPE_CHECKING:
    from totune.inputs.encodings import Tokenizer
    from totune.model import Model

_SHOWN = 10  # labels that a message names
_WRONG_KIND = "this model was trained on {}; the input is not of that kind."


class Predictor:
    """A trained model or baseline, ready for texts.

    Attributes:
        task: the label space.
        about: the whole description in `totune.json`.
        seen: the texts that it was trained on, None where the folder does not hold them.
    """

    def __init__(self, task: Task, about: dict[str, Any], outputs: Embed) -> None:
        self.task, self.about = task, about
        self.seen: SeenTexts | None = None
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
            raise DataError(_WRONG_KIND.format(wanted))
        if examples.words is not None:  # a sentence without words has nothing to tag
            examples = examples.take(np.flatnonzero(examples.counts))
        if not len(examples):
            return np.zeros((0, self.task.outputs), dtype=np.float32)
        return self._outputs(examples)

    @overload
    def predict(self, texts: str, pairs: str | None = None) -> Label: ...  # type: ignore[overload-overlap]

    @overload
    def predict(
        self, texts: Iterable[Text] | MemoryTable | Path, pairs: Iterable[str] | None = None
    ) -> list[Label]: ...

    def predict(
        self,
        texts: str | Iterable[Text] | MemoryTable | Path,
        pairs: str | Iterable[str] | None = None,
    ) -> Label | list[Label]:
        """Labels (or scores) of texts, or of pairs of texts.

            model.predict("a joy")                      # "positive"
            model.predict(["a joy", "a bore"])          # ["positive", "negative"]
            model.predict(frame["text"])                # a column of pandas, likewise
            model.predict(frame)                        # its columns are those of training
            model.predict(["a man sleeps"], ["a man rests"])

        Args:
            texts: one text, whose label is returned, or a list of them, whose labels are returned
                in order. Where words are tagged a text is a string, which is split at white space,
                or a list of words (in a list of texts), and its label is a tuple of tags. Where
                rows have several labels, a label is a tuple of them.
                or a list of words (in a list of texts), and its label is a tuple of tags. Or a
                table with the columns of training: a data frame, an Arrow table, a
                `datasets.Dataset`, a list of records, a file's `Path`.
            pairs: the second text of each pair, if the model was trained on pairs; or `texts` is a
                list of tuples of two.

        Raises:
            DataError: if a text is not a string; names its place, counted from 0, and value. If
                a table lacks the column of the text.
        """
        examples = self._examples(texts, pairs)
        outputs = self.outputs(examples)
        labels = self.task.decode(self.task.predictions(outputs, examples.counts))
        return labels[0] if isinstance(texts, str) else labels

    def predict_proba(
        self,
        texts: str | Iterable[Text] | MemoryTable | Path,
        pairs: str | Iterable[str] | None = None,
    ) -> np.ndarray | None:
        """Probabilities in the order of the task's labels; takes the same as `predict`.

        Returns:
            [N, C], of one text [C]; those of several labels do not sum to 1. None without classes.
        """
        scores = self.task.scores(self.outputs(self._examples(texts, pairs)))
        return scores[0] if scores is not None and isinstance(texts, str) else scores

    def evaluate(
        self, data: Examples | MemoryTable | str | Path, positive_label: str | None = None
    ) -> dict[str, float]:
        """Every metric of the task on labelled rows.

        Args:
            data: a file, or data in memory as `totune.compare` takes it, with the columns of
                training; or (texts, labels). Rows without a label are left out.
            positive_label: of two classes the one that F1 is of; that of training if None.

        Raises:
            DataError: if no row has a label.
            ConfigError: if `positive_label` is not one of two classes.
        """
        examples = data if isinstance(data, Examples) else self._labelled(data)
        if examples.labels is None or not len(examples):
            raise DataError("these rows have no labels to compare with; name them with `label`.")
        outputs, task = self.outputs(examples), self.task
        if positive_label is not None:
            task = task.with_positive(positive_label)
            same = task.positive == self.task.positive
            outputs = outputs if same else outputs[:, ::-1]  # as the classes are ordered now
        targets = task.targets(examples.labels)
        found = task.measure(targets, outputs, examples.counts)
        return found | task.label_scores(targets, task.predictions(outputs, examples.counts))

    def cautions(self, examples: Examples) -> list[str]:
        """What may spoil the scores of `evaluate` on labelled rows, one sentence each."""
        return [*self._seen_before(examples), *self._unknown_labels(examples)]

    def _seen_before(self, examples: Examples) -> list[str]:
        found, checked = (0, 0) if self.seen is None else self.seen.count(examples)
        if not found:
            return []
        rows = "sentence" if self.task.per_word else "row"
        return [
            f"Of {counted(checked, rows)} {found:,} ({found / checked:.1%}) "
            f"{'has a text' if found == 1 else 'have texts'} that the model was trained on: scores "
            "may be too high. Measure on rows that training has not seen."
        ]

    def _unknown_labels(self, examples: Examples) -> list[str]:
        known: tuple[str, ...] = getattr(self.task, "labels", ())  # a score has none
        given = (name for label in examples.labels or () for name in classes_of(label))
        unknown = Counter(name for name in given if name not in known)
        if not known or not unknown:
            return []
        positions = counted(unknown.total(), "word" if self.task.per_word else "row")
        return [
            f"The labels of {positions} ({name_classes(unknown)}) are none that the model knows "
            f"({', '.join(known[:_SHOWN])}{', ...' if len(known) > _SHOWN else ''}): it cannot "
            "predict them, and each counts as an error."
        ]

    @property
    def columns(self) -> Columns:
        """The columns that the model was trained on."""
        if "columns" in self.about:
            return Columns(**self.about["columns"])
        task: TaskName = "tagging" if self.task.per_word else "classification"
        return Columns("text", None, "pair" if self.takes_pairs else None, task)

    def _examples(
        self,
        texts: str | Iterable[Text] | MemoryTable | Path,
        pairs: str | Iterable[str] | None,
    ) -> Examples:
        if pairs is not None and not self.takes_pairs:
            raise DataError(_WRONG_KIND.format("single texts"))
        if isinstance(texts, Path):
            return read_inputs(texts, self.columns)
        return read_texts(texts, pairs, self.columns)  # type: ignore[arg-type]

    def _labelled(self, data: MemoryTable | str | Path) -> Examples:
        """The rows of a file or of data in memory that have a label."""
        scheme: Scheme = getattr(self.task, "scheme", None) or "iob2"
        return read_inputs(data, self.columns, tag_scheme=scheme, labelled=True)


def predictor(
    model: "Model", tokenizer: "Tokenizer", task: Task, about: dict[str, Any]
) -> Predictor:
    """A trained model in memory, ready for texts.

    Of `about` it needs `max_length`, `pairs`, and `framing` where that is not the usual one.
    """
    from totune.inputs.encoded import EncodingOptions, frame
    from totune.training.devices import Devices
    from totune.training.inputs import Split, open_source, predict

    devices, max_length = Devices(), int(about["max_length"])
    encoding_options = build(EncodingOptions, about.get("framing", {}), "encoding_options")
    model.to(devices.device)

    def outputs(examples: Examples) -> np.ndarray:
        split = Split("input", frame(examples, tokenizer, max_length, encoding_options))
        return predict(model, open_source(split, model, None, -1), devices).values

    return Predictor(task, about, outputs)


def embedder(reference: str, max_length: int, setting: str = "auto") -> Embed:
    """Texts -> mean-pooled top-layer vectors [N, H] of a frozen encoder, without a cache."""
    from totune.encoders.loading import load_encoder
    from totune.encoders.mixing import View
    from totune.features import compute
    from totune.inputs.encoded import tokenize
    from totune.machine import choose_precision

    loaded = load_encoder(reference)
    precision = choose_precision(setting, loaded.encoder.device)

    def embed(examples: Examples) -> np.ndarray:
        pieces = tokenize(examples, loaded.tokenizer, max_length)
        view = View((loaded.encoder.depth,), "mean")
        features = compute(loaded.encoder, pieces, view, precision == "bf16")
        return features.rows(np.arange(len(pieces)))[:, 0].float().numpy()

    return embed
