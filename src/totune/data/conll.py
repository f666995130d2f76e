"""CoNLL columns: a word per line with its tags, a blank line after each sentence.

Fields are separated by tabs, or else by white space. `-DOCSTART-` lines begin documents. Lines that
begin with # and stand before a sentence are comments unless they have as many fields as a word and
a tag that other words have.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from totune.data.tables import Cell, Remarks, SourceTable, as_cell
from totune.data.tagging.schemes import is_tag
from totune.errors import DataError
from totune.text import counted, listed

DOCUMENT_MARK = "-DOCSTART-"
DOCUMENT_COLUMN = "document"
SAMPLE = 2000  # lines that the format is recognised by
_JUDGED = 20_000  # lines that tell how fields are separated
_SHARE = 0.8  # of them that must be words with tags
_NAMES = {1: ["tokens"], 2: ["tokens", "tags"], 4: ["tokens", "pos", "chunk", "tags"]}


def is_conll(lines: Sequence[str]) -> bool:
    """Whether the lines of a text file are words with span tags (IOB1, IOB2, IOBES) in sentences.

    A marked document, too, is recognised by it; the first lines tell.
    """
    lines = lines[:SAMPLE]
    if next((line for line in lines if line.strip()), "").lstrip().startswith(DOCUMENT_MARK):
        return True
    words = [line for line in lines if line.strip() and not line.startswith("# ")]
    if not words or all(line.strip() for line in lines):
        return False
    split, width = _splitter(words)
    ends = [fields[-1] for fields in map(split, words) if len(fields) == width]
    tags = [tag for tag in ends if is_tag(tag)]
    return width > 1 and len(tags) >= _SHARE * len(words) and len(set(tags)) > 1


def is_words_only(lines: Sequence[str]) -> bool:
    """Whether lines hold one word each, in sentences that blank lines separate."""
    lines = "\n".join(lines).strip().split("\n", SAMPLE)[:SAMPLE]
    blanks = sum(not line.strip() for line in lines)
    return all(len(line.split()) <= 1 for line in lines) and 0 < 2 * blanks < len(lines) - 1


def read_conll(lines: Iterable[str], path: Path) -> SourceTable:
    """Reads sentences: a cell of a column is the JSON list of a sentence's fields.

    The columns are tokens, pos, chunk and tags for four fields, tokens and tags for two, else
    tokens, column2, ... and tags; and `document`, its number, where documents are marked.

    Args:
        lines: the file's lines.
        path: named in messages.

    Raises:
        DataError: most sentences have a line with another number of fields than most lines.
    """
    blocks = list(_blocks(lines))
    words = [line for block in blocks for line in block.lines if not line.startswith("#")]
    if not words:
        raise DataError(f"{path} holds no sentences: no line has a word.")
    split, width = _splitter(words[:_JUDGED])
    hashes = any(block.lines[0].startswith("#") for block in blocks)
    tags = {split(line)[-1] for line in words} if hashes else set()

    def is_comment(line: str) -> bool:
        return line[0] == "#" and (len(split(line)) != width or split(line)[-1] not in tags)

    read = (_sentence(block, split, width, is_comment) for block in blocks)
    sentences = [sentence for sentence in read if sentence is not None]
    good = [sentence for sentence in sentences if not sentence.malformed]
    malformed = tuple(line for sentence in sentences for line in sentence.malformed)
    warnings = _malformed(path, malformed, len(sentences), len(good), width)
    columns: dict[str, list[Cell]] = {
        name: [as_cell([fields[at] for fields in sentence.words]) for sentence in good]
        for at, name in enumerate(_names(width))
    }
    marked = any(block.document for block in blocks)
    if marked:
        columns[DOCUMENT_COLUMN] = [str(sentence.document) for sentence in good]
    return SourceTable(
        source=str(path),
        columns=columns,
        rows=[sentence.line for sentence in good],
        unit="line",
        ragged=malformed,
        remarks=Remarks(warnings=warnings),
        document=DOCUMENT_COLUMN if marked else None,
    )


@dataclass
class _Block:
    """Lines between blank ones: the first one's number, the document's, the lines."""

    line: int
    document: int
    lines: list[str] = field(default_factory=list)


@dataclass
class _Sentence:
    """The fields of each word; numbers of the lines with too few or too many."""

    line: int
    document: int
    words: list[list[str]]
    malformed: list[int]


def _blocks(lines: Iterable[str]) -> Iterator[_Block]:
    """What blank lines and document marks separate."""
    block = _Block(1, 0)
    for number, line in enumerate(lines, start=1):
        mark = line.startswith(DOCUMENT_MARK)
        if line.strip() and not mark:
            block.lines.append(line)
            continue
        if block.lines:
            yield block
        block = _Block(number + 1, block.document + mark)
    if block.lines:
        yield block


def _sentence(
    block: _Block, split: Callable[[str], list[str]], width: int, is_comment: Callable[[str], bool]
) -> _Sentence | None:
    """The words of a block after its comments; None if it holds comments alone."""
    comments = len(list(takewhile(is_comment, block.lines)))
    first = block.line + comments
    words = [split(line) for line in block.lines[comments:]]
    malformed = [first + at for at, word in enumerate(words) if len(word) != width]
    return _Sentence(first, block.document, words, malformed) if words else None


def _splitter(lines: Sequence[str]) -> tuple[Callable[[str], list[str]], int]:
    """How lines are split into fields, and into how many: so that most have the same number."""
    best: tuple[int, Callable[[str], list[str]], int] = (0, _by_space, 1)
    for split in (_by_tab, _by_space):
        (width, count), *_ = Counter(len(split(line)) for line in lines).most_common(1)
        if width > 1 and count > best[0]:
            best = count, split, width
    return best[1], best[2]


def _by_tab(line: str) -> list[str]:
    return [part.strip(" ") for part in line.rstrip(" \t").split("\t")]


def _by_space(line: str) -> list[str]:
    return [part for part in line.replace("\t", " ").split(" ") if part]


def _names(width: int) -> list[str]:
    return _NAMES.get(width) or ["tokens", *(f"column{at}" for at in range(2, width)), "tags"]


def _malformed(
    path: Path, lines: Sequence[int], sentences: int, good: int, width: int
) -> list[str]:
    """A warning on malformed lines; raises `DataError` if most sentences have one."""
    if not lines:
        return []
    message = (
        f"{path}: {counted(len(lines), 'line')} without the usual {counted(width, 'field')} "
        f"({listed(lines, 'line')})"
    )
    left_out = sentences - good
    if 2 * left_out > sentences:
        raise DataError(
            f"{message}, in {left_out:,} of {counted(sentences, 'sentence')}. Each line should be "
            "a word with its tags, separated by tabs or spaces; a blank line ends a sentence."
        )
    return [f"{message}; {left_out:,} of {counted(sentences, 'sentence')} left out for them."]
