"""What a language model tells from each other: word pieces learnt from the corpus, or words."""

import hashlib
import json
from pathlib import Path

from tokenizers import BertWordPieceTokenizer
from transformers import AutoTokenizer, BertTokenizer, PreTrainedTokenizerBase

from totune.encoders.loading import quiet
from totune.encoders.sources import resolve
from totune.errors import DataError, ModelError
from totune.pretraining.corpus import Corpus
from totune.pretraining.files import kept
from totune.pretraining.store import Store
from totune.progress import Progress

LEAST = 2  # how often a word must come to be told from others
_PIECES = "pieces.json"
_VERSION = 1  # of how word pieces are learnt; to be raised when that changes


def learn_pieces(
    corpus: Corpus, size: int, *, cased: bool, exact: bool, max_length: int, progress: Progress
) -> BertTokenizer:
    """A WordPiece tokenizer whose vocabulary is learnt from a corpus, or was before.

    Args:
        corpus: to learn from.
        size: pieces, the five special ones included.
        cased: whether capitals and accents are kept.
        exact: whether fewer pieces than `size` are a fault; else they are told of.
        max_length: what the tokenizer cuts texts to.
        progress: told what is done.

    Raises:
        DataError: if the text has fewer pieces than wanted, and `exact`.
    """
    about = (_VERSION, corpus.fingerprint, corpus.first, corpus.last, size, cased)
    key = hashlib.sha256(repr(about).encode()).hexdigest()[:32]

    def make(folder: Path) -> None:
        progress.say(f"learning {size:,} word pieces from {corpus.words:,} words")
        learner = BertWordPieceTokenizer(lowercase=not cased)
        learner.train_from_iterator(corpus.paragraphs(), vocab_size=size, show_progress=False)
        (folder / _PIECES).write_text(json.dumps(learner.get_vocab()), encoding="utf-8")

    pieces = json.loads((kept(key, make) / _PIECES).read_text(encoding="utf-8"))
    _tell_fewer(len(pieces), size, "word pieces", exact, progress)
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
    lacks = [
        what
        for what, present in (
            ("a fast implementation (tokenizer.json)", tokenizer.is_fast),
            ("a mask", tokenizer.mask_token_id is not None),
            ("a padding token", tokenizer.pad_token_id is not None),
        )
        if not present
    ]
    if lacks:
        raise ModelError(
            f"The tokenizer of {reference} lacks {', '.join(lacks)}, so no masked language model "
            "can be trained with it. Leave --tokenizer out to learn one from the corpus."
        )


def frequent_words(store: Store, size: int, *, exact: bool, progress: Progress) -> list[str]:
    """The words of a softmax: the most frequent, none that comes once only.

    Args:
        store: of words.
        size: how many.
        exact: whether fewer are a fault; else they are told of.
        progress: told of fewer.

    Raises:
        DataError: if the text has fewer, and `exact`.
    """
    enough = int((store.counts >= LEAST).sum())
    _tell_fewer(min(enough, size), size, "words that come twice or more", exact, progress)
    return store.words[: min(enough, size)]


def _tell_fewer(found: int, wanted: int, what: str, exact: bool, progress: Progress) -> None:
    if found >= wanted and found > 0:
        return
    told = f"the text has only {found:,} {what}"
    if exact or not found:
        raise DataError(
            f"--vocab-size {wanted:,} is more than the text allows: {told}. Give more text, or a "
            "--vocab-size of at most that."
        )
    progress.say(f"{told}, so there are fewer than the {wanted:,} of the preset")
