"""From a phase's groups to AdamW: who trains, at which rate, with which decay."""

from typing import Any

import torch
from torch import nn

from totune.model import Model
from totune.strategies.coverage import assign
from totune.strategies.phases import Phase


def apply_phase(model: Model, phase: Phase) -> list[dict[str, Any]]:
    """Freezes what the phase does not train and returns the optimizer's groups.

    Weight decay applies to matrices alone, not to biases and norms. The head of pairs, which is
    computed after the steps, gets no gradient: several processes would wait for it.
    """
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    trained = assign(model, phase.train)
    parameters = model.unique_parameters()
    groups: list[dict[str, Any]] = []
    for group in dict.fromkeys(trained.values()):
        if phase.objective == "pairs" and not group.learning_rate:
            continue
        own = [parameters[name] for name, found in trained.items() if found == group]
        for decays in (True, False):
            chosen = [p.requires_grad_() for p in own if (p.ndim >= 2) == decays]
            if chosen:
                decay = group.weight_decay if decays else 0.0
                rates = {"lr": group.learning_rate, "peak": group.learning_rate}
                groups.append({"params": chosen, "weight_decay": decay, **rates})
    return groups


def build_optimizer(
    groups: list[dict[str, Any]], previous: torch.optim.Optimizer | None = None
) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019) over the groups, bias-corrected.

    Args:
        groups: from `apply_phase`.
        previous: the optimizer of the phase before; what trained there keeps its moments.
    """
    optimizer = torch.optim.AdamW(groups, fused=True)
    if previous is not None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter in previous.state:
                    optimizer.state[parameter] = previous.state[parameter]
    return optimizer


def moments_to_come(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """As much memory as AdamW's two moments will take of what has not had a step yet."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return [torch.empty_like(p) for p in parameters if p not in optimizer.state for _ in range(2)]


def set_rates(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """Sets every group's rate to `factor` times its peak."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * factor


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that train now."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]
