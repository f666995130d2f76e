"""From documents to numbers, in several processes if there is much to do.

A tokeniser is called with some documents and knows nothing of the others, so each process has its
own; what they make is put together in the order of the documents.
"""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from tokenizers import Tokenizer

from totune import machine
from totune.encoders.words import EMPTY, END, Vocabulary, WordTokenizer
from totune.pretraining.corpus import Document
from totune.pretraining.sentences import split_sentences

CHUNK = 1_000_000  # characters that a process is given at a time
PARALLEL_FROM = 2_000_000  # words, from which starting processes is worth it
_NO_LIMIT = 2**31


@dataclass(frozen=True)
class Tokenised:
    """Some documents as numbers, end to end.

    Attributes:
        ids: of all pieces, [N].
        sentences: how many pieces each sentence has, [S].
        documents: how many sentences each document has, [D].
        words: what the numbers after `EMPTY` mean here; none if their meaning is fixed.
    """

    ids: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray
    words: list[str] = field(default_factory=list)


Tokenise = Callable[[list[Document]], Tokenised]


@dataclass(frozen=True)
class Pieces:
    """The word pieces of a fast tokenizer, without special ones.

    Attributes:
        rules: the tokenizer as JSON.
    """

    rules: str

    def __call__(self, documents: list[Document]) -> Tokenised:
        found = _sentences(documents)
        flat = [sentence for sentences in found for sentence in sentences]
        encoded = self._tokenizer.encode_batch_fast(flat, add_special_tokens=False)
        return _joined([one.ids for one in encoded], [len(sentences) for sentences in found])

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        tokenizer = Tokenizer.from_str(self.rules)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def __getstate__(self) -> dict[str, str]:
        return {"rules": self.rules}


@dataclass(frozen=True)
class Words:
    """Whole words, as encoders that read characters take them; `END` follows each sentence.

    Attributes:
        rules: how words are told apart.
    """

    rules: str = WordTokenizer.backend_tokenizer.to_str()

    def __call__(self, documents: list[Document]) -> Tokenised:
        vocabulary = Vocabulary()
        tokenizer = WordTokenizer(vocabulary, _NO_LIMIT)
        found = _sentences(documents)
        flat = [sentence for sentences in found for sentence in sentences]
        ids = tokenizer(flat, return_attention_mask=False)["input_ids"] if flat else []
        ended = [[] if own == [EMPTY] else [*own, END] for own in ids]
        words = list(vocabulary.words(EMPTY + 1))
        return _joined(ended, [len(sentences) for sentences in found], words)


def tokenise(
    documents: Iterable[Document], how: Tokenise, words: int
) -> Iterator[tuple[int, Tokenised]]:
    """Documents in order, some at a time: how many, and their numbers.

    Args:
        documents: to tokenise.
        how: can be pickled.
        words: about how many there are, which decides on the number of processes.
    """
    workers = machine.describe().cores
    if workers == 1 or words < PARALLEL_FROM:
        for chunk in _chunks(documents):
            yield len(chunk), how(chunk)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _install, (how,)) as pool:
        running: deque[tuple[int, Future[Tokenised]]] = deque()
        for chunk in _chunks(documents):
            running.append((len(chunk), pool.submit(_work, chunk)))
            if len(running) > 2 * workers:
                count, future = running.popleft()
                yield count, future.result()
        for count, future in running:
            yield count, future.result()


_installed: list[Tokenise] = []  # of a worker process: its tokeniser


def _install(how: Tokenise) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    _installed[:] = [how]


def _work(documents: list[Document]) -> Tokenised:
    return _installed[0](documents)


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


def _sentences(documents: list[Document]) -> list[list[str]]:
    return [
        [sentence for paragraph in document for sentence in split_sentences(paragraph)]
        for document in documents
    ]


def _joined(
    sentences: list[list[int]], documents: list[int], words: list[str] | None = None
) -> Tokenised:
    """Sentences end to end; one of which nothing is left has no pieces."""
    return Tokenised(
        np.asarray([number for own in sentences for number in own], dtype=np.uint32),
        np.asarray([len(own) for own in sentences], dtype=np.int64),
        np.asarray(documents, dtype=np.int64),
        words or [],
    )
