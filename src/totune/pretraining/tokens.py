"""The tokens of a corpus on disk: made once, memory-mapped, so they need not fit in memory.

A store is a folder named after everything its content depends on: the text, the tokenizer, and
which documents are held out. A second pretraining on the same text finds it there. A large corpus
is tokenised by several processes, which receive documents in chunks; a chunk is tokenised without
knowledge of the others, and the chunks are put together in the order of the documents.

The tokens lie end to end in one flat file. `datasets`, with a memory-mapped Arrow row for each row
of text, was measured beside it on 2.5 million words and two cores. It tokenises as fast, but takes
8 to 14 times as long to read rows in the order of training (2 to 3 times through raw Arrow slices
in place of its NumPy format), 1.3 to 2.4 times as long to collate a step (1.1 to 1.6 times), 11 to
22 times as long to pack rows, and 3 to 5 times the disk, since each row length is another table.
"""

import hashlib
import json
import multiprocessing
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from totune.encoders.words import EMPTY, END, Vocabulary, WordTokenizer
from totune.pretraining.corpus import Document, PretrainingCorpus
from totune.pretraining.files import cached
from totune.pretraining.sentences import split_sentences
from totune.progress import Progress

VERSION = 1  # of the tokens of a text; to be raised when that changes
CHUNK = 1_000_000  # characters that a process receives at a time
PARALLEL_FROM = 2_000_000  # words from which starting processes pays
_TOKENS, _SENTENCES, _DOCUMENTS = "pieces.bin", "sentences.npy", "documents.npy"
_WORDS, _COUNTS, _FACTS = "words.txt", "counts.npy", "store.json"
_MAPPED = 1 << 24  # tokens that are rewritten at a time
_NO_LIMIT = 2**31


@dataclass(frozen=True)
class TokenStore:
    """Documents end to end: first those to train on, then those held out.

    Attributes:
        tokens: ids of all tokens, [N].
        sentences: where each sentence begins, and the end of the last, [S + 1].
        documents: the first sentence of each document, and the end of the last, [D + 1].
        train_documents: number of documents to train on.
        words: meaning of the ids after `EMPTY`, the most frequent first; empty for word pieces.
        counts: occurrences of each of `words` in the text to train on.
    """

    tokens: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray
    train_documents: int
    words: list[str]
    counts: np.ndarray


class TokenisedChunk(NamedTuple):
    """Some documents as tokens, end to end.

    Attributes:
        ids: of all tokens, [N].
        sentences: number of tokens of each sentence, [S].
        documents: number of sentences of each document, [D].
        words: meaning of the ids after `EMPTY` in this chunk; empty for word pieces.
    """

    ids: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray
    words: list[str]


def open_store(
    train: PretrainingCorpus, held_out: PretrainingCorpus, tokenizer: Any, progress: Progress
) -> TokenStore:
    """The tokens of two corpora, which are tokenised now unless they were before.

    Args:
        train: text to train on.
        held_out: text to validate on.
        tokenizer: a fast tokenizer, whose word pieces are kept without special ones, or a
            `WordTokenizer`, whose words are numbered by their frequency in `train`.
        progress: receives the number of tokenised documents.

    Raises:
        RunError: if the store cannot be written.
    """
    rules: str = tokenizer.backend_tokenizer.to_str()
    whole_words = isinstance(tokenizer, WordTokenizer)
    narrow = not whole_words and len(tokenizer) <= 2**16
    spans = [(corpus.fingerprint, corpus.first, corpus.last) for corpus in (train, held_out)]
    key = hashlib.sha256(repr((VERSION, spans, rules)).encode())

    def make(folder: Path) -> None:
        writer = _StoreWriter(folder, np.dtype(np.uint16 if narrow else np.uint32))
        writer.write(train, held_out, None if whole_words else rules, progress)

    return cached(key.hexdigest()[:32], make, _read_store, progress)


def _read_store(folder: Path) -> TokenStore:
    """Raises `ValueError` where files do not fit each other."""
    facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    text = (folder / _WORDS).read_text(encoding="utf-8")
    store = TokenStore(
        # A plain view: slicing one takes half the time that slicing a `np.memmap` does.
        np.asarray(np.memmap(folder / _TOKENS, np.dtype(facts["dtype"]), "r")),
        np.load(folder / _SENTENCES, allow_pickle=False),
        np.load(folder / _DOCUMENTS, allow_pickle=False),
        facts["train_documents"],
        text.split("\n") if text else [],
        np.load(folder / _COUNTS, allow_pickle=False),
    )
    ends = int(store.sentences[-1]), int(store.documents[-1]), len(store.words)
    if ends != (len(store.tokens), len(store.sentences) - 1, len(store.counts)):
        raise ValueError("its files do not fit each other")
    return store


