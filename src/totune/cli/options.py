"""Options of the commands: those that settings declare, those that commands share, and values.

An option of a setting has its name, default, help and notation from the setting's declaration
(`totune.registry.setting`). Messages of the library speak of settings in backticks (`seeds=5`), or
begin with the value that is wrong (seeds=0 is out of range); `in_flags` writes them as the options
of the command that runs (--seeds 5).
"""

import ast
import dataclasses
import inspect
import json
import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.markup import escape
from typer.core import TyperCommand

from totune.errors import ConfigError, TotuneError
from totune.outputs import output_path
from totune.pretraining.settings import PretrainingSettings
from totune.registry import DeclaredSettings, Typed, choices_of
from totune.runs.settings import DATA, TRAINING, Settings
from totune.text import parse_size

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object as the last line of standard output."),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing on the way; only results and errors.")
]
_DATA = typer.Argument(
    metavar="DATA",
    help="A csv, tsv, jsonl or parquet file, a CoNLL file, sentiment trees, a folder with "
    "train/dev/test files, hub:NAME, hub:NAME/CONFIG or example:rotten-tomatoes.",
)
Data = Annotated[str, _DATA]
DataOrTrain = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help=f"{_DATA.help} Or none, with the train file as --train.",
        show_default=False,
    ),
]


def examples(*pairs: tuple[str, str]) -> str:
    """The end of a command's help: what one may want, and the command line that does it."""
    lines = [f"{escape(want)}\n    [bold]{escape(command)}[/bold]" for want, command in pairs]
    return "\n".join(lines)


def output(setting: str = "out") -> Callable[[str], Path]:
    """Reads the value of an option that names an output; an empty one is refused."""

    def path(text: str) -> Path:
        return output_path(text, setting)

    return path


# Parameters in messages, as options

_FIELDS = dataclasses.fields(Settings)
_flags: ContextVar[Mapping[str, str] | None] = ContextVar("flags", default=None)


_QUOTED = r"`(\w+)(?:=([^`]+))?`"
# "seeds=[0, 0] is out of range", "strategy lora: learning_rate=-1.0: ..."
_BEGINNING = r"(?m:^)((?:[\w-]+ [\w-]+: )?)(\w+)=(\[[^]]*]|\([^)]*\)|'[^']*'|\"[^\"]*\"|[^\s:]*)"


def in_flags(message: str, flags: Mapping[str, str] | None = None) -> str:
    """A message with the settings in it as the options that a person types.

    These are the settings in backticks, and the one whose value a line begins with.

    Args:
        message: such as "add `seeds=5`"; names that are no option stay as they are.
        flags: the option of each setting; those of the command that runs if None.
    """
    known = flags or _flags.get() or {}

    def quoted(match: re.Match[str]) -> str:
        name, value = match.groups()
        return _typed(known[name], value) if name in known else match[0]

    def beginning(match: re.Match[str]) -> str:
        owner, name, value = match.groups()
        return owner + _typed(known[name], value) if name in known else match[0]

    return re.sub(_BEGINNING, beginning, re.sub(_QUOTED, quoted, message))


def _typed(flag: str, value: str | None) -> str:
    """An option with a value of Python as a person types both: "--seeds 3,7" for "[3, 7]"."""
    if value in (None, "True"):
        return flag
    try:
        plain = ast.literal_eval(value)
    except (ValueError, SyntaxError):  # a word, such as HOST:PORT
        return f"{flag} {value}"
    if isinstance(plain, dict):
        return " ".join(_typed(flag, repr(f"{name}={each}")) for name, each in plain.items())
    if isinstance(plain, list | tuple):
        plain = ",".join(map(str, plain))
    return f"{flag} {shlex.quote(str(plain))}"


