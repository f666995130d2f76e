"""What there is: the members of every plug-in folder with their options, as plain data."""

import ast
import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from totune.extraction.settings import ExtractionSettings
from totune.pretraining.settings import PretrainingSettings
from totune.registry import DeclaredSettings, limit_text, plug_ins, registry_of
from totune.runs.settings import Settings

PLUGINS = ("strategies", "heads", "baselines", "tasks", "analyses")
KINDS = (*PLUGINS, "encoders", "recipes")
_SUITS = {  # what a head wants -> what data it is for
    "pooled": ("texts", "pairs"),  # both texts of a pair in one input
    "tokens": ("texts", "pairs"),
    "pair": ("pairs",),
    "pooled-pair": ("pairs",),
    "words": ("tagging",),
}


@dataclasses.dataclass(frozen=True)
class Option:
    """A member's option; `default` is None where one must be given, "by rule" if data decides."""

    name: str
    type: str
    default: str | None
    summary: str


@dataclasses.dataclass(frozen=True)
class CatalogueEntry:
    """A member of a plug-in folder, or an encoder; `suits` says what data it is for."""

    kind: str
    name: str
    summary: str
    options: tuple[Option, ...]
    suits: tuple[str, ...] = ()


def entries(kind: str) -> list[CatalogueEntry]:
    """The members of one plug-in folder by name, the encoders it takes apart, or the recipes."""
    if kind == "encoders":
        return encoder_entries()
    if kind == "recipes":
        return recipe_entries()
    registry = registry_of(f"totune.{kind}")
    return [describe(kind, name, registry.get(name)) for name in registry.names()]


def encoder_entries() -> list[CatalogueEntry]:
    """The aliases that `--model` knows and the model types that it takes."""
    from totune.encoders.layouts import LAYOUTS
    from totune.encoders.sources import ALIASES

    aliases = [
        CatalogueEntry("encoders", name, f"Short for {hub}.", ()) for name, hub in ALIASES.items()
    ]
    types = [
        CatalogueEntry("encoders", name, "Any model of this type, by hub id or folder.", ())
        for name in sorted(LAYOUTS)
    ]
    words = [
        CatalogueEntry(
            "encoders", "elmo", "A folder of totune convert-elmo, or of totune pretrain elmo.", ()
        ),
        CatalogueEntry(
            "encoders", "flair", "A folder with both of Flair's character language models.", ()
        ),
    ]
    return aliases + types + words


def setting_entries() -> list[CatalogueEntry]:
    """What the Python calls take as keyword arguments, from the declarations."""
    calls: dict[str, type[DeclaredSettings]] = {
        "Settings of totune.compare and totune.train": Settings,
        "Settings of totune.extract_features": ExtractionSettings,
        "Settings of totune.pretraining": PretrainingSettings,
    }
    return [
        CatalogueEntry("settings", call, _summary(settings), tuple(_settings(settings)))
        for call, settings in calls.items()
    ]


def _settings(settings: type[DeclaredSettings]) -> Iterator[Option]:
    hints = typing.get_type_hints(settings)
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        about, limit = field.metadata, limit_text(field.metadata)
        units = {"duration": "In seconds.", "size": "In bytes."}
        said = (about["description"], units.get(about["typed"]), limit and f"Must be {limit}.")
        summary = " ".join(filter(None, said))
        yield Option(field.name, type_text(hints[field.name]), _default(field), summary)


def _summary(member: type) -> str:
    """The first paragraph of a docstring, on one line."""
    return (inspect.getdoc(member) or "").partition("\n\n")[0].replace("\n", " ")


def recipe_entries() -> list[CatalogueEntry]:
    """The tables and figures that `totune reproduce` runs."""
    from totune.recipes.loading import load_recipe, recipe_names

    found = [load_recipe(name) for name in recipe_names()]
    return [CatalogueEntry("recipes", one.name, f"{one.title} ({one.paper}).", ()) for one in found]


def describe(kind: str, name: str, member: type) -> CatalogueEntry:
    """A member as data, from its dataclass fields and the docstrings of its class and bases.

    Fields of a task are its label space too; it says which of them are options.
    """
    settable = getattr(member, "options", None) if kind == "tasks" else None
    options = [one for one in _options(member) if settable is None or one.name in settable]
    suits = _suits(getattr(member, "wants", ()), getattr(member, "tasks", ()))
    return CatalogueEntry(kind, name, _summary(member), tuple(options), suits)


def _suits(wants: Sequence[str], tasks: Sequence[str]) -> tuple[str, ...]:
    """What data a head that reads `wants`, or a baseline for `tasks`, is for."""
    return tuple(dict.fromkeys([*(one for want in wants for one in _SUITS[want]), *tasks]))


def _options(member: type) -> Iterator[Option]:
    if not dataclasses.is_dataclass(member):
        return
    hints = typing.get_type_hints(member)
    told: dict[str, str] = {}
    for one in reversed(member.__mro__):
        told |= attribute_docs(one.__doc__ or "")
    decided = _decided_by_data(member)
    for field in dataclasses.fields(member):
        if field.init:
            summary = told.get(field.name, "")
            default = "by rule" if field.name in decided else _default(field)
            yield Option(field.name, type_text(hints[field.name]), default, summary)


