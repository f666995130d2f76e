"""Members described as data, from their fields and docstrings."""

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from totune.cli.catalogue import KINDS, attribute_docs, describe, entries, outlines, type_text


@dataclass(frozen=True)
class Base:
    """The base.

    Attributes:
        layers: what is read,
            over two lines.
        pooling: from the base.
    """

    layers: Literal["top", "all"] = "top"
    pooling: str | None = None


@dataclass(frozen=True)
class Candidate(Base):
    """Does one thing
    well.

    More about it.

    Attributes:
        rate: how fast.
        pooling: from the member.

    Raises:
        ValueError: never.
    """

    rate: float = 0.5
    names: list[str] = field(default_factory=list)
    label: str = field(kw_only=True)


def test_a_member_is_described_from_its_class_and_bases():
    entry = describe("toys", "member", Candidate)
    assert (entry.kind, entry.name, entry.summary) == ("toys", "member", "Does one thing well.")
    assert [(o.name, o.type, o.default, o.summary) for o in entry.options] == [
        ("layers", "top | all", "top", "what is read, over two lines."),
        ("pooling", "str | none", "None", "from the member."),
        ("rate", "float", "0.5", "how fast."),
        ("names", "list[str]", "[]", ""),
        ("label", "str", None, ""),
    ]


def test_a_class_without_fields_has_no_options():
    assert describe("toys", "plain", int).options == ()


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, "int"),
        (Literal["a", 1], "a | 1"),
        (Literal["a"] | None, "a | none"),
        (tuple[str, ...], "[str, ...]"),
        (tuple[int | Literal["all"], ...] | None, "[int | all, ...] | none"),
    ],
)
def test_types_are_written_as_their_values(hint: Any, text: str):
    assert type_text(hint) == text


def test_a_docstring_without_attributes_has_none():
    assert attribute_docs("Does it.\n\n    Raises:\n        ValueError: often.\n") == {}


@pytest.mark.parametrize("kind", KINDS)
def test_every_member_says_what_it_is(kind: str):
    for entry in entries(kind):
        assert entry.summary, f"{kind}: {entry.name} has no docstring"
        assert not entry.summary.startswith(entry.name + "(")


@pytest.mark.parametrize("kind", KINDS)
def test_the_source_says_the_same_as_the_members(kind: str):
    assert outlines(kind) == [
        (entry.name, entry.summary, entry.suits, tuple(option.name for option in entry.options))
        for entry in entries(kind)
    ]
