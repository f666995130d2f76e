"""Arguments of the Python calls, as settings: members given as objects, keywords in their place."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from totune.baselines.base import BASELINES, Baseline
from totune.errors import ConfigError
from totune.heads.base import HEADS, Head
from totune.registry import build, given_options, option_names
from totune.runs.config import Candidate
from totune.runs.settings import Settings
from totune.strategies.base import STRATEGIES, Strategy

_SHOWN = 3  # members that a message names


def read_settings(given: Mapping[str, Any], owner: str) -> Settings:
    """The settings that keywords of a Python call stand for.

    Args:
        given: the keywords. A member of `strategies` may be a `Strategy`, a `Baseline` or a
            `Candidate`, and `head` a `Head`.
        owner: the call, for messages.

    Raises:
        ConfigError: with every keyword that is none, or is an option of strategies or heads.
    """
    known = option_names(Settings)
    placed = {name: _misplaced(name, value, owner) for name, value in given.items()}
    faults = [fault for name, fault in placed.items() if fault and name not in known]
    settings = {name: value for name, value in given.items() if name in known or not placed[name]}
    try:
        made = build(Settings, _plain(settings), owner)
    except ConfigError as error:
        raise ConfigError(faults + error.faults) from None
    if faults:
        raise ConfigError(faults + made.faults())
    return made


def member_of(spec: Any) -> Any:
    """A member of `strategies` as a name or as a mapping {strategy, options, label, head}."""
    if isinstance(spec, Strategy | Baseline):
        return {"strategy": spec.name, "options": given_options(spec)}
    if isinstance(spec, Candidate):
        unused = {"head"} if spec.is_baseline else set()
        return {f.name: getattr(spec, f.name) for f in fields(spec) if f.name not in unused}
    if not isinstance(spec, Mapping):
        return spec
    found = {**spec}
    if isinstance(spec.get("strategy"), Strategy | Baseline):
        member = member_of(spec["strategy"])
        found |= {**member, "options": member["options"] | dict(spec.get("options", {}))}
    if isinstance(spec.get("head"), Head):
        own = head_options(spec["head"]) | dict(found.get("options", {}))
        found |= {"head": spec["head"].name, "options": own}
    return found


def head_options(head: Head) -> dict[str, Any]:
    """The options that a head was made with, as `head.NAME`."""
    return {f"head.{name}": value for name, value in given_options(head).items()}


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with members as names and options."""
    found = dict(settings)
    strategies, head = settings.get("strategies"), settings.get("head")
    if isinstance(strategies, Strategy | Baseline | Candidate):
        raise ConfigError(
            f"strategies={strategies!r} is one member, not a list: write `strategies=[...]`."
        )
    if isinstance(strategies, Sequence) and not isinstance(strategies, str):
        found["strategies"] = [member_of(spec) for spec in strategies]
    if isinstance(head, Head):
        found["head"] = head.name
        found["options"] = head_options(head) | dict(settings.get("options") or {})
    return found


def _misplaced(name: str, value: Any, owner: str) -> str:
    """Where a keyword belongs that is an option of strategies, baselines or heads; else nothing."""
    strategies = [STRATEGIES.get(one) for one in STRATEGIES.names()]
    baselines = [BASELINES.get(one) for one in BASELINES.names()]
    heads = [HEADS.get(one) for one in HEADS.names()]
    own = [one for one in [*strategies, *baselines] if name in option_names(one)]
    of_heads = [one for one in heads if name in option_names(one)]
    if own:
        usual = max(own, key=lambda one: one.name == "fine-tuning").__name__
        return (
            f"{owner} takes no {name!r}: it is an option of {_named(own)}. Give it to every one "
            f"that has it, options={{{name!r}: {value!r}}}, or to one, "
            f"totune.{usual}({name}={value!r})."
        )
    if of_heads:
        return (
            f"{owner} takes no {name!r}: it is an option of {_named(of_heads)}. Give it with the "
            f"head, head=totune.{of_heads[0].__name__}({name}={value!r}), or as "
            f"options={{'head.{name}': {value!r}}}."
        )
    return ""


def _named(members: Sequence[Any]) -> str:
    names = [member.name for member in members]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
