"""The vocabulary of a language model: word pieces learnt from the corpus, or frequent words."""

import hashlib
import json
from pathlib import Path
from typing import Any

from tokenizers import BertWordPieceTokenizer
from transformers import AutoTokenizer, BertTokenizer, PreTrainedTokenizerBase

from totune.encoders.loading import quiet
from totune.encoders.sources import resolve
from totune.errors import DataError, ModelError
from totune.pretraining.corpus import PretrainingCorpus
from totune.pretraining.files import cached
from totune.pretraining.tokens import TokenStore
from totune.progress import Progress

LEAST_COUNT = 2  # occurrences that a word of the softmax has at least
_PIECES = "pieces.json"
_SPECIAL = 5  # special tokens, which come first
_VERSION = 1  # of how word pieces are learnt; to be raised when that changes


def learn_pieces(
    corpus: PretrainingCorpus,
    size: int,
    *,
    cased: bool,
    exact: bool,
    max_length: int,
    progress: Progress,
) -> BertTokenizer:
    """A WordPiece tokenizer whose vocabulary is learnt from a corpus, or was before.

    Args:
        corpus: text to learn from.
        size: number of word pieces, the five special ones included.
        cased: whether capitals and accents are kept.
        exact: whether fewer pieces than `size` are an error; they are reported otherwise.
        max_length: length that the tokenizer truncates texts to.
        progress: receives what is done.

    Raises:
        DataError: if the text has fewer pieces than `size`, and `exact`.
    """
    about = (_VERSION, corpus.fingerprint, corpus.first, corpus.last, size, cased)
    key = hashlib.sha256(repr(about).encode()).hexdigest()[:32]

    def make(folder: Path) -> None:
        progress.say(f"learning {size:,} word pieces from {corpus.words:,} words")
        learner = BertWordPieceTokenizer(lowercase=not cased)
        learner.train_from_iterator(corpus.paragraphs(), vocab_size=size, show_progress=False)
        # The learner numbers pieces of equal rank differently each time, so they are sorted: the
        # same text gives the same ids, and the same bits, everywhere.
        pieces = [learner.id_to_token(number) for number in range(learner.get_vocab_size())]
        ordered = [*pieces[:_SPECIAL], *sorted(pieces[_SPECIAL:])]
        ids = {piece: number for number, piece in enumerate(ordered)}
        (folder / _PIECES).write_text(json.dumps(ids), encoding="utf-8")

    def read(folder: Path) -> Any:
        return json.loads((folder / _PIECES).read_text(encoding="utf-8"))

    pieces = cached(key, make, read, progress)
    _check_size(len(pieces), size, "word pieces", exact, progress)
    return BertTokenizer(vocab=pieces, do_lower_case=not cased, model_max_length=max_length)


def read_tokenizer(reference: str) -> PreTrainedTokenizerBase:
    """A tokenizer with a mask, from a folder, a hub id or an alias.

    Raises:
        ModelError: if there is none, it is a slow one, or it has no mask or padding.
    """
    folder = resolve(reference, weights=False).folder
    try:
        with quiet():
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False
            )
    except Exception as error:  # parsers of several formats raise many kinds
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(f"The tokenizer in {folder} cannot be read: {reason}") from None
    check_tokenizer(tokenizer, reference)
    return tokenizer


def check_tokenizer(tokenizer: PreTrainedTokenizerBase, reference: str) -> None:
    """Raises `ModelError` for a tokenizer that masked language modelling cannot use."""
    requirements = {
        "a fast implementation (tokenizer.json)": tokenizer.is_fast,
        "a mask": tokenizer.mask_token_id is not None,
        "a padding token": tokenizer.pad_token_id is not None,
    }
    missing = [name for name, met in requirements.items() if not met]
    if missing:
        raise ModelError(
            f"The tokenizer of {reference} lacks {', '.join(missing)}, so no masked language model "
            "can be trained with it. Leave tokenizer out to learn one from the corpus."
        )


def frequent_words(store: TokenStore, size: int, *, exact: bool, progress: Progress) -> list[str]:
    """The words of a softmax: the most frequent, each with two occurrences or more.

    Args:
        store: of words.
        size: number of words.
        exact: whether fewer words are an error; they are reported otherwise.
        progress: receives the report of fewer words.

    Raises:
        DataError: if the text has fewer, and `exact`.
    """
    available = int((store.counts >= LEAST_COUNT).sum())
    _check_size(available, size, "words that occur twice or more", exact, progress)
    return store.words[: min(available, size)]


def _check_size(available: int, wanted: int, kind: str, exact: bool, progress: Progress) -> None:
    if available >= wanted and available > 0:
        return
    fewer = f"the text has only {available:,} {kind}"
    if exact or not available:
        raise DataError(
            f"vocab_size={wanted:,} is more than the text allows: {fewer}. Give more text, or a "
            "vocab_size of at most that."
        )
    progress.say(f"{fewer}, so there are fewer than the {wanted:,} of the preset")
