"""Named members of plug-in folders, and the options and settings that are checked by declaration.

A plug-in folder is a package whose `base.py` owns a `Registry`; a member is one module beside it
that decorates its class. Members are frozen dataclasses (or take plain keyword options), so their
fields are their configuration. A folder's modules are imported on the first look-up: a new file is
a new member, with no list to edit. So are members that other packages have: those that they name
as entry points of a group called like the folder (`totune.heads`), and whatever a program that
imports them registers.

The settings of a study, an extraction and a pretraining are frozen dataclasses too, derived from
`DeclaredSettings`. Each of their fields is declared once, by `setting`: from the declaration come
the checks, the option of the command line and the table in `docs/reference.md`.
"""

import dataclasses
import difflib
import importlib
import inspect
import operator
import pkgutil
import re
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import TypeAdapter, ValidationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

from totune.errors import ConfigError

T = TypeVar("T")
C = TypeVar("C")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A sentence that names the nearest of `names` (if any is near) and lists them all."""
    known = sorted(names)
    if not known:
        return "There is none."
    near = difflib.get_close_matches(name.lower(), [n.lower() for n in known], n=1, cutoff=0.5)
    hint = ""
    if near:
        match = next(n for n in known if n.lower() == near[0])
        hint = f"Did you mean {match!r}? "
    return f"{hint}Known: {', '.join(known)}."


class Member:
    """Base of what Python may give as an object: it remembers which of its options were given.

    An option that nobody gave may follow from data and encoder, even where somebody else gives the
    same value.
    """

    name: ClassVar[str]
    _given: frozenset[str]

    def __new__(cls, *values: Any, **options: Any) -> Self:
        made = super().__new__(cls)
        names: list[str] = option_names(cls) if dataclasses.is_dataclass(cls) else []
        given = frozenset([*names[: len(values)], *options])
        object.__setattr__(made, "_given", given)
        return made


def given_options(member: Member) -> dict[str, Any]:
    """The options that a member was made with, as plain data."""
    return {name: value for name, value in options_of(member).items() if name in member._given}


class Registry(Generic[T]):
    """The members of one plug-in folder, by name.

    Args:
        noun: what a member is called in messages, such as "strategy".
        package: the dotted name of the folder whose modules hold the members.
    """

    def __init__(self, noun: str, package: str) -> None:
        self.noun = noun
        self.package = package
        self._members: dict[str, type[T]] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[type[C]], type[C]]:
        """Class decorator that adds a member under `name`."""

        def add(member: type[C]) -> type[C]:
            known = self._members.get(name)
            if known is not None and _place(known) != _place(member):  # a notebook's cell, run anew
                raise ConfigError(
                    f"Two {self.noun} members are called {name!r}, of {known.__module__} and of "
                    f"{member.__module__}; give one another name."
                )
            self._members[name] = member  # type: ignore[assignment]
            member.name = name  # type: ignore[attr-defined]
            return member

        return add

    def names(self) -> list[str]:
        self._load()
        return sorted(self._members)

    def get(self, name: str) -> type[T]:
        """The class called `name`; raises `ConfigError` with the nearest name if there is none."""
        self._load()
        if name not in self._members:
            raise ConfigError(
                f"There is no {self.noun} called {name!r}. {did_you_mean(name, self._members)} One "
                "of a plug-in is there once its package is installed, or its module imported "
                "(totune --import MODULE)."
            )
        return self._members[name]

    def outside(self) -> dict[str, type[T]]:
        """Members that are not totune's own, as far as they were imported."""
        own = f"{self.package}."
        return {n: one for n, one in self._members.items() if not one.__module__.startswith(own)}

    def create(self, name: str, options: Mapping[str, Any] | None = None) -> T:
        """A member from its name and options; `last-2` is short for `last-k` with `k=2`."""
        self._load()
        chosen = dict(options or {})
        short = re.fullmatch(r"(.+)-(\d+)", name)
        if name not in self._members and short and f"{short[1]}-k" in self._members:
            name = f"{short[1]}-k"
            chosen.setdefault("k", int(short[2]))
        made = build(self.get(name), chosen, f"{self.noun} {name}")
        if isinstance(made, Member):  # checking an option may have made it without `__new__`
            object.__setattr__(made, "_given", frozenset(chosen))
        return made

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        folder = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(folder.__path__):
            importlib.import_module(f"{self.package}.{module.name}")
        for entry in plug_ins(self.package):
            self._load_plug_in(entry)

    def _load_plug_in(self, entry: "EntryPoint") -> None:
        try:
            member = entry.load()
        except Exception as error:  # whatever a module of others raises
            self._loaded = False
            package = entry.dist.name if entry.dist else "an installed package"
            raise ConfigError(
                f"The {self.noun} {entry.name!r} of the plug-in {package} cannot be imported from "
                f"{entry.value}: {type(error).__name__}: {error}. Update the package, or uninstall "
                f"it: pip uninstall {package}"
            ) from None
        if entry.name not in self._members:
            self.register(entry.name)(member)


