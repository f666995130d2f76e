"""Masked language modelling, with next-sentence prediction if wanted (Devlin et al. 2019, 3.1).

15% of the tokens are predicted. 80% of these are masked, 10% are replaced by a random token and
10% stay as they are; with whole-word masking, all of them are masked. Masking is that of
transformers' data collator.

Shapes: B rows, T positions, M predicted tokens, H hidden size, V vocabulary.
"""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    DataCollatorForLanguageModeling,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from totune.encoders.loading import quiet
from totune.pretraining.objective import Objective, StepBatch, perplexity
from totune.pretraining.rows import PackedRows, sample_pair

MASKED_SHARE = 0.15
MASKED, PAIRS = "masked", "pairs"  # the names of the losses
_HEADS = ("cls", "lm_head", "predictions")  # transformers' names of the head over hidden states
_IGNORED = -100
_WORD_STARTS = ("\u0120", "\u2581")  # how byte-level and SentencePiece tokenizers mark them


class MaskedObjective(Objective):
    """A transformers model with a head for masked tokens.

    Args:
        model: a `...ForMaskedLM`, or a `BertForPreTraining` for pairs.
        tokenizer: with a mask token.
        pairs: whether rows are pairs, and the model predicts whether the second part follows.
        whole_words: whether all pieces of a word are masked together.
        positions: the position embeddings, if they start with random weights.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        pairs: bool = False,
        whole_words: bool = False,
        positions: nn.Embedding | None = None,
    ) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer
        self.pairs, self.whole_words = pairs, whole_words
        self.special_tokens = SpecialTokens.of(tokenizer)
        self._positions = [] if positions is None else [positions]  # no second name for its weights
        shares = (1.0, 0.0) if whole_words else (0.8, 0.1)
        self._collator = DataCollatorForLanguageModeling(
            tokenizer,
            whole_word_mask=whole_words,
            mlm_probability=MASKED_SHARE,
            mask_replace_prob=shares[0],
            random_replace_prob=shares[1],
        )
        self._continues_word = _continuations(tokenizer) if whole_words else np.zeros(0)
        names = [name for name in _HEADS if hasattr(model, name)]
        self._head = names[0] if names else None

    def collate(self, rows: PackedRows, indices: np.ndarray, seed: int) -> StepBatch:
        random = np.random.default_rng(seed)
        framed, is_random = [], []
        for row in indices:
            if self.pairs:
                pair = sample_pair(rows, int(row), random)
                framed.append(self.special_tokens.add([pair.first, pair.second]))
                is_random.append(int(pair.is_random))
            else:
                framed.append(self.special_tokens.add([rows.read(int(row))]))
        ids, types, special = (_padded(column) for column in zip(*framed, strict=True))
        attention = _padded([np.ones(len(own[0]), dtype=np.int64) for own in framed])
        ids[attention == 0] = int(self.tokenizer.pad_token_id)
        special[attention == 0] = 1
        inputs, labels = self._masked(ids, special, seed)
        tensors = {
            "input_ids": inputs,
            "labels": labels,
            "attention_mask": torch.from_numpy(attention),
        }
        if "token_type_ids" in self.tokenizer.model_input_names:
            tensors["token_type_ids"] = torch.from_numpy(types)
        targets = {MASKED: int((labels != _IGNORED).sum())}
        if self.pairs:
            tensors["next_sentence_label"] = torch.tensor(is_random)
            targets[PAIRS] = len(is_random)
        return StepBatch(tensors, targets, int((special == 0).sum()))

    def micro_batch(self, batch: StepBatch, indices: np.ndarray) -> dict[str, Tensor]:
        inputs = {name: tensor[indices] for name, tensor in batch.tensors.items()}
        labels = inputs.pop("labels").flatten()
        predicted = torch.nonzero(labels != _IGNORED).flatten()
        return {**inputs, "predicted": predicted, "targets": labels[predicted]}

    def forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Sums over masked tokens, and over pairs; only masked tokens get logits."""
        given = dict(inputs)
        predicted, targets = given.pop("predicted"), given.pop("targets")
        is_random = given.pop("next_sentence_label", None)
        pooled = None
        if self._head is None:
            logits = self.model(**given).logits.flatten(0, 1)[predicted]
        else:
            output = self.model.base_model(**given)
            states = output.last_hidden_state.flatten(0, 1).index_select(0, predicted)  # [M, H]
            logits = self._logits(states)
            pooled = output.pooler_output if is_random is not None else None
        sums = _sums(MASKED, logits, targets)
        if is_random is not None:
            head: Any = self.model.get_submodule("cls.seq_relationship")
            sums |= _sums(PAIRS, head(pooled), is_random)
        return sums

    def countable_forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        return self.forward(inputs)

    def extend_positions(self, length: int) -> None:
        """Copies the first `length` position embeddings to the rest (Beltagy et al. 2020, 5).

        What has been learnt about tokens near each other then holds at every position.
        """
        for positions in self._positions:
            weight = positions.weight.data
            for start in range(length, len(weight), length):
                own = weight[start : start + length]
                own.copy_(weight[: len(own)])

    def metrics(self, sums: Mapping[str, float], targets: Mapping[str, int]) -> dict[str, float]:
        """Of masked tokens: perplexity (exp of the mean loss) and accuracy; accuracy of pairs."""
        metrics = {
            "perplexity": perplexity(sums[MASKED] / max(1, targets[MASKED])),
            "masked_accuracy": sums[f"{MASKED}_right"] / max(1, targets[MASKED]),
        }
        if PAIRS in targets:
            metrics["pairs_accuracy"] = sums[f"{PAIRS}_right"] / max(1, targets[PAIRS])
        return metrics

    def save(self, folder: Path) -> None:
        with quiet():
            self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def _logits(self, states: Tensor) -> Tensor:
        """Logits [M, V] of states [M, H]."""
        head: Any = getattr(self.model, str(self._head))
        predictions: nn.Module = getattr(head, "predictions", head)  # beside it: that of pairs
        logits: Tensor = predictions(states)
        return logits

    def _masked(self, ids: np.ndarray, special: np.ndarray, seed: int) -> tuple[Tensor, Tensor]:
        """Inputs with masks, and labels, [B, T] each."""
        collator = copy.copy(self._collator)  # another thread may collate at the same time
        collator.generator = torch.Generator().manual_seed(seed)
        offsets = _word_offsets(self._continues_word[ids]) if self.whole_words else None
        inputs, labels = collator.torch_mask_tokens(
            torch.from_numpy(ids), torch.from_numpy(special), offset_mapping=offsets
        )
        return inputs, labels


