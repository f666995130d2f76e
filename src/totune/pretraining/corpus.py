"""Text to learn from: files of paragraphs, a line each, with blank lines between documents.

A corpus is read as it is needed and never held whole: it is read once to count and check it, and
again for each use.
"""

import gzip
import hashlib
import lzma
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from totune.data.files import missing_file
from totune.data.hub import read_hub
from totune.errors import DataError

HUB = "hub:"
TEXT_COLUMN = "text"
HELD_OUT = 0.01  # of the documents, where no validation text is named

Document = list[str]  # its paragraphs, none of them blank
_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError)


@dataclass(frozen=True)
class PretrainingCorpus:
    """Documents `first` to `last` of what the sources hold, one after the other.

    Attributes:
        sources: files, or `hub:` references.
        first: the first document that belongs to it.
        last: the one after the last.
        words: how many there are, told apart by white space.
        fingerprint: a hash of every paragraph.
    """

    sources: tuple[str, ...]
    first: int
    last: int
    words: int
    fingerprint: str

    def __len__(self) -> int:
        return self.last - self.first

    def __iter__(self) -> Iterator[Document]:
        for number, document in enumerate(_documents(self.sources)):
            if number >= self.last:
                return
            if number >= self.first:
                yield document

    def paragraphs(self) -> Iterator[str]:
        """All paragraphs, for what needs no documents."""
        for document in self:
            yield from document


def read_corpus(sources: Sequence[str | Path], max_words: int | None = None) -> PretrainingCorpus:
    """Counts and checks a corpus.

    Args:
        sources: text files (.xz or .gz if packed), or `hub:NAME` of a dataset with a text column,
            whose rows are documents.
        max_words: whole documents are read until there are so many words.

    Raises:
        DataError: if a source is missing, unreadable, not UTF-8 or empty, or if there are fewer
            than two paragraphs in all.
    """
    named = tuple(map(str, sources))
    hasher = hashlib.sha256()
    documents = paragraphs = words = 0
    for document in _documents(named):
        for paragraph in document:
            hasher.update(paragraph.encode() + b"\n")
            words += len(paragraph.split())
        hasher.update(b"\n")
        paragraphs += len(document)
        documents += 1
        if max_words is not None and words >= max_words:
            break
    if paragraphs < 2:
        raise DataError(
            f"{', '.join(named)} holds {paragraphs} paragraph (a line with text); a corpus has a "
            "paragraph per line, and blank lines between documents."
        )
    return PretrainingCorpus(named, 0, documents, words, hasher.hexdigest()[:32])


def hold_out(
    corpus: PretrainingCorpus, share: float = HELD_OUT
) -> tuple[PretrainingCorpus, PretrainingCorpus]:
    """The corpus without its last documents, and these (at least one), as validation text.

    Raises:
        DataError: if it is a single document.
    """
    count = max(1, round(share * len(corpus)))
    if len(corpus) < 2:
        raise DataError(
            f"{', '.join(corpus.sources)} is one document, so none can be held out to validate on: "
            "put blank lines between documents, or name a text with --validation."
        )
    border = corpus.last - count
    held = replace(corpus, first=border, words=0)
    words = sum(len(paragraph.split()) for paragraph in held.paragraphs())
    return replace(corpus, last=border, words=corpus.words - words), replace(held, words=words)


def _documents(sources: Sequence[str]) -> Iterator[Document]:
    for source in sources:
        yield from _of_hub(source) if source.startswith(HUB) else _of_file(Path(source))


def _of_file(path: Path) -> Iterator[Document]:
    document: Document = []
    anything = False
    for line in _lines(path):
        text = line.strip()
        if text:
            document.append(text)
            anything = True
        elif document:
            yield document
            document = []
    if document:
        yield document
    if not anything:
        raise DataError(f"{path} holds no text. Is the download or export complete?")


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file, which are decoded one by one so that a fault has a place."""
    if not path.is_file():
        if path.exists():
            raise DataError(f"{path} is no file; name the text files themselves.")
        raise missing_file(path)
    with _reading(path) as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8").removeprefix("\ufeff")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{path} is not UTF-8: line {number:,} holds byte 0x{line[error.start]:02X} at "
                    f"place {error.start + 1:,}. Convert it first, for example with "
                    "iconv -f windows-1252 -t utf-8."
                ) from None


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    """The unpacked bytes of a file, packed or not."""
    openers: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}
    try:
        with openers.get(path.suffix, open)(path, "rb") as opened:
            yield opened
    except _DAMAGED as error:
        raise DataError(
            f"{path} cannot be read ({error}): it is damaged, incomplete or misnamed."
        ) from None


def _of_hub(source: str) -> Iterator[Document]:
    """The rows of a dataset's train split; each row's lines are its paragraphs."""
    table = read_hub(source.removeprefix(HUB)).splits["train"]
    if TEXT_COLUMN not in table.columns:
        held = ", ".join(table.columns)
        raise DataError(f"{source} has no column named {TEXT_COLUMN!r}; it has {held}.")
    for value in table.columns[TEXT_COLUMN]:
        lines = [line.strip() for line in str(value or "").splitlines()]
        document = [line for line in lines if line]
        if document:
            yield document
