"""One process or several: who computes which rows, and how their results meet (accelerate).

Started as `torchrun --nproc-per-node N -m totune ...` (or, on GPUs, `accelerate launch`), every
process runs the same program, and the main one writes; with one process all of this reduces to
plain calls.
"""

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import Tensor, nn

from totune.model import Model


class Devices:
    """The processes of one run and the device of this one."""

    def __init__(self) -> None:
        # Without an accelerator in the machine, processes meet only if told to do so on the CPU.
        on_cpu = not torch.accelerator.is_available()
        self._accelerator = Accelerator(cpu=on_cpu, mixed_precision="no")
        self.rank: int = self._accelerator.process_index
        self.world: int = self._accelerator.num_processes
        self.device: torch.device = self._accelerator.device

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def wrap(self, model: Model) -> nn.Module:
        """The model on this device, with gradients averaged over processes.

        To be called anew in each phase, since averaging is set up for what trains now.
        """
        model.to(self.device)
        if self.world == 1:
            return model
        self._accelerator.free_memory()
        wrapped: nn.Module = self._accelerator.prepare_model(model)
        return wrapped

    def share(self, indices: np.ndarray) -> tuple[np.ndarray, bool]:
        """This process's rows of a batch, and whether they count.

        A process without a row of its own computes the first one at weight zero, since every
        process must take part in averaging.
        """
        own = indices[self.rank :: self.world]
        return (own, True) if len(own) else (indices[:1], False)

    def backward(self, loss: Tensor) -> None:
        self._accelerator.backward(loss)

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sums an array over processes."""
        if self.world == 1:
            return values
        summed = self._accelerator.reduce(torch.from_numpy(values).to(self.device), "sum")
        return np.asarray(summed.cpu())

    def agree(self, value: bool) -> bool:
        """The main process's `value`, for decisions that its clock or its disk makes."""
        values = [value]
        broadcast_object_list(values)
        return values[0]

    def wait(self) -> None:
        self._accelerator.wait_for_everyone()
