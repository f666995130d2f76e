"""One process or several: who computes which rows, and how their results meet (accelerate).

Started as `torchrun --nproc-per-node N -m totune ...` (or, on GPUs, `accelerate launch`), every
process runs the same program, and the main one writes; with one process all of this reduces to
plain calls.
"""

import os

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object, reduce
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from totune.errors import ConfigError


class Devices:
    """The processes of one run and the device of this one.

    Raises:
        ConfigError: if a launcher's variables of the environment are no numbers.
    """

    def __init__(self) -> None:
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
            value = os.environ.get(name)
            if value is not None and not value.isdecimal():
                raise ConfigError(
                    f"{name}={value!r} in the environment is no number. A launcher such as "
                    "torchrun sets it; without one, unset it."
                )
        # Without an accelerator in the machine, processes meet only if told to do so on the CPU.
        on_cpu = not torch.accelerator.is_available()
        # Only accelerate's knowledge of processes: an `Accelerator` also holds one precision for
        # the whole process, which another trainer may have set otherwise before.
        self._state = PartialState(cpu=on_cpu)
        self.rank: int = self._state.process_index
        self.world: int = self._state.num_processes
        self.device: torch.device = self._state.device

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model on this device, with gradients averaged over processes.

        To be called anew in each phase, since averaging is set up for what trains now.
        """
        model.to(self.device)
        if self.world == 1:
            return model
        own = None if self.device.type == "cpu" else [self.device]
        return DistributedDataParallel(model, device_ids=own)

    def share(self, indices: np.ndarray) -> tuple[np.ndarray, bool]:
        """This process's rows of a batch, and whether they count.

        A process without a row of its own computes the first one at weight zero, since every
        process must take part in averaging.
        """
        own = indices[self.rank :: self.world]
        return (own, True) if len(own) else (indices[:1], False)

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sums an array over processes."""
        if self.world == 1:
            return values
        summed = reduce(torch.from_numpy(values).to(self.device), "sum")
        return np.asarray(summed.cpu())

    def agree(self, value: bool) -> bool:
        """The main process's `value`, for decisions that its clock or its disk makes."""
        values = [value]
        broadcast_object_list(values)
        return values[0]

    def tell_all(self, value: int) -> list[int]:
        """Every process's `value`, in every process."""
        return list(gather_object([value]))

    def wait(self) -> None:
        self._state.wait_for_everyone()
