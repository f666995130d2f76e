"""The text of `src/totune/keywords.py`, from the declarations of settings."""

import dataclasses
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from totune.extraction.settings import ExtractionSettings
from totune.registry import DeclaredSettings, limit_text
from totune.runs.settings import OF_STUDIES, Settings

HEAD = '''"""The typed keywords of the Python calls; written by `make docs` from the declarations.

A change belongs there (`runs/settings.py`, `extraction/settings.py`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from totune.baselines.base import Baseline
from totune.heads.base import Head
from totune.runs.config import Candidate
from totune.strategies.base import Strategy
'''
# What calls take beyond what is declared: members as objects.
WIDER = {
    "strategies": "Sequence[str | Mapping[str, Any] | Strategy | Baseline | Candidate] | None",
    "head": "str | Head",
}


def keywords_text() -> str:
    """The whole module."""
    every = [field.name for field in dataclasses.fields(Settings)]
    shared = [name for name in every if name not in OF_STUDIES]
    extraction = [field.name for field in dataclasses.fields(ExtractionSettings)]
    return "".join(
        [
            HEAD,
            *typed_dict("TrainKeywords", "", "What `totune.train` takes.", Settings, shared),
            *typed_dict(
                "CompareKeywords",
                "TrainKeywords, ",
                "What `totune.compare` takes.",
                Settings,
                [name for name in every if name not in shared],
            ),
            *typed_dict(
                "ExtractionKeywords",
                "",
                "What `totune.extract_features` takes.",
                ExtractionSettings,
                extraction,
            ),
        ]
    )


def typed_dict(
    name: str, base: str, summary: str, settings: type[DeclaredSettings], names: Sequence[str]
) -> Iterator[str]:
    """The lines of a class with a field for each setting."""
    hints, fields = typing.get_type_hints(settings), settings.__dataclass_fields__
    kind = base.rstrip(", ") or "TypedDict"
    yield f'\n\nclass {name}({kind}, total=False):\n    """{summary}"""\n'
    for one in names:
        kind = WIDER.get(one, source(hints[one])) if settings is Settings else source(hints[one])
        limit = limit_text(fields[one].metadata)
        default = fields[one].default
        said = f"{fields[one].metadata['description']} {limit and f'Must be {limit}.'}".strip()
        if default is not dataclasses.MISSING and default not in (None, ()):
            said += f" Default: {default!r}."
        lines = textwrap.wrap(f'"""{said}', 96)
        tail = f'{lines[-1]}"""' if len(lines) == 1 else f'{lines[-1]}\n    """'
        body = "\n    ".join([*lines[:-1], tail])
        yield f"\n    {one}: {kind}\n    {body}\n"


def source(hint: Any) -> str:
    """A type as source; a folder may be given as text."""
    kind, inner = typing.get_origin(hint), typing.get_args(hint)
    if kind is Literal:
        return f"Literal[{', '.join(map(_quoted, inner))}]"
    if kind in (typing.Union, types.UnionType):
        return " | ".join(source(one) for one in inner)
    if kind in (Sequence, Mapping):
        return f"{kind.__name__}[{', '.join(map(source, inner))}]"
    if hint is Path:
        return "str | Path"
    return "None" if hint is types.NoneType else str(hint.__name__)


def _quoted(value: str) -> str:
    return f'"{value}"'