class Command(TyperCommand):
    """A command whose errors speak of its own options."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        with self._speaking_of_flags():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        with self._speaking_of_flags():
            return super().invoke(ctx)

    @contextmanager
    def _speaking_of_flags(self) -> Iterator[None]:
        own = {str(param.name): _spelling(param) for param in self.params}
        set_aside = _flags.set(_of_studies() | _gathered(own) | own)
        try:
            yield
        except TotuneError as error:
            error.args = tuple(map(in_flags, map(str, error.args)))
            if isinstance(error, ConfigError):
                error.faults = list(map(in_flags, error.faults))
            raise
        finally:
            _flags.reset(set_aside)


def _of_studies() -> dict[str, str]:
    """Options of `totune compare`, which messages of other commands may name."""
    flags = {field.name: _flag(field.metadata["flag"] or field.name) for field in _FIELDS}
    return flags | {"options": _flag(_SET.name)}


def _spelling(param: Any) -> str:
    """What a person types: the option, or how help calls an argument."""
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper())
    return max(param.opts, key=len)  # type: ignore[no-any-return]


def _gathered(own: Mapping[str, str]) -> dict[str, str]:
    """The options of settings that are typed under another name."""
    fields = (*_FIELDS, *dataclasses.fields(PretrainingSettings))
    named = {field.name: field.metadata["flag"] for field in fields}
    return {name: own[flag] for name, flag in named.items() if flag in own}


# Options of settings


def option(
    name: str, kind: Any, panel: str, text: str, default: Any = None, metavar: str | None = None
) -> inspect.Parameter:
    """A keyword parameter as typer reads it."""
    parser = output(name) if kind == Path | None else None
    annotation = Annotated[
        kind, typer.Option(parser=parser, help=text, rich_help_panel=panel, metavar=metavar)
    ]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=annotation)


MEMBER_OPTIONS = [
    option(
        "learning_rate",
        float | None,
        TRAINING,
        "Peak rate, of every strategy that has one; if not named, it follows from the encoder.",
    ),
    option(
        "num_train_epochs",
        int | None,
        TRAINING,
        "Epochs, of every strategy that has them; of several phases, those of the last. If not "
        "named, they follow from the number of train rows (totune plan shows them).",
    ),
    option("warmup_ratio", float | None, TRAINING, "Share of the steps with a rising rate."),
    option("weight_decay", float | None, TRAINING, "Decoupled weight decay."),
]
_SET = option(
    "set",
    list[str] | None,
    TRAINING,
    "Any other option, as NAME=VALUE, STRATEGY.NAME=VALUE, head.NAME=VALUE or, of the loss, "
    "task.NAME=VALUE; repeatable.",
    metavar="NAME=VALUE",
)
_SEARCH = option(
    "search",
    str | None,
    "Study",
    "Search each strategy's options on dev first, as many trials (20) or as long (10m).",
    metavar="TRIALS|DURATION",
)
# Settings that a person types in another way.
_GATHERED = {"options": [*MEMBER_OPTIONS, _SET], "search_trials": [_SEARCH]}


def options_of(settings: type[DeclaredSettings]) -> list[inspect.Parameter]:
    """The options of a command that takes these settings, in the order of their declaration."""
    hints, found = get_type_hints(settings), list[inspect.Parameter]()
    fields = dataclasses.fields(settings)  # type: ignore[arg-type]
    flags = {"out": "--out"}
    flags |= {field.name: _flag(field.metadata["flag"] or field.name) for field in fields}
    for field in fields:
        about = field.metadata
        if not about["panel"]:
            found += _GATHERED.get(field.name, [])
            continue
        kind, default = hints[field.name], field.default
        if about["typed"]:
            default = None if default in (None, ()) else str(default)
            kind = str | None if default is None else str
        elif choices_of(settings, field.name):
            kind = str | None if default is None else str
        text = in_flags(about["description"], flags)
        if about["typed"]:
            text += f" {_NOTATIONS[about['typed']]}"
        name = about["flag"] or field.name
        found.append(option(name, kind, about["panel"], text, default, about["metavar"]))
    return found


_NOTATIONS: Mapping[Typed, str] = {
    "names": "Commas between several.",
    "seeds": "As 5, or as 3,7,11.",
    "layers": "As 0,6,12.",
    "duration": "As 90s, 30m or 1h30m.",
    "size": "As 500MB or 20GB.",
}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


STUDY_OPTIONS = options_of(Settings)
_OF_SEVERAL_RUNS = {  # what one run has no use for
    *("strategies", "seeds", "budget", "race", "race_fraction", "search", "search_storage"),
    *(
        "keep_weights",
        "tolerance",
        "folds",
        "texts",
        "jobs",
        "executor",
        "address",
        "cpus_per_run",
        "gpus_per_run",
    ),
}
DATA_OPTIONS = [
    one for one in STUDY_OPTIONS if one.annotation.__metadata__[0].rich_help_panel == DATA
]
COMMON_OPTIONS = [one for one in STUDY_OPTIONS if one.name not in _OF_SEVERAL_RUNS]


def takes(
    options: Sequence[inspect.Parameter],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command these options; it receives them in its `**settings`."""

    def extend(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        parameters = [*(p.replace(kind=p.KEYWORD_ONLY) for p in own), *options]
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return command

    return extend


def read_settings(
    given: Mapping[str, Any], settings: type[DeclaredSettings] = Settings
) -> dict[str, Any]:
    """The options as typed, as keyword arguments of the Python call with these settings.

    Raises:
        ConfigError: with every value that cannot be read.
    """
    readers: dict[str, Callable[[Any], Any]] = {"set": parse_assignments, "search": parse_search}
    names = {}
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        names[field.metadata["flag"] or field.name] = field.name
        if field.metadata["typed"]:
            readers[field.metadata["flag"] or field.name] = _READERS[field.metadata["typed"]]
    read: dict[str, Any] = {}
    faults: list[str] = []
    for name, value in given.items():
        if value is None:
            continue
        try:
            found = readers[name](value) if name in readers else value
            read |= found if name == "search" else {names.get(name, name): found}
        except ConfigError as error:
            faults += error.faults
    if faults:
        raise ConfigError(faults)
    if "options" not in names.values():
        return read
    of_members = [one.name for one in MEMBER_OPTIONS if one.name in read]
    options = {name: read.pop(name) for name in of_members} | read.pop("options", {})
    return {**read, "options": options}


# Values as a person types them

_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


def parse_duration(text: str) -> float:
    """Seconds from "90s", "30m", "1.5h" or "1h30m"; a bare number is seconds.

    Raises:
        ConfigError: when `text` is not a duration.
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)(min|[smhd]?)", text.strip().lower())
    if not parts or "".join(map("".join, parts)) != text.strip().lower():
        raise ConfigError(f"{text!r} is not a duration; write one like 90s, 30m or 1h30m.")
    return math.fsum(float(number) * _SECONDS[unit] for number, unit in parts)


def parse_seeds(text: str) -> int | list[int]:
    """How many seeds ("5"), or which ("3,7,11"; "3," is seed 3 alone).

    Raises:
        ConfigError: when `text` is neither.
    """
    if not re.fullmatch(r"\d+(,\d+)*,?", text.replace(" ", "")):
        raise ConfigError(f"--seeds {text!r} is neither a number of seeds nor a list like 3,7,11.")
    numbers = [int(number) for number in text.split(",") if number.strip()]
    return numbers if "," in text else numbers[0]


def parse_layers(text: str) -> str | list[int]:
    """Numbers of layers ("0,6,12"), or a word ("top", "all") as it is.

    Raises:
        ConfigError: when `text` is neither.
    """
    words = parse_names(text)
    if words and all(word.isdecimal() for word in words):
        return [int(word) for word in words]
    if text not in ("top", "all"):
        raise ConfigError(f"--layers {text!r} is none of top, all, or numbers such as 0,6,12.")
    return text


def parse_search(text: str) -> dict[str, Any]:
    """The budget of a search: a number of trials ("20"), or a time ("10m", "600s").

    Raises:
        ConfigError: when `text` is neither, or nothing.
    """
    remedy = "write a number of trials like 20, or a time for each strategy like 10m"
    if re.fullmatch(r"\d+", text.strip()):
        if int(text) == 0:
            raise ConfigError(f"--search {text!r} leaves nothing to try; {remedy}.")
        return {"search_trials": int(text)}
    try:
        return {"search_seconds": parse_duration(text)}
    except ConfigError:
        raise ConfigError(f"--search {text!r} is no budget; {remedy}.") from None


def parse_names(text: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_assignments(pairs: Sequence[str]) -> dict[str, Any]:
    """`NAME=VALUE` as a mapping; values are JSON (numbers, true, null, lists), else text.

    Raises:
        ConfigError: with every pair that is not one.
    """
    faults = [
        f"--set {pair!r} is not of the form NAME=VALUE."
        for pair in pairs
        if not re.fullmatch(r"[\w.-]+=.*", pair, flags=re.DOTALL)
    ]
    if faults:
        raise ConfigError(faults)
    return {name: _value(text) for name, _, text in (pair.partition("=") for pair in pairs)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


_READERS: Mapping[Typed, Callable[[Any], Any]] = {
    "names": parse_names,
    "seeds": parse_seeds,
    "layers": parse_layers,
    "duration": parse_duration,
    "size": parse_size,
}