def _decided_by_data(member: type) -> set[str]:
    """Options of a strategy whose defaults follow from data and encoder."""
    if not hasattr(member, "data_defaults"):
        return set()
    from totune.strategies.defaults import TrainingFacts

    return set(member().data_defaults(TrainingFacts(rows=1000, dev_rows=125, width=384)))


def _default(field: "dataclasses.Field[Any]") -> str | None:
    if field.default is not dataclasses.MISSING:
        return str(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return str(field.default_factory())
    return None


def type_text(hint: Any) -> str:
    """A type as a person would write its values: `top | scalar-mix`, `int`, `[int, ...]`."""
    kind, inner = typing.get_origin(hint), typing.get_args(hint)
    if kind is Mapping:
        return "{name: value}"
    if kind in (tuple, Sequence):
        return f"[{', '.join(map(type_text, inner if kind is tuple else (*inner, ...)))}]"
    if kind is Literal:
        return " | ".join(map(str, inner))
    if kind in (typing.Union, types.UnionType):
        return " | ".join(type_text(one) for one in inner)
    if hint in (types.NoneType, ...):
        return "none" if hint is types.NoneType else "..."
    return hint.__name__ if isinstance(hint, type) and not inner else str(hint)


def attribute_docs(docstring: str) -> dict[str, str]:
    """What the `Attributes:` section of a docstring says, by name."""
    section = inspect.cleandoc(docstring).partition("Attributes:\n")[2]
    section = re.split(r"^\S", section, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", section, flags=re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text).strip() for name, text in found}


# What a table shows, read from the source: importing the members would import PyTorch


def outlines(kind: str) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Name, summary, data it suits and names of options of everything of a kind."""
    if kind == "recipes":
        return _recipe_outlines()
    if kind not in PLUGINS:
        return [
            (one.name, one.summary, one.suits, tuple(option.name for option in one.options))
            for one in entries(kind)
        ]
    classes: dict[str, ast.ClassDef] = {}
    members: dict[str, ast.ClassDef] = {}
    for file in Path(__file__).parents[1].joinpath(kind).glob("*.py"):
        for node in ast.parse(file.read_bytes()).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name] = node
                members |= dict.fromkeys(_registered(node), node)
    own = [(name, *_outline(members[name], classes)) for name in sorted(members)]
    return own + _outlines_outside(kind)


def _outlines_outside(kind: str) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Likewise of what plug-ins have: those that were imported, and those that are installed."""
    package = f"totune.{kind}"
    imported = sys.modules.get(f"{package}.base")
    members = registry_of(package).outside() if imported else {}
    found = {name: describe(kind, name, member) for name, member in members.items()}
    for entry in plug_ins(package):
        origin = entry.dist.name if entry.dist else entry.value
        found.setdefault(entry.name, CatalogueEntry(kind, entry.name, f"Plug-in of {origin}.", ()))
    return [
        (name, one.summary, one.suits, tuple(option.name for option in one.options))
        for name, one in sorted(found.items())
    ]


def _recipe_outlines() -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    import yaml

    files = sorted(Path(__file__).parents[1].joinpath("recipes").glob("*.yaml"))
    read = [(file.stem, yaml.safe_load(file.read_bytes())) for file in files]
    return [(name, f"{facts['title']} ({facts['paper']}).", (), ()) for name, facts in read]


def _registered(node: ast.ClassDef) -> Iterator[str]:
    """The names that a class is registered under."""
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(".register"):
            yield ast.literal_eval(call.args[0])


def _outline(
    member: ast.ClassDef, classes: Mapping[str, ast.ClassDef]
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Summary, data it suits and names of options of a class, with those of its bases."""
    lineage = [member]
    for node in lineage:  # grows while it is read; a base outside of the folder has no options
        names = (ast.unparse(base).partition("[")[0] for base in node.bases)
        lineage += [classes[name] for name in names if name in classes]
    summary, options, said = "", dict[str, None](), dict[str, tuple[str, ...]]()
    for node in reversed(lineage):
        summary = ast.get_docstring(node) or summary
        is_dataclass = any("dataclass" in ast.unparse(one) for one in node.decorator_list)
        for line in node.body:
            if not isinstance(line, ast.AnnAssign):
                continue
            name = ast.unparse(line.target)
            if name in ("wants", "tasks") and line.value is not None:
                said[name] = ast.literal_eval(line.value)
            is_option = not ast.unparse(line.annotation).startswith("ClassVar")
            if is_dataclass and is_option:
                options[name] = None
            if name == "options" and not is_option and line.value is not None:  # of a task
                said[name] = ast.literal_eval(line.value)
    first = summary.partition("\n\n")[0].replace("\n", " ")
    suits = _suits(said.get("wants", ()), said.get("tasks", ()))
    return first, suits, said.get("options", tuple(options))
