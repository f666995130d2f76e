"""scikit-learn estimators over texts: classifier, regressor, tagger, and frozen vectors.

`X` is a list, an array or a column of texts; of pairs, a list of tuples or two columns; for the
tagger a list of lists of words. They work in `cross_val_score`, `GridSearchCV` and `Pipeline`. A
fitted estimator keeps its model in a temporary folder, and takes its files along when it is
pickled.
"""

import io
import shutil
import tarfile
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from totune.baselines.base import Baseline
from totune.data.examples import Columns, Examples, Label, TaskName
from totune.data.extraction import read_labels
from totune.data.inputs import read_texts
from totune.data.splits import complete
from totune.data.tables import Remarks, as_cell
from totune.errors import ConfigError, DataError
from totune.export import Predictor, load_model
from totune.heads.base import Head
from totune.runs.settings import DEFAULT_TAGGING_STRATEGIES
from totune.strategies.base import Strategy
from totune.study.compare import compare
from totune.study.train import train
from totune.text import counted

AUTO = ("tf-idf", "feature-extraction", "last-2", "fine-tuning")
AUTO_TAGGING = (DEFAULT_TAGGING_STRATEGIES[0], *AUTO[1:])


class KeptFolder:
    """A temporary folder that lasts as long as this object, and is pickled with its files.

    Args:
        content: an archive of what it holds at first.
    """

    def __init__(self, content: bytes | None = None) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="totune-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        if content is not None:
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                archive.extractall(self.path, filter="data")

    def __reduce__(self) -> tuple[Any, ...]:
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as archive:
            archive.add(self.path, arcname=".")
        return KeptFolder, (content.getvalue(),)