class SpecialTokens(NamedTuple):
    """The special tokens that a tokenizer puts around one text or two.

    Rows of ids get theirs from here, without their text.

    Attributes:
        before: ids before the first text.
        between: ids between two texts.
        after: ids after the last text.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> "SpecialTokens":
        """Those that the tokenizer puts around a pair of words."""
        encoded = tokenizer("a", "b", return_special_tokens_mask=True)
        ids, special = encoded["input_ids"], encoded["special_tokens_mask"]
        first = special.index(0)
        between = first + special[first:].index(1)
        second = between + special[between:].index(0)
        after = second + special[second:].index(1)
        return cls(tuple(ids[:first]), tuple(ids[between:second]), tuple(ids[after:]))

    def number(self, texts: int) -> int:
        """The number of special tokens around one text or two."""
        return len(self.before) + len(self.after) + (texts - 1) * len(self.between)

    def add(self, texts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One text or two with their special tokens.

        Returns:
            All ids, the text that each belongs to (0 or 1), and whether each is special, [T] each.
        """
        parts = [np.asarray(self.before), texts[0]]
        if len(texts) > 1:
            parts += [np.asarray(self.between), texts[1]]
        parts.append(np.asarray(self.after))
        types = [0, 0, 0, 1, 1] if len(texts) > 1 else [0, 0, 0]
        lengths = [len(part) for part in parts]
        special = [number % 2 == 0 for number in range(len(parts))]
        ids = np.concatenate(parts).astype(np.int64)
        return ids, np.repeat(types, lengths), np.repeat(special, lengths)


def _sums(name: str, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """The summed loss, and the number of correct predictions."""
    loss = functional.cross_entropy(logits.float(), targets, reduction="sum")
    return {name: loss, f"{name}_right": (logits.detach().argmax(dim=-1) == targets).sum()}


def _padded(rows: Any) -> np.ndarray:
    """Rows of different lengths as [B, T], padded with zeros."""
    width = max(len(row) for row in rows)
    padded = np.zeros((len(rows), width), dtype=np.int64)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded


def _continuations(tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
    """Whether each piece of the vocabulary continues a word, by the tokenizer's marks, [V]."""
    pieces = [str(tokenizer.convert_ids_to_tokens(number)) for number in range(len(tokenizer))]
    if any(piece.startswith(_WORD_STARTS) for piece in pieces):
        return np.asarray([not piece.startswith(_WORD_STARTS) for piece in pieces])
    return np.asarray([piece.startswith("##") for piece in pieces])


def _word_offsets(continues: np.ndarray) -> np.ndarray:
    """Offsets [B, T, 2] in an imagined text that has gaps between words only."""
    starts = np.cumsum(np.where(continues, 1, 2), axis=1)
    return np.stack([starts, starts + 1], axis=-1)
