"""What all runs of a study share: data, task, encoder, word pieces, cache."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from totune.data.examples import Dataset, Examples, Folds, SplitName
from totune.data.folds import fold_splits, row_numbers, rows_of_fold
from totune.encoders.loading import Loaded
from totune.encoders.mixing import View
from totune.features import FeatureCache, compute
from totune.inputs.encoded import EncodingOptions, frame, tokenize
from totune.inputs.encodings import EncodedSplit, Encodings
from totune.machine import Precision
from totune.progress import Progress
from totune.runs.callbacks import Callback
from totune.runs.cautions import MANY_UNKNOWN, cautions
from totune.runs.config import RunConfig
from totune.strategies.defaults import TrainingFacts, batch_size
from totune.tasks.base import Task
from totune.training.devices import Devices
from totune.training.inputs import Among, Split
from totune.training.trainer import TrainingSettings


@dataclass
class Context:
    """What all runs of a study share: data, encoder, cache, settings.

    Attributes:
        dataset: the three splits as text; of a cross-validation those of its first fold, unless
            it is `of_run`.
        task: the label space.
        pretrained: the encoder and its tokenizer, never trained itself; None where no run reads
            an encoder. What needs it asks for `loaded`.
        max_length: the longest input, in word pieces.
        split_seed: what fixed the splits that the data itself does not have.
        batch_by_rule: whether the number of train rows decides the batch size.
        callback: receives the events of the runs.
        tune_threshold: whether each run tunes on dev where a probability becomes a decision.
        folds: the cross-validation that runs are folds of, or None.
        tested: of a fold's run the numbers of the test rows among all rows, [N].
    """

    dataset: Dataset
    task: Task
    pretrained: Loaded | None
    cache: FeatureCache
    settings: TrainingSettings
    precision: Precision
    max_length: int
    devices: Devices
    progress: Progress
    split_seed: int = 0
    batch_by_rule: bool = False
    callback: Callback = field(default_factory=Callback)
    tune_threshold: bool = False
    folds: Folds | None = None
    tested: np.ndarray | None = None
    _splits: dict[tuple[SplitName, EncodingOptions], Split] = field(default_factory=dict)
    _of_folds: dict[tuple[int, int], "Context"] = field(default_factory=dict)
    _all_rows: dict[EncodingOptions, Encodings] = field(default_factory=dict)

    @property
    def loaded(self) -> Loaded:
        """The pretrained encoder and its tokenizer, for what cannot do without."""
        assert self.pretrained is not None, "no run of this study was to read an encoder"
        return self.pretrained

    def split(self, name: SplitName, encoding_options: EncodingOptions) -> Split:
        """A split tokenised as `encoding_options` says, once; tells how many texts were cut."""
        examples = self.dataset.splits()[name]
        # What does not concern this data must not tokenise it again.
        joint = encoding_options.pair_encoding if examples.pairs is not None else "joint"
        in_documents = examples.words is not None and examples.documents is not None
        key = name, EncodingOptions(joint, encoding_options.document_context and in_documents)
        if key not in self._splits:
            units = frame(examples, self.loaded.tokenizer, self.max_length, key[1])
            if self.tested is None:  # of several folds, the first tells for all
                self._tell_truncated(name, units)
                self._tell_unknown(name, units.pieces)
            labels = examples.labels or ()
            split = Split.labelled(name, units, self.task, labels)
            self._splits[key] = replace(split, among=self._among(examples, key[1]))
        return self._splits[key]

    def of_run(self, config: RunConfig) -> "Context":
        """What one run sees: of a fold's run its own splits, else the same.

        The runs of one fold, which follow each other, share what they tokenise.
        """
        if self.folds is None or config.fold is None:
            return self
        key = config.seed, config.fold
        if key not in self._of_folds:
            self._of_folds.clear()
            parts = fold_splits(self.folds, *key)
            train, dev, test = parts["train"], parts["dev"], parts["test"]
            dataset = replace(self.dataset, train=train, dev=dev, test=test)
            tested = rows_of_fold(self.folds, *key)
            own = replace(self, dataset=dataset, tested=tested, _splits={}, _of_folds={})
            self._of_folds[key] = own
        return replace(self._of_folds[key], callback=self.callback)

    @property
    def first_fold(self) -> "Context":
        """The first fold alone, as if it were the only split."""
        return replace(self, folds=None)

    def _among(self, examples: Examples, options: EncodingOptions) -> Among | None:
        """Where the inputs of a split stand among those of all rows; None without folds.

        Frozen features are then computed once for all folds; not where words are tagged, whose
        inputs hold several rows.
        """
        if self.folds is None or examples.words is not None:
            return None
        rows = row_numbers(self.folds, examples)
        if rows is None:
            return None
        if options not in self._all_rows:
            every = self.folds.rows
            framed = frame(every, self.loaded.tokenizer, self.max_length, options)
            self._all_rows[options] = framed.pieces
        pieces = self._all_rows[options]
        each = len(pieces) // len(self.folds.rows)  # two of a pair whose texts are encoded apart
        return Among(pieces, (each * rows[:, None] + np.arange(each)).ravel())

    def with_splits(self, parts: Mapping[SplitName, Examples]) -> "Context":
        """The same with other rows in these splits; label space and other splits stay."""
        others = {key: split for key, split in self._splits.items() if key[0] not in parts}
        rows = {**self.dataset.splits(), **parts}
        dataset = replace(self.dataset, train=rows["train"], dev=rows["dev"], test=rows["test"])
        settings = self.settings
        if self.batch_by_rule:
            rows_per_step = batch_size(len(dataset.train)) * self.devices.world
            settings = replace(settings, train_batch_size=rows_per_step)
        return replace(self, dataset=dataset, settings=settings, _splits=others)

    @property
    def facts(self) -> TrainingFacts:
        """What the defaults of strategies follow from."""
        data, width = self.dataset, None
        if self.pretrained is not None and not self.pretrained.encoder.reads_words:
            width = self.pretrained.encoder.width
        return TrainingFacts(len(data.train), len(data.dev), width, self.task.name)

    @property
    def tokenised(self) -> dict[tuple[SplitName, EncodingOptions], Split]:
        """The splits that were tokenised so far."""
        return dict(self._splits)

    def truncated(self) -> dict[str, int]:
        """How many inputs of each split were cut, as far as tokenised, at most."""
        found: dict[str, int] = {}
        for (name, _), split in self._splits.items():
            found[name] = max(found.get(name, 0), split.pieces.truncated)
        return found

    def cautions(self) -> list[str]:
        """What many texts lose on the way to the encoder, as far as tokenised, with remedies."""
        if not self._splits:
            return []
        cut: dict[str, float] = {}
        unknown: dict[str, float] = {}
        for (name, _), split in self._splits.items():
            pieces = split.pieces
            cut[name] = max(cut.get(name, 0.0), pieces.truncated / len(pieces))
            unknown[name] = max(unknown.get(name, 0.0), self._unknown(pieces))
        return cautions(cut, unknown, self.max_length, self.loaded.encoder.max_length)

    def _unknown(self, pieces: Encodings) -> float:
        """The share of word pieces that the vocabulary does not have, special ones left aside."""
        tokenizer = self.loaded.tokenizer
        special = tokenizer.num_special_tokens_to_add(pieces.second_starts is not None)
        own = len(pieces.input_ids) - len(pieces) * special
        return float((pieces.input_ids == tokenizer.unk_token_id).sum()) / max(1, own)

    def _tell_truncated(self, name: str, units: EncodedSplit) -> None:
        pieces = units.pieces
        if pieces.truncated:
            at_limit = self.max_length >= self.loaded.encoder.max_length
            remedy = "this encoder reads no more" if at_limit else "`max_length` raises the limit"
            share = 100 * pieces.truncated / len(pieces)
            what = "rows" if len(pieces) == len(units) else "texts"  # of pairs encoded apart
            self.progress.warn(
                f"{pieces.truncated:,} of {len(pieces):,} {name} {what} ({share:.1f}%) are longer "
                f"than {self.max_length} word pieces and were cut; {remedy}."
            )

    def _tell_unknown(self, name: str, pieces: Encodings) -> None:
        share = self._unknown(pieces)
        if share > MANY_UNKNOWN:
            self.progress.warn(
                f"{share:.1%} of the word pieces of {name} are not in the encoder's vocabulary; "
                "`model` names an encoder for the language and script of these texts."
            )

    def embed(self, examples: Examples) -> np.ndarray:
        """Mean-pooled top-layer vectors [N, H] of the frozen encoder, from the cache."""
        encoder = self.loaded.encoder
        among = self._among(examples, EncodingOptions("joint", False))
        if among is not None:
            pieces, numbers = among.pieces, among.inputs
        else:
            pieces = tokenize(examples, self.loaded.tokenizer, self.max_length)
            numbers = np.arange(len(pieces))
        view = View((encoder.depth,), "mean")
        features = self.cache.features(encoder, pieces, view, self.precision, "sentence vectors")
        if features is None:
            features = compute(encoder, pieces, view, self.precision == "bf16")
        return features.rows(numbers)[:, 0].float().numpy()
