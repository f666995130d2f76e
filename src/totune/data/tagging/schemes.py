"""How tags mark spans of words: IOB1, IOB2 and IOBES, told apart and converted.

A tag is "O" outside of spans, or a letter with the span's type ("B-PER", or "B" alone where there
is one type). IOB1 (Ramshaw and Marcus, 1995) writes I throughout a span and B only where it touches
one of its type before it; IOB2 begins every span by B; IOBES also ends it by E, and writes S for a
span of one word.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

Scheme = Literal["iob1", "iob2", "iobes"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
_TAG = re.compile(r"O|([BIES])(?:-(.+))?", re.DOTALL)
_OUTSIDE = ("O", "")


class Span(NamedTuple):
    """Words `start` to `stop` (the latter left out) of one type."""

    type: str
    start: int
    stop: int


def detect(sentences: Sequence[Sequence[str]]) -> Scheme | None:
    """The scheme that tags follow, or None if one of them is of no scheme (as parts of speech).

    E and S are IOBES. Between IOB1 and IOB2 the fewer illegal transitions decide; IOB2 on a tie.
    """
    tags = {tag for sentence in sentences for tag in sentence}
    if not all(is_tag(tag) for tag in tags):
        return None
    letters = {_parts(tag)[0] for tag in tags}
    if letters & {"E", "S"}:
        return "iobes"
    likely: tuple[Scheme, ...] = ("iob2", "iob1")
    return min(likely, key=lambda scheme: sum(len(faults(s, scheme)) for s in sentences))


def is_tag(tag: str) -> bool:
    """Whether a tag has the form that all schemes share."""
    return _TAG.fullmatch(tag) is not None


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans that tags mark, read as conlleval reads them, whatever the scheme.

    Well-formed tags of every scheme give their spans. Otherwise a span begins at B or S, after O, E
    or S, and where the type changes; so "O I-PER" begins one and "B-PER I-LOC" are two.

    Raises:
        ValueError: a tag is of no scheme.
    """
    found = []
    start = None
    before = _OUTSIDE
    for at, tag in enumerate((*tags, "O")):
        now = _parts(tag)
        if start is not None and _ends(before, now):
            found.append(Span(before[1], start, at))
            start = None
        if _starts(before, now):
            start = at
        before = now
    return found


def convert(tags: Sequence[str], target: Scheme) -> tuple[str, ...]:
    """The same spans in another scheme; the source need not be named, `spans` reads them all.

    Raises:
        ValueError: a tag is of no scheme.
    """
    written = ["O"] * len(tags)
    previous = Span("", -1, -1)
    for span in spans(tags):
        touches = previous.stop == span.start and previous.type == span.type
        written[span.start : span.stop] = _write(span, target, touches)
        previous = span
    return tuple(written)


def faults(tags: Sequence[str], scheme: Scheme) -> list[int]:
    """The words at which tags break a scheme: places of illegal transitions, from 0.

    A span of IOBES that the sentence leaves open is placed at the last word.

    Raises:
        ValueError: a tag is of no scheme.
    """
    both = zip(("O", *tags), (*tags, "O"), strict=True)
    broken = [at for at, (before, tag) in enumerate(both) if not follows(before, tag, scheme)]
    return sorted({min(at, len(tags) - 1) for at in broken})


@lru_cache(maxsize=4096)
def _parts(tag: str) -> tuple[str, str]:
    """The letter and the type of a tag."""
    match = _TAG.fullmatch(tag)
    if match is None:
        raise ValueError(f"{tag!r} is a tag of none of {', '.join(SCHEMES)}")
    return (match[1], match[2] or "") if match[1] else _OUTSIDE


def _ends(before: tuple[str, str], now: tuple[str, str]) -> bool:
    return before[0] in "ES" or now[0] in "BSO" or before[1] != now[1]


def _starts(before: tuple[str, str], now: tuple[str, str]) -> bool:
    fresh = now[0] in "BS" or before[0] in "ESO" or before[1] != now[1]
    return now[0] != "O" and fresh


@lru_cache(maxsize=4096)
def follows(previous: str, tag: str, scheme: Scheme) -> bool:
    """Whether a tag may stand after another in well-formed tags; both ends are as an O."""
    before, now = _parts(previous), _parts(tag)
    same_type = before[1] == now[1]
    continues = before[0] in "BI" and same_type
    if scheme == "iob2":
        return now[0] in "OB" or (now[0] == "I" and continues)
    if scheme == "iob1":
        return now[0] in "OI" or (now[0] == "B" and continues)
    return (now[0] in "IE" and same_type) if before[0] in "BI" else now[0] in "OBS"


def _write(span: Span, target: Scheme, touches: bool) -> list[str]:
    """The tags of a span; `touches` if one of its type ends where it starts."""
    length = span.stop - span.start
    first = "I" if target == "iob1" and not touches else "B"
    letters = [first] + ["I"] * (length - 1)
    if target == "iobes":
        letters[-1] = "S" if length == 1 else "E"
    return [f"{letter}-{span.type}" if span.type else letter for letter in letters]
