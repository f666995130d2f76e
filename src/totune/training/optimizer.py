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


class BertAdam(torch.optim.AdamW):
    """AdamW without bias correction, as BERT was trained and first fine-tuned.

    p <- p - lr (m / (sqrt(v) + 1e-6) + decay p), with the moments m and v as they are: early steps
    are larger than Adam's, up to (1 - 0.9) / sqrt(1 - 0.999) = 3.2 times in the first (Zhang et al.
    2021, section 4). The constants are those of BERT's own optimizer.
    """

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        super().__init__(groups, eps=1e-6)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            kept, square_kept = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["step"] = torch.zeros(())
                    state["exp_avg"] = torch.zeros_like(parameter)
                    state["exp_avg_sq"] = torch.zeros_like(parameter)
                state["step"] += 1
                mean, square = state["exp_avg"], state["exp_avg_sq"]
                mean.lerp_(parameter.grad, 1 - kept)
                square.mul_(square_kept).addcmul_(
                    parameter.grad, parameter.grad, value=1 - square_kept
                )
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.addcdiv_(mean, square.sqrt().add_(group["eps"]), value=-group["lr"])


def build_optimizer(
    groups: list[dict[str, Any]],
    previous: torch.optim.Optimizer | None = None,
    bias_correction: bool = True,
) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019) over the groups.

    Args:
        groups: from `apply_phase`.
        previous: the optimizer of the phase before; what trained there keeps its moments.
        bias_correction: whether moments are corrected for starting at zero; otherwise `BertAdam`.
    """
    optimizer = torch.optim.AdamW(groups, fused=True) if bias_correction else BertAdam(groups)
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
