"""What a step costs in floating-point operations, and what the machine could do."""

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from totune import machine
from totune.pretraining.objective import Objective


def count_operations(objective: Objective, part: dict[str, Tensor]) -> float:
    """Floating-point operations of matrix products, forward and backward, over a part.

    Gradients are left as they were: none.
    """
    with FlopCounterMode(display=False) as counter:
        sums = objective.count(part)
        losses = [value for name, value in sums.items() if not name.endswith("_right")]
        torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
    for parameter in objective.parameters():
        parameter.grad = None
    return float(counter.get_total_flops())


def matrix_rate(precision: machine.Precision, device: torch.device) -> float:
    """Operations per second of large matrix products in this precision on this device."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    size = 8192 if device.type == "cuda" else 1024
    return 1e9 * machine.matmul_rate(dtype, device, size)
