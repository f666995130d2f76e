"""Masked language modelling, with next-sentence prediction if wanted (Devlin et al. 2019, 3.1).

15% of the pieces are to be told from the others. 80% of these are masked, 10% are another piece of
chance and 10% stay as they are; where whole words are masked, all of them are. Masking is that of
transformers' data collator.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
from totune.pretraining.framing import Frame
from totune.pretraining.objective import Drawn, Objective, perplexity
from totune.pretraining.pairs import draw_pair
from totune.pretraining.rows import Rows

MASKED_SHARE = 0.15
MASKED, PAIRS = "masked", "pairs"  # the names of the losses
_HEADS = ("cls", "lm_head", "predictions")  # what transformers calls the head over states
_IGNORED = -100


class MaskedObjective(Objective):
    """A transformers model with a head for masked pieces.

    Args:
        model: a `...ForMaskedLM`, or a `BertForPreTraining` for pairs.
        tokenizer: with a mask.
        pairs: whether rows are pairs, and what follows is told.
        whole_words: whether all pieces of a word are masked together.
        places: the module that knows places in a row, if it starts from chance.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        pairs: bool = False,
        whole_words: bool = False,
        places: nn.Embedding | None = None,
    ) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer
        self.pairs, self.whole_words = pairs, whole_words
        self.frame = Frame.of(tokenizer)
        self._places = [] if places is None else [places]  # no second name for its weights
        shares = (1.0, 0.0) if whole_words else (0.8, 0.1)
        self._collator = DataCollatorForLanguageModeling(
            tokenizer,
            whole_word_mask=whole_words,
            mlm_probability=MASKED_SHARE,
            mask_replace_prob=shares[0],
            random_replace_prob=shares[1],
        )
        self._continues = _continuations(tokenizer) if whole_words else np.zeros(0)
        names = [name for name in _HEADS if hasattr(model, name)]
        self._head = names[0] if names else None

    def draw(self, rows: Rows, which: np.ndarray, seed: int) -> Drawn:
        random = np.random.default_rng(seed)
        texts, apart = [], []
        for row in which:
            if self.pairs:
                first, second, elsewhere = draw_pair(rows, int(row), random)
                texts.append(self.frame.put([first, second]))
                apart.append(int(elsewhere))
            else:
                texts.append(self.frame.put([rows.read(int(row))]))
        ids, sides, special = (_padded(column) for column in zip(*texts, strict=True))
        real = _padded([np.ones(len(own[0]), dtype=np.int64) for own in texts])
        ids[real == 0] = int(self.tokenizer.pad_token_id)
        special[real == 0] = 1
        inputs, labels = self._masked(ids, special, seed)
        tensors = {"input_ids": inputs, "labels": labels, "attention_mask": torch.from_numpy(real)}
        if "token_type_ids" in self.tokenizer.model_input_names:
            tensors["token_type_ids"] = torch.from_numpy(sides)
        targets = {MASKED: int((labels != _IGNORED).sum())}
        if self.pairs:
            tensors["next_sentence_label"] = torch.tensor(apart)
            targets[PAIRS] = len(apart)
        return Drawn(tensors, targets, int((special == 0).sum()))

    def part(self, drawn: Drawn, own: np.ndarray) -> dict[str, Tensor]:
        part = {name: tensor[own] for name, tensor in drawn.tensors.items()}
        labels = part.pop("labels").flatten()
        places = torch.nonzero(labels != _IGNORED).flatten()
        return {**part, "places": places, "targets": labels[places]}

    def forward(self, part: dict[str, Tensor]) -> dict[str, Tensor]:
        """Sums over masked pieces, and over pairs; logits are made of masked pieces alone."""
        inputs = dict(part)
        places, targets = inputs.pop("places"), inputs.pop("targets")
        apart = inputs.pop("next_sentence_label", None)
        if self._head is None:
            logits = self.model(**inputs).logits.flatten(0, 1)[places]
            pooled = None
        else:
            output = self.model.base_model(**inputs)
            states = output.last_hidden_state.flatten(0, 1).index_select(0, places)  # [M, H]
            logits = self._predictions(states)
            pooled = output.pooler_output if apart is not None else None
        sums = _sums(MASKED, logits, targets)
        if apart is not None:
            head: Any = self.model.get_submodule("cls.seq_relationship")
            sums |= _sums(PAIRS, head(pooled), apart)
        return sums

    def count(self, part: dict[str, Tensor]) -> dict[str, Tensor]:
        return self.forward(part)

    def turn(self, length: int) -> None:
        """Places that were never seen begin as copies of those that were (Beltagy et al. 2020, 5).

        So what has been learnt of pieces near each other holds at every place.
        """
        for places in self._places:
            weight = places.weight.data
            for start in range(length, len(weight), length):
                own = weight[start : start + length]
                own.copy_(weight[: len(own)])

    def metrics(self, sums: Mapping[str, float], targets: Mapping[str, int]) -> dict[str, float]:
        """Of masked pieces: perplexity (exp of the mean loss) and accuracy; accuracy of pairs."""
        found = {
            "perplexity": perplexity(sums[MASKED] / max(1, targets[MASKED])),
            "masked_accuracy": sums[f"{MASKED}_right"] / max(1, targets[MASKED]),
        }
        if PAIRS in targets:
            found["pairs_accuracy"] = sums[f"{PAIRS}_right"] / max(1, targets[PAIRS])
        return found

    def save(self, folder: Path) -> None:
        with quiet():
            self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def _predictions(self, states: Tensor) -> Tensor:
        """Logits [M, V] of states [M, H]."""
        head: Any = getattr(self.model, str(self._head))
        predictions: nn.Module = getattr(head, "predictions", head)  # beside it: that of pairs
        logits: Tensor = predictions(states)
        return logits

    def _masked(self, ids: np.ndarray, special: np.ndarray, seed: int) -> tuple[Tensor, Tensor]:
        """The pieces with masks, and the labels."""
        collator = copy.copy(self._collator)  # another thread may draw at the same time
        collator.generator = torch.Generator().manual_seed(seed)
        offsets = _offsets(self._continues[ids]) if self.whole_words else None
        inputs, labels = collator.torch_mask_tokens(
            torch.from_numpy(ids), torch.from_numpy(special), offset_mapping=offsets
        )
        return inputs, labels


def _sums(name: str, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """The summed loss, and how many were right."""
    loss = functional.cross_entropy(logits.float(), targets, reduction="sum")
    return {name: loss, f"{name}_right": (logits.detach().argmax(dim=-1) == targets).sum()}


def _padded(columns: Any) -> np.ndarray:
    """Rows of unlike length as [B, T], zeros behind them."""
    width = max(len(row) for row in columns)
    padded = np.zeros((len(columns), width), dtype=np.int64)
    for row, values in zip(padded, columns, strict=True):
        row[: len(values)] = values
    return padded


def _continuations(tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
    """Of each piece, whether it goes on with a word, by how the tokenizer marks it."""
    pieces = [str(tokenizer.convert_ids_to_tokens(number)) for number in range(len(tokenizer))]
    marks_beginnings = any(piece.startswith(("\u0120", "\u2581")) for piece in pieces)
    if marks_beginnings:
        return np.asarray([not piece.startswith(("\u0120", "\u2581")) for piece in pieces])
    return np.asarray([piece.startswith("##") for piece in pieces])


def _offsets(continues: np.ndarray) -> np.ndarray:
    """Places [B, T, 2] in an imagined text where words have gaps between them."""
    starts = np.cumsum(np.where(continues, 1, 2), axis=1)
    return np.stack([starts, starts + 1], axis=-1)
