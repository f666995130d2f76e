"""Sentiment trees (Socher et al. 2013): every phrase of a sentence has a label of its own."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from totune.data.tables import Cell, SourceTable
from totune.errors import DataError

POLARITY = {"0": "negative", "1": "negative", "2": None, "3": "positive", "4": "positive"}
SAMPLE = 1000  # lines that the format is recognised by
_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "\\/": "/", "\\*": "*"}
_ESCAPED = re.compile(r"-LRB-|-RRB-|\\/|\\\*")
_LOOKS_LIKE_A_TREE = re.compile(r"\([0-4] .*\)\s*")
_NODE = (
    re.compile(  # a leaf, or the beginning or end of a node; words may hold rarer kinds of space
        r" *(?:\((?P<leaf>[0-4]) +(?P<word>[^() ]+)\)|\((?P<inner>[0-4]) +(?=\()|\))"
    )
)

Phrase = tuple[str, str]  # text and label


def is_trees(lines: Sequence[str]) -> bool:
    """Whether most of the first lines of a text file are such as (3 (2 It) (4 works))."""
    lines = [line for line in lines[:SAMPLE] if line.strip()]
    return 2 * sum(bool(_LOOKS_LIKE_A_TREE.fullmatch(line)) for line in lines) > len(lines)


def read_trees(lines: Iterable[str], path: Path) -> SourceTable:
    """Reads one tree per line into a row per phrase, each tree's whole sentence first.

    Columns: `sentence`; `label`, five classes from 0 (very negative) to 4; `polarity`, negative or
    positive, empty for neutral phrases; `tree`, the line. A phrase with a label is kept once in the
    file, as in GLUE's SST-2, but whole sentences are kept all: a phrase that recurs (single words,
    mostly) would else outweigh the sentences. Of the 98,794 phrases of the train file that are not
    neutral 77,625 remain; GLUE, made from the corpus's phrase list, has 67,349 rows.

    Raises:
        DataError: a line is no such tree.
    """
    trees = [
        (number, _phrases(line, f"{path} line {number:,}"))
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    seen = {phrases[0] for _, phrases in trees}
    rows: list[tuple[int, Phrase]] = []
    whole = []
    for number, (sentence, *parts) in trees:
        whole.append(len(rows))
        fresh = [part for part in dict.fromkeys(parts) if part not in seen]
        seen.update(fresh)
        rows += [(number, phrase) for phrase in (sentence, *fresh)]
    columns: dict[str, list[Cell]] = {
        "sentence": [text for _, (text, _) in rows],
        "label": [label for _, (_, label) in rows],
        "polarity": [POLARITY[label] for _, (_, label) in rows],
        "tree": [str(number) for number, _ in rows],
    }
    return SourceTable(
        source=str(path),
        columns=columns,
        rows=[number for number, _ in rows],
        unit="line",
        document="tree",
        whole=frozenset(whole),
        blanks={"polarity": "neutral"},
    )


def _phrases(line: str, place: str) -> list[Phrase]:
    """Every phrase of a tree, the whole sentence first."""
    line = line.strip(" ")
    words: list[str] = []
    phrases: list[Phrase] = []
    open_nodes: list[tuple[int, int]] = []  # place among phrases, first word
    at = 0
    while at < len(line):
        node = _NODE.match(line, at)
        if node is None or (phrases and not open_nodes):
            raise _malformed(place, f"at {line[at : at + 30]!r}, character {at + 1:,}")
        if node["word"]:
            words.append(_ESCAPED.sub(lambda escape: _ESCAPES[escape[0]], node["word"]))
            phrases.append((words[-1], node["leaf"]))
        elif node["inner"]:
            open_nodes.append((len(phrases), len(words)))
            phrases.append(("", node["inner"]))
        else:
            place_of, first = open_nodes.pop()
            phrases[place_of] = (" ".join(words[first:]), phrases[place_of][1])
        at = node.end()
    if open_nodes:
        raise _malformed(place, f"brackets left open: {len(open_nodes)}")
    return phrases


def _malformed(place: str, reason: str) -> DataError:
    return DataError(
        f"{place} is no sentiment tree ({reason}). "
        "Each line should be a tree such as (3 (2 It) (4 works))."
    )