class TextEstimator(BaseEstimator):  # type: ignore[misc]
    """What the classifier, the regressor and the tagger share."""

    _task: ClassVar[TaskName]

    def __init__(
        self,
        strategy: str | Mapping[str, Any] | Strategy | Baseline = "fine-tuning",
        *,
        model: str = "minilm",
        head: str | Head = "linear",
        options: Mapping[str, Any] | None = None,
        metric: str | None = None,
        max_length: int = 256,
        precision: str = "auto",
        cache_dir: str | Path | None = None,
        random_state: int = 0,
    ) -> None:
        self.strategy = strategy
        self.model = model
        self.head = head
        self.options = options
        self.metric = metric
        self.max_length = max_length
        self.precision = precision
        self.cache_dir = cache_dir
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Trains on rows, of which a tenth is held out to choose the epoch.

        Under `strategy="auto"` another tenth is held out, and a quick comparison of baseline,
        frozen encoder, last layers and fine-tuning over two seeds decides.

        Args:
            X: N texts, pairs of texts, or lists of words.
            y: N labels, scores, or lists of tags.

        Raises:
            ValueError: there are no labels, or not as many as texts.
            TotuneError: a text is none, or training fails; as `totune.train`.
        """
        texts = self._examples(X)
        labels = self._labels(y, len(texts))
        examples = Examples(
            texts.texts, labels, texts.pairs, words=texts.words, rows=tuple(range(len(texts)))
        )
        self._kept = KeptFolder()
        if self.strategy == "auto":
            self._compare(examples, self._kept.path)
        else:
            self._train(examples, self._kept.path)
        self.strategy_ = str(self.model_.about["strategy"])
        return self

    def _train(self, examples: Examples, folder: Path) -> None:
        # The test split is of no use here; one row keeps all others for training.
        parts = complete(
            {"train": examples, "test": examples.take([0])},
            self._task,
            self.random_state,
            type(self).__name__,
            Remarks(),
        )
        data: dict[str, Any] = {name: _as_data(part) for name, part in parts.items()}
        place = folder / "model"
        self.model_: Predictor = train(
            data, self.strategy, out=place, seed=self.random_state, **self._settings(examples)
        )
        shutil.rmtree(place / "training")

    def _compare(self, examples: Examples, folder: Path) -> None:
        study = compare(
            _as_data(examples),
            out=folder / "study",
            strategies=AUTO_TAGGING if self._task == "tagging" else AUTO,
            seeds=[self.random_state, self.random_state + 1],
            split_seed=self.random_state,
            **self._settings(examples),
        )
        self.answer_ = study.advice.headline
        shutil.move(study.best, folder / "model")
        shutil.rmtree(study.folder)
        self.model_ = load_model(folder / "model")

    def _settings(self, examples: Examples) -> dict[str, Any]:
        names = ("model", "head", "metric", "max_length", "precision", "cache_dir")
        settings = {name: getattr(self, name) for name in names}
        columns = {"text": "text", "label": "label"}
        if self._task == "tagging":
            columns = {"text": "tokens", "label": "tags"}
        elif examples.pairs is not None:
            columns["pair"] = "pair"
        return {**settings, **columns, "task": self._task, "options": dict(self.options or {})}

    def predict(self, X: Any) -> Any:
        """A label (score, list of tags) for every row, [N].

        Raises:
            NotFittedError: before `fit`.
            TotuneError: a text is none.
        """
        check_is_fitted(self, "model_")
        examples = self._examples(X)
        outputs = self.model_.outputs(examples)
        task = self.model_.task
        return self._decoded(task.decode(task.predictions(outputs, examples.counts)))

    def _decoded(self, labels: list[Label]) -> Any:
        return np.asarray(labels)

    def _examples(self, X: Any) -> Examples:
        rows = _rows(X)
        pairs = self._task != "tagging" and _are_pairs(rows)
        columns = Columns("text", None, "pair" if pairs else None, self._task)
        return read_texts(rows, None, columns)

    def _labels(self, y: Any, count: int) -> tuple[Label, ...]:
        """The labels as training reads them."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        values = list(y)
        if len(values) != count:
            raise ValueError(
                f"X and y differ in length: {counted(count, 'text')}, "
                f"{counted(len(values), 'label')}."
            )
        labels = read_labels([_cell(value) for value in values], self._task)
        missing = [at for at, label in enumerate(labels) if label is None]
        if missing:
            at = missing[0]
            raise DataError(f"y[{at}] is {values[at]!r}, not a label of a {self._task} task.")
        return tuple(label for label in labels if label is not None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("model_", None)  # is read again from its folder
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_kept" in state:
            self.model_ = load_model(self._kept.path / "model")


class TotuneClassifier(ClassifierMixin, TextEstimator):  # type: ignore[misc]
    """A classifier of texts or of pairs of texts.

        cross_val_score(TotuneClassifier("last-2"), texts, labels)
        GridSearchCV(TotuneClassifier(), {"strategy": ["last-2", totune.LoRA(r=4)]})

    Args:
        strategy: how the encoder is adapted: a name of `totune list strategies` or `baselines`, an
            object such as `totune.LoRA(r=4)`, or "auto", which compares a few inside `fit`.
        model: the encoder: a hub id, a local folder, or an alias.
        head: the task network, a name or an object.
        options: options of strategy and head, as of `totune.train`.
        metric: what the best epoch is chosen by; accuracy if None.
        max_length: texts are cut after this many word pieces.
        precision: "auto", "bf16" or "fp32".
        cache_dir: where frozen features are kept; all fits share them.
        random_state: of initialisation, of the order of rows, and of the rows held out.

    Attributes:
        classes_: the classes as in `y`, sorted, [C].
        model_: the trained `Predictor`.
        strategy_: the name of the strategy that was trained.
    """

    _task = "classification"

    def _labels(self, y: Any, count: int) -> tuple[Label, ...]:
        labels = super()._labels(y, count)
        self.classes_ = np.unique(np.asarray(y))
        return labels

    def _decoded(self, labels: list[Label]) -> NDArray[Any]:
        places = {name: at for at, name in enumerate(self._names())}
        return np.asarray(self.classes_[[places[str(label)] for label in labels]])

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each class, [N, C] in the order of `classes_`.

        Raises:
            NotFittedError: before `fit`.
        """
        check_is_fitted(self, "model_")
        task = self.model_.task
        scores = task.scores(self.model_.outputs(self._examples(X)))
        assert scores is not None  # a classification has them
        known = list(getattr(task, "labels", ()))
        # A class whose few rows were all held out has no output: it is never predicted.
        places = [known.index(name) if name in known else -1 for name in self._names()]
        return np.hstack([scores, np.zeros((len(scores), 1), scores.dtype)])[:, places]

    def _names(self) -> list[str]:
        """The classes as training reads them, in the order of `classes_`."""
        return [str(name) for name in read_labels([_cell(c) for c in self.classes_], self._task)]


class TotuneRegressor(RegressorMixin, TextEstimator):  # type: ignore[misc]
    """A regressor on texts or on pairs of texts; takes the same as `TotuneClassifier`.

    Attributes:
        model_: the trained `Predictor`.
        strategy_: the name of the strategy that was trained.
    """

    _task = "regression"

    def _decoded(self, labels: list[Label]) -> NDArray[Any]:
        return np.asarray(labels, dtype=np.float64)


class TotuneTagger(TextEstimator):
    """A tagger of words: `X` are lists of words, `y` lists of as many tags.

    Takes the same as `TotuneClassifier`; `score` is the F1 of spans, or of words where tags mark
    no spans.

    Attributes:
        classes_: the tags, sorted.
        model_: the trained `Predictor`.
        strategy_: the name of the strategy that was trained.
    """

    _task = "tagging"

    def _labels(self, y: Any, count: int) -> tuple[Label, ...]:
        labels = super()._labels(y, count)
        self.classes_ = np.unique([tag for tags in labels for tag in tags])  # type: ignore[union-attr]
        return labels

    def _decoded(self, labels: list[Label]) -> list[list[str]]:
        return [list(map(str, tags)) for tags in labels]  # type: ignore[arg-type]

    def score(self, X: Any, y: Any) -> float:
        """The task's first metric on labelled sentences."""
        check_is_fitted(self, "model_")
        rows = (_rows(X), list(y))
        scores = self.model_.evaluate(rows)
        return scores[self.model_.task.metrics[0]]


class TotuneFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Vectors of a frozen encoder, [N, H]; kept in the cache, so that no text is encoded twice.

        make_pipeline(TotuneFeatures(), LogisticRegression())

    Args:
        model: the encoder: a hub id, a local folder, or an alias.
        layer: the layer that is read, 0 being the embeddings; the top one if None.
        pooling: over a text's tokens: "mean", "cls" or "max".
        max_length: texts are cut after this many word pieces.
        precision: "auto", "bf16" or "fp32".
        cache_dir: where vectors are kept.
    """

    def __init__(
        self,
        model: str = "minilm",
        *,
        layer: int | None = None,
        pooling: str = "mean",
        max_length: int = 256,
        precision: str = "auto",
        cache_dir: str | Path | None = None,
    ) -> None:
        self.model = model
        self.layer = layer
        self.pooling = pooling
        self.max_length = max_length
        self.precision = precision
        self.cache_dir = cache_dir

    def fit(self, X: Any, y: Any = None) -> Self:
        """Does nothing: the encoder is as it is."""
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """The vector of every text or pair of texts, [N, H] float32.

        Raises:
            ConfigError: the encoder has no such layer, or there is no such pooling.
            TotuneError: a text is none, or the encoder cannot be had.
        """
        from totune.encoders.loading import load_encoder
        from totune.encoders.mixing import View
        from totune.features import FeatureCache, compute
        from totune.inputs.encoded import tokenize
        from totune.machine import choose_precision

        rows = _rows(X)
        columns = Columns("text", None, "pair" if _are_pairs(rows) else None)
        examples = read_texts(rows, None, columns)
        if self.pooling not in ("mean", "cls", "max"):
            raise ConfigError(f"pooling={self.pooling!r} is none of mean, cls, max.")
        loaded = load_encoder(self.model)
        encoder = loaded.encoder.eval().requires_grad_(False)
        depth = encoder.depth if self.layer is None else self.layer
        if not 0 <= depth <= encoder.depth:
            raise ConfigError(f"layer={depth}: {loaded.name} has the layers 0 to {encoder.depth}.")
        pieces = tokenize(examples, loaded.tokenizer, min(self.max_length, encoder.max_length))
        precision = choose_precision(self.precision, encoder.device)
        cache = FeatureCache(None if self.cache_dir is None else Path(self.cache_dir))
        view = View((depth,), self.pooling)  # type: ignore[arg-type]
        found = cache.features(encoder, pieces, view, precision, "sentence vectors")
        if found is None:
            found = compute(encoder, pieces, view, precision == "bf16")
        vectors: NDArray[Any] = found.rows(np.arange(len(pieces)))[:, 0].float().numpy()
        self._n_features_out = vectors.shape[1]
        return vectors

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """The names totunefeatures0, totunefeatures1, ...; known after `transform`."""
        check_is_fitted(self, "_n_features_out")
        return np.asarray([f"totunefeatures{at}" for at in range(self._n_features_out)], object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags


def _rows(X: Any) -> list[Any]:
    """The rows of a list, a column, or an array or a frame of one or two columns."""
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] in (1, 2):
        return [row[0] for row in X] if X.shape[1] == 1 else [tuple(row) for row in X]
    if isinstance(X, str) or (isinstance(X, np.ndarray) and X.ndim != 1):
        shape = f" of shape {X.shape}" if isinstance(X, np.ndarray) else ""
        raise ValueError(
            f"X is {type(X).__name__}{shape}, not a list of texts: give a list, a column, or two "
            "columns of pairs."
        )
    return list(X)


def _are_pairs(rows: Sequence[Any]) -> bool:
    return bool(rows) and isinstance(rows[0], tuple | list)


def _cell(value: Any) -> str | None:
    """A label as a table's cell holds it."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    return as_cell(list(plain) if isinstance(plain, tuple) else plain)


def _as_data(examples: Examples) -> tuple[Sequence[Any], Sequence[Any]]:
    """Rows as `totune.train` takes them, (texts, labels)."""
    texts: Sequence[Any] = examples.texts
    if examples.words is not None:
        texts = examples.words
    elif examples.pairs is not None:
        texts = list(zip(examples.texts, examples.pairs, strict=True))
    return texts, examples.labels or ()
