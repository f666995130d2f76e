"""Which places of an encoder share an adapter, said as a map from places to names.

Each layer has two places, after attention and after the feed-forward. Equal names are one adapter.
"""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import PlainValidator

from totune.errors import ConfigError

Placement = Literal["houlsby", "pfeiffer"]
Names = tuple[str | None, str | None]  # after attention, after the feed-forward; None for none
Entry = str | Names | None
Span = tuple[int, int]  # first and last of consecutive layers, from 1

_SHORT = re.compile(r"per-sublayer|per-layer|every-[1-9]\d{0,3}")


def parse_sharing(value: object) -> str | tuple[Entry, ...]:
    """The option as it is typed, or read from JSON, with tuples for lists.

    Args:
        value: "per-sublayer", "per-layer", "every-N", or a sequence with an entry per layer.

    Raises:
        ValueError: if it is none of these; the registry makes it a `ConfigError`.
    """
    if isinstance(value, str) and _SHORT.fullmatch(value):
        return value
    if isinstance(value, list | tuple) and value:
        return tuple(_parse_entry(entry) for entry in value)
    raise _fault()


def _parse_entry(entry: object) -> Entry:
    if not isinstance(entry, list | tuple):
        return _parse_name(entry)
    if len(entry) != 2:
        raise _fault()
    return _parse_name(entry[0]), _parse_name(entry[1])


def _parse_name(name: object) -> str | None:
    if name is None or (isinstance(name, str) and name):
        return name
    raise _fault()


def _fault() -> ValueError:
    return ValueError(
        "write per-sublayer, per-layer, every-N (such as every-3), or a list with an entry for "
        'each layer: a name such as "a", null for no adapter, or a pair of these, '
        "[attention, feed-forward]",
    )


Sharing = Annotated[str | tuple[Entry, ...], PlainValidator(parse_sharing)]


def names_of(sharing: Sharing, spans: Sequence[Span], placement: Placement) -> list[Names]:
    """The names of the adapters at the two places of each layer, bottom to top.

    Args:
        sharing: as `parse_sharing` returns it.
        spans: the encoder's layers; those that share their weights (ALBERT) are one span.
        placement: "pfeiffer" has no place after attention.

    Raises:
        ConfigError: if the map has not an entry for each layer, names no adapter at all or one
            after attention where there is no such place, or gives layers that share their weights
            different adapters.
    """
    names = _written_out(sharing, spans, placement)
    depth = spans[-1][1]
    said = f"sharing={sharing if isinstance(sharing, str) else json.dumps(sharing)}"
    if len(names) != depth:
        raise ConfigError(
            f"{said} has {len(names)} entries, and the encoder {depth} layers: "
            "write one entry for each layer, null for a layer without adapters."
        )
    if not any(name for pair in names for name in pair):
        raise ConfigError(
            f"{said} names no adapter: give at least one of the encoder's {depth} layers a name."
        )
    if placement == "pfeiffer" and any(attention for attention, _ in names):
        raise ConfigError(
            f"{said} names adapters after attention, which placement=pfeiffer has not. Write one "
            'name for each layer, or pairs like [null, "a"], or use placement=houlsby.'
        )
    _check_spans(names, spans, said)
    return names


def _written_out(sharing: Sharing, spans: Sequence[Span], placement: Placement) -> list[Names]:
    """The names that the option stands for."""
    after_attention = placement == "houlsby"
    if not isinstance(sharing, str):
        return [
            entry if isinstance(entry, tuple) else (entry if after_attention else None, entry)
            for entry in sharing
        ]
    if sharing.startswith("every-"):
        spans = _spans_of(int(sharing.removeprefix("every-")), spans[-1][1])
    labels = [_label(span) for span in spans for _ in range(span[0], span[1] + 1)]
    if not after_attention:
        return [(None, label) for label in labels]
    if sharing == "per-sublayer":
        return [(f"{label}.attention", f"{label}.feed_forward") for label in labels]
    return [(label, label) for label in labels]


def _spans_of(size: int, depth: int) -> list[Span]:
    return [(first, min(first + size - 1, depth)) for first in range(1, depth + 1, size)]


def _label(span: Span) -> str:
    first, last = span
    return f"layer.{first}" if first == last else f"layers.{first}-{last}"


def _check_spans(names: Sequence[Names], spans: Sequence[Span], said: str) -> None:
    faults = [
        f"{said} gives layers {first}-{last} different adapters, but they share their weights in "
        "this encoder, and so their adapters. Give them one name, as sharing=per-sublayer and "
        "sharing=per-layer do."
        for first, last in spans
        if len(set(names[first - 1 : last])) > 1
    ]
    if faults:
        raise ConfigError(faults)
