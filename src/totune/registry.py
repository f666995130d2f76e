"""Named members of plug-in folders.

A plug-in folder is a package whose `base.py` owns a `Registry`; a member is one module beside it
that decorates its class. Members are frozen dataclasses (or take plain keyword options), so their
fields are their configuration. A folder's modules are imported on the first look-up: a new file is
a new member, with no list to edit.
"""

import dataclasses
import difflib
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

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
            if name in self._members:
                raise ValueError(f"two {self.noun} members are called {name!r}")
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
                f"There is no {self.noun} called {name!r}. {did_you_mean(name, self._members)}"
            )
        return self._members[name]

    def create(self, name: str, options: Mapping[str, Any] | None = None) -> T:
        """A member from its name and options; `last-2` is short for `last-k` with `k=2`."""
        self._load()
        chosen = dict(options or {})
        short = re.fullmatch(r"(.+)-(\d+)", name)
        if name not in self._members and short and f"{short[1]}-k" in self._members:
            name = f"{short[1]}-k"
            chosen.setdefault("k", int(short[2]))
        return build(self.get(name), chosen, f"{self.noun} {name}")

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        folder = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(folder.__path__):
            importlib.import_module(f"{self.package}.{module.name}")


def option_names(member: type) -> list[str]:
    """The options of a member: the fields of its dataclass."""
    return [field.name for field in dataclasses.fields(member) if field.init]


def build(member: type[C], options: Mapping[str, Any], owner: str) -> C:
    """Checks `options` against a dataclass's fields and types and builds it.

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
    try:
        made: C = TypeAdapter(member).validate_python(valid)
    except ValidationError as error:
        for fault in error.errors():
            place = ".".join(str(part) for part in fault["loc"]) or "options"
            message = fault["msg"].removeprefix("Value error, ")
            faults.append(f"{owner}: {place}={fault.get('input')!r}: {message}.")
        raise ConfigError(faults) from None
    if faults:
        raise ConfigError(faults)
    return made


def options_of(member: object) -> dict[str, Any]:
    """A member's options as plain data, defaults included."""
    return dataclasses.asdict(member)  # type: ignore[call-overload, no-any-return]
