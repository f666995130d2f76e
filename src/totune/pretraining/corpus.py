"""Text to learn from: files of paragraphs, a line each, with blank lines between documents.

A corpus is read as it is needed and never held whole: it is read once to count and check it, and
again for each use.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from totune.data.files import read_lines
from totune.data.hub import open_hub
from totune.errors import DataError

HUB = "hub:"
TEXT_COLUMN = "text"
HELD_OUT = 0.01  # of the documents, where no validation text is named

Document = list[str]  # its paragraphs, none of them blank


@dataclass(frozen=True)
class PretrainingCorpus:
    """Documents `first` to `last` of what the sources hold, one after the other.

    Attributes:
        sources: files, or `hub:` references.
        first: the first document that belongs to it.
        last: the one after the last.
        words: number of words, separated by white space.
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
        sources: text files, packed or not, or `hub:NAME` of a dataset with a text column,
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
            "put blank lines between documents, or name a text with `validation`."
        )
    border = corpus.last - count
    held = replace(corpus, first=border, words=0)
    words = sum(len(paragraph.split()) for paragraph in held.paragraphs())
    return replace(corpus, last=border, words=corpus.words - words), replace(held, words=words)


def _documents(sources: Sequence[str]) -> Iterator[Document]:
    for source in sources:
        yield from _of_hub(source) if source.startswith(HUB) else _of_file(Path(source))


def _of_file(path: Path) -> Iterator[Document]:
    if path.is_dir():
        raise DataError(f"{path} is no file; name the text files themselves.")
    document: Document = []
    anything = False
    for line in read_lines(path):
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


def _of_hub(source: str) -> Iterator[Document]:
    """The rows of a dataset's train split; each row's lines are its paragraphs."""
    rows = open_hub(source.removeprefix(HUB))["train"]
    if TEXT_COLUMN not in rows.sample.columns:
        held = ", ".join(rows.sample.columns)
        raise DataError(f"{source} has no column named {TEXT_COLUMN!r}; it has {held}.")
    for _, (text,) in rows.rows([TEXT_COLUMN]):
        lines = [line.strip() for line in (text or "").splitlines()]
        document = [line for line in lines if line]
        if document:
            yield document