class _StoreWriter:
    """Fills a folder; whole words get their final ids, by frequency, at the end.

    Args:
        folder: to fill.
        dtype: of the ids.
    """

    def __init__(self, folder: Path, dtype: np.dtype[Any]) -> None:
        self._folder, self._dtype = folder, dtype
        self._numbers: dict[str, int] = {}  # of words, in the order of appearance, from 0
        self._counts = np.zeros(0, dtype=np.int64)

    def write(
        self,
        train: PretrainingCorpus,
        held_out: PretrainingCorpus,
        rules: str | None,
        progress: Progress,
    ) -> None:
        sentences: list[np.ndarray] = [np.zeros(1, dtype=np.int64)]
        documents: list[np.ndarray] = [np.zeros(1, dtype=np.int64)]
        total = len(train) + len(held_out)
        with (
            (self._folder / _TOKENS).open("wb") as file,
            progress.bar("tokenising documents", total) as bar,
        ):
            for corpus in (train, held_out):
                for chunk in tokenise(corpus, rules, corpus.words):
                    ids = self._renumbered(chunk, counted=corpus is train)
                    ids.astype(self._dtype).tofile(file)
                    sentences.append(chunk.sentences)
                    documents.append(chunk.documents)
                    bar.advance(len(chunk.documents))
        np.save(self._folder / _SENTENCES, np.concatenate(sentences).cumsum())
        np.save(self._folder / _DOCUMENTS, np.concatenate(documents).cumsum())
        self._rank_words()
        facts = {"dtype": self._dtype.name, "train_documents": len(train)}
        (self._folder / _FACTS).write_text(json.dumps(facts) + "\n", encoding="utf-8")

    def _renumbered(self, chunk: TokenisedChunk, counted: bool) -> np.ndarray:
        """The ids of a chunk as those of the whole corpus."""
        if not chunk.words:
            return chunk.ids
        own = [self._numbers.setdefault(word, len(self._numbers)) for word in chunk.words]
        numbers = np.concatenate([np.arange(EMPTY + 1), np.asarray(own) + EMPTY + 1])
        new = len(self._numbers) - len(self._counts)
        self._counts = np.concatenate([self._counts, np.zeros(new, dtype=np.int64)])
        ids: np.ndarray = numbers[chunk.ids]
        if counted:
            occurrences = np.bincount(ids, minlength=len(self._numbers) + EMPTY + 1)
            self._counts += occurrences[EMPTY + 1 :]
        return ids

    def _rank_words(self) -> None:
        """Writes words and counts, the most frequent first, and numbers tokens accordingly."""
        order = np.argsort(-self._counts, kind="stable")
        words = list(self._numbers)
        text = "\n".join(words[at] for at in order)
        (self._folder / _WORDS).write_text(text, encoding="utf-8")
        np.save(self._folder / _COUNTS, self._counts[order])
        if not words:
            return
        rank = np.empty(len(order) + EMPTY + 1, dtype=self._dtype)
        rank[: EMPTY + 1] = np.arange(EMPTY + 1)
        rank[order + EMPTY + 1] = np.arange(len(order)) + EMPTY + 1
        tokens = np.memmap(self._folder / _TOKENS, self._dtype, "r+")
        for start in range(0, len(tokens), _MAPPED):
            part = slice(start, start + _MAPPED)
            tokens[part] = rank[tokens[part]]
        tokens.flush()


def tokenise(
    documents: Iterable[Document], rules: str | None, words: int
) -> Iterator[TokenisedChunk]:
    """Documents in order, some at a time, as tokens.

    Args:
        documents: to tokenise.
        rules: a fast tokenizer as JSON; None for whole words, with `END` after each sentence.
        words: about how many the documents have, which decides on the number of processes.
    """
    from totune import machine  # imports torch, which a process that only tokenises does not need

    workers = machine.usable_cores()
    if workers == 1 or words < PARALLEL_FROM:
        for chunk in _chunks(documents):
            yield _tokenised(chunk, rules)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _prepare_worker, (rules,)) as pool:
        running: deque[Future[TokenisedChunk]] = deque()
        for chunk in _chunks(documents):
            running.append(pool.submit(_tokenised_by_worker, chunk))
            if len(running) > 2 * workers:
                yield running.popleft().result()
        for future in running:
            yield future.result()


_worker_rules: list[str | None] = []  # of a worker process, sent once since they can be large


def _prepare_worker(rules: str | None) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    _worker_rules[:] = [rules]


def _tokenised_by_worker(documents: list[Document]) -> TokenisedChunk:
    return _tokenised(documents, _worker_rules[0])


def _chunks(documents: Iterable[Document]) -> Iterator[list[Document]]:
    chunk: list[Document] = []
    size = 0
    for document in documents:
        chunk.append(document)
        size += sum(map(len, document))
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _tokenised(documents: list[Document], rules: str | None) -> TokenisedChunk:
    """A chunk as tokens, without sentences of which nothing is left."""
    split = [
        [sentence for paragraph in document for sentence in split_sentences(paragraph)]
        for document in documents
    ]
    flat = [sentence for document in split for sentence in document]
    ids, words = _words_of(flat) if rules is None else (_pieces_of(flat, rules), [])
    each = iter(ids)
    kept = [[own for own in islice(each, len(document)) if own] for document in split]
    sentences = [own for document in kept for own in document]
    return TokenisedChunk(
        np.asarray([token for own in sentences for token in own], dtype=np.uint32),
        np.asarray([len(own) for own in sentences], dtype=np.int64),
        np.asarray([len(document) for document in kept], dtype=np.int64),
        words,
    )


def _pieces_of(sentences: list[str], rules: str) -> list[list[int]]:
    """Word pieces of sentences, without special ones."""
    encoded = _tokenizer(rules).encode_batch_fast(sentences, add_special_tokens=False)
    return [one.ids for one in encoded]


@lru_cache(maxsize=1)
def _tokenizer(rules: str) -> Tokenizer:
    tokenizer = Tokenizer.from_str(rules)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _words_of(sentences: list[str]) -> tuple[list[list[int]], list[str]]:
    """Words of sentences, numbered in the order of appearance, and these words."""
    vocabulary = Vocabulary()
    tokenizer = WordTokenizer(vocabulary, _NO_LIMIT)
    ids = tokenizer(sentences, return_attention_mask=False)["input_ids"] if sentences else []
    ended = [[] if own == [EMPTY] else [*own, END] for own in ids]
    return ended, list(vocabulary.words(EMPTY + 1))