def plug_ins(group: str) -> "list[EntryPoint]":
    """What installed packages offer as members of a folder such as `totune.heads`."""
    from importlib.metadata import entry_points  # takes a moment, and `import totune` must not

    return sorted(entry_points(group=group), key=lambda entry: entry.name)


def registry_of(package: str) -> "Registry[Any]":
    """The registry that a plug-in folder's `base.py` owns.

    Args:
        package: the dotted name of the folder.
    """
    base = importlib.import_module(f"{package}.base")
    return next(one for one in vars(base).values() if isinstance(one, Registry))


def _place(member: type) -> tuple[str, str]:
    return member.__module__, member.__qualname__


def option_names(member: type) -> list[str]:
    """The options of a member: the fields of its dataclass."""
    return [field.name for field in dataclasses.fields(member) if field.init]


def build(member: type[C], options: Mapping[str, Any], owner: str) -> C:
    """Checks `options` against a dataclass's fields and types and builds it.

    Of settings, only unknown names are faults here; `check` finds the others, all at once.

    Raises:
        ConfigError: with every unknown name and wrong value at once.
    """
    known = option_names(member)
    faults = [
        f"{owner} has no option {name!r}. {did_you_mean(name, known)}"
        if known
        else f"{owner} has no option {name!r}; it takes none."
        for name in options
        if name not in known
    ]
    valid = {name: value for name, value in options.items() if name in known}
    if issubclass(member, DeclaredSettings):
        settings = member(**valid)
        if faults:
            raise ConfigError(faults + settings.faults())
        return settings
    kind: type = member
    try:
        made: C = _adapter(kind).validate_python(valid)
    except ValidationError as error:
        raise ConfigError(faults + _wrong_values(error, valid, owner)) from None
    if faults:
        raise ConfigError(faults)
    return made


@cache
def _adapter(member: type) -> TypeAdapter[Any]:
    return TypeAdapter(member)


def _wrong_values(error: ValidationError, options: Mapping[str, Any], owner: str) -> list[str]:
    """A sentence for every option of a wrong value; one may break each type of a union."""
    messages: dict[str, list[str]] = {}
    for fault in error.errors():
        name = str(fault["loc"][0]) if fault["loc"] else "options"
        messages.setdefault(name, []).append(fault["msg"].removeprefix("Value error, "))
    return [
        f"{owner}: {name}={options.get(name, dict(options))!r}: {' or '.join(found)}."
        for name, found in messages.items()
    ]


def options_of(member: object) -> dict[str, Any]:
    """A member's options as plain data, defaults included."""
    return dataclasses.asdict(member)  # type: ignore[call-overload, no-any-return]


Typed = Literal["names", "seeds", "layers", "duration", "size", "pairs"]

_LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "gt": (operator.gt, "above"),
    "ge": (operator.ge, "at least"),
    "lt": (operator.lt, "below"),
    "le": (operator.le, "at most"),
}


def setting(
    default: Any,
    description: str,
    panel: str = "",
    *,
    metavar: str | None = None,
    typed: Typed | None = None,
    flag: str = "",
    noun: str = "",
    unit: str = "",
    **limits: float,
) -> Any:
    """A field of `DeclaredSettings`: all that is said of a setting beside its name and type.

    Args:
        default: the value where none is given.
        description: what the setting is; other settings stand in backticks (`seeds=5`).
        panel: heading that the command line lists it under; empty if it has no option there.
        metavar: how the command line's help writes its value.
        typed: notation in which a person types a value that Python gives as a list or a number.
        flag: name of the command line's option where it has another one.
        noun: what its values are ("a precision"), for messages about unknown ones.
        unit: what a number counts, for messages about limits.
        **limits: `gt`, `ge`, `lt` or `le`: what the value must be above, at least, below, at most.
    """
    about = {"description": description, "panel": panel, "metavar": metavar, "typed": typed}
    metadata = {**about, "flag": flag, "noun": noun, "unit": unit, "limits": limits}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def same_setting(settings: type, name: str, **changes: Any) -> Any:
    """The declaration that another class of settings has under `name`, but for `changes`."""
    declared = settings.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return dataclasses.field(
        default=changes.pop("default", declared.default), metadata={**declared.metadata, **changes}
    )


