"""What strategies put into an encoder: modules of their own between its modules."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn


class AdapterModules(ABC):
    """Modules that were put into an encoder, which holds one such set at most.

    The encoder knows it as `encoder.inserted`, from the moment it was put in until it is merged or
    removed.
    """

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """What `adapter_config.json` says: enough for `insert_again` to put the same in."""

    @abstractmethod
    def parameters(self) -> list[nn.Parameter]:
        """Its parameters, each once; they are in the encoder's blocks too."""

    @abstractmethod
    def state_dict(self) -> dict[str, Tensor]:
        """Its weights under the names they are saved by; no tensor twice."""

    @abstractmethod
    def load_state_dict(self, weights: Mapping[str, Tensor]) -> None:
        """Takes over weights of `state_dict`.

        Raises:
            ModelError: if names or shapes are not those of this insert.
        """

    @abstractmethod
    def merge(self) -> None:
        """Folds the insert into the encoder's own weights, and takes it out.

        Raises:
            ModelError: if it is not linear in its input, so that no weights can do the same.
        """

    @abstractmethod
    def remove(self) -> None:
        """Takes it out: the encoder computes what it did before."""


def misfits(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor], whose: str) -> str:
    """The first way in which saved weights do not fit modules, and how many more there are.

    Args:
        weights: that were saved.
        expected: of the modules.
        whose: what a name that they do not know is none of, such as "its weights".

    Returns:
        The fault in words; "" where names and shapes are equal.
    """
    faults = [f"{name} is missing" for name in expected if name not in weights]
    faults += [f"{name} is not one of {whose}" for name in weights if name not in expected]
    faults += [
        f"{name} has shape {tuple(weights[name].shape)}, not {tuple(tensor.shape)}"
        for name, tensor in expected.items()
        if name in weights and weights[name].shape != tensor.shape
    ]
    more = f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""
    return f"{faults[0]}{more}" if faults else ""
