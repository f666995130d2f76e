"""Which parameters of a model a group of a plan covers."""

import re
from collections.abc import Iterable, Sequence

from totune.model import Model
from totune.strategies.phases import Group, Kind, Phase

# Tables of trainable parameters leave it out, since its size is the task's, not the strategy's.
_LAST_LAYER = r"head\.(.*\.)?out\.(weight|bias)"


def kinds(model: Model) -> dict[int, Kind]:
    """The kind of every parameter, by identity."""
    found: dict[int, Kind] = {}
    for module in model.modules():
        is_norm = "norm" in type(module).__name__.lower()
        for name, parameter in module.named_parameters(recurse=False):
            found[id(parameter)] = _kind(name, is_norm)
    inserted = model.encoder.inserted
    if inserted is not None:
        found |= dict.fromkeys(map(id, inserted.parameters()), "inserted")
    return found


def _kind(name: str, is_norm: bool) -> Kind:
    if is_norm:
        return "norm"
    # "bias", and PyTorch's recurrences have "bias_ih_l0" and their like.
    return "bias" if name.startswith("bias") or name.endswith("bias") else "weight"


def assign(model: Model, groups: Sequence[Group]) -> dict[str, Group]:
    """Every parameter that trains, by name, with the group that sets its rate.

    A parameter belongs to the first group that covers it in any of its parts (layers that share
    weights are several parts of one parameter).
    """
    kind_of, parts = kinds(model), model.parts()
    names: dict[int, str] = {}
    for named in parts.values():
        for name, parameter in named:
            names.setdefault(id(parameter), name)
    found: dict[str, Group] = {}
    for group in groups:
        for part, named in parts.items():
            for _, parameter in named:
                if group.covers(part, kind_of[id(parameter)]):
                    found.setdefault(names[id(parameter)], group)
    return found


def trained_names(model: Model, plan: Sequence[Phase]) -> list[str]:
    """Names of the parameters that any phase of the plan trains, in the model's order."""
    found = assign(model, [group for phase in plan for group in phase.train])
    return [name for name in model.unique_parameters() if name in found]


def without_last_layer(names: Iterable[str]) -> list[str]:
    """The names of parameters but for those of the head's last layer."""
    return [name for name in names if not re.fullmatch(_LAST_LAYER, name)]