F = TypeVar("F", bound=Callable[..., Any])


def takes_settings(settings: type, *left_out: str) -> Callable[[F], F]:
    """Has `help` and notebooks show the settings that a function's `**settings` takes.

    The signature gets a keyword for each, with type and default; the docstring what each is.

    Args:
        settings: a dataclass of `DeclaredSettings`.
        left_out: names of those that the function does not take.
    """

    def extend(function: F) -> F:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        fields = [f for f in dataclasses.fields(settings) if f.name not in left_out]
        keywords = [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=_default_of(field)
            )
            for field in fields
        ]
        lines = "\n".join(f"        {f.name}: {f.metadata['description']}" for f in fields)
        text = re.sub(r" +\*\*settings:.*", lambda _: lines, function.__doc__ or "")
        function.__signature__ = signature.replace(parameters=[*own, *keywords])  # type: ignore[attr-defined]
        function.__doc__ = text
        return function

    return extend


def _default_of(field: "dataclasses.Field[Any]") -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


class DeclaredSettings:
    """Base of frozen dataclasses whose fields are declared by `setting`.

    Values are converted to their types on construction (a number from "3", a path from text).
    Construction raises nothing about values: `faults` lists every wrong one.
    """

    def __post_init__(self) -> None:
        settings: type = type(self)
        for name, adapter in _adapters(settings).items():
            try:
                object.__setattr__(self, name, adapter.validate_python(getattr(self, name)))
            except ValidationError:  # `faults` says so
                continue

    def faults(self) -> list[str]:
        """A sentence for every value of a wrong type or out of its limits, and every contradiction.

        Contradictions are looked for where every type is right.
        """
        found = {name: self._fault(name) for name in option_names(type(self))}
        faults = [message for message, _ in filter(None, found.values())]
        typed = all(right for _, right in filter(None, found.values()))
        return faults + (self.contradictions() if typed else [])

    def check(self) -> None:
        """Finds every fault before anything is read or loaded.

        Raises:
            ConfigError: with all faults.
        """
        faults = self.faults()
        if faults:
            raise ConfigError(faults)

    def contradictions(self) -> list[str]:
        """What is wrong between settings, or beyond what a declaration can say."""
        return []

    def _fault(self, name: str) -> tuple[str, bool] | None:
        """What is wrong with one value, and whether its type is right."""
        settings: type = type(self)
        value, declared = getattr(self, name), settings.__dataclass_fields__[name].metadata  # type: ignore[attr-defined]
        choices = choices_of(settings, name)
        if choices and value is not None and value not in choices:
            noun = declared["noun"]
            what = f"not {noun}" if noun else "not known"
            return f"{name}={value!r} is {what}. {did_you_mean(str(value), choices)}", True
        try:
            _adapters(settings)[name].validate_python(value)
        except ValidationError as error:
            messages = dict.fromkeys(fault["msg"] for fault in error.errors())
            return f"{name}={value!r}: {' or '.join(messages)}.", False
        limits = declared["limits"].items()
        if value is None or all(_LIMITS[kind][0](value, limit) for kind, limit in limits):
            return None
        return out_of_range(name, value, limit_text(declared)), True


def out_of_range(name: str, value: Any, limit: str) -> str:
    """The message about a value that breaks a limit."""
    return f"{name}={value!r} is out of range: it must be {limit}."


def limit_text(declared: Mapping[str, Any]) -> str:
    """The limits of a declaration in words: "above 0 and at most 1"; empty if it has none."""
    words = [f"{_LIMITS[kind][1]} {limit:g}" for kind, limit in declared["limits"].items()]
    return " ".join(filter(None, (" and ".join(words), declared["unit"])))


def choices_of(settings: type, name: str) -> tuple[str, ...]:
    """The values that a field typed as a `Literal` takes; empty for other types."""
    hint = _hints(settings)[name]
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return tuple(
        choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)
    )


@cache
def _hints(settings: type) -> dict[str, Any]:
    return get_type_hints(settings)


@cache
def _adapters(settings: type) -> dict[str, TypeAdapter[Any]]:
    """What checks and converts the value of each field."""
    hints = _hints(settings)
    return {name: TypeAdapter(hints[name]) for name in option_names(settings)}
