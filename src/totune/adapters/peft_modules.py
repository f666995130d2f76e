"""A method of PEFT that wraps modules of an encoder."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from totune.adapters.peft_support import (
    check_fit,
    plain,
    refusing,
    without_warnings,
)
from totune.adapters.peft_targets import fill_targets
from totune.encoders.adapter_modules import AdapterModules
from totune.encoders.transformers import TransformersEncoder
from totune.errors import ConfigError, ModelError
from totune.text import first_line

if TYPE_CHECKING:  # importing PEFT takes seconds
    from peft import PeftConfig

_ADAPTER = "default"  # what PEFT calls the only one; its files leave the name out
_ON_DISK = "base_model.model."  # PEFT's files name weights from its own wrapper of a model


class PeftModules(AdapterModules):
    """Wrappers of PEFT around modules of an encoder; `insert_peft` makes it.

    Args:
        encoder: changed in place.
        config: changed in place, too: PEFT fills in what it decides.

    Raises:
        ConfigError: if PEFT refuses, or would change or train the encoder's own weights.
    """

    def __init__(self, encoder: TransformersEncoder, config: "PeftConfig") -> None:
        from peft import PeftType
        from peft.mapping import PEFT_TYPE_TO_TUNER_MAPPING

        fill_targets(encoder, config)
        model, method = encoder.model, PeftType(config.peft_type)
        own = {id(p): (p, p.requires_grad, _sample(p)) for p in model.parameters()}
        with refusing(f"{method.value} does not fit this {encoder.kind} encoder"):
            self._tuner = PEFT_TYPE_TO_TUNER_MAPPING[method](model, config, _ADAPTER)
        self._encoder, self._method = encoder, str(method.value)
        self._names = frozenset(n for n, p in model.named_parameters() if id(p) not in own)
        self._check_own(list(own.values()))
        for parameter, flag, _ in own.values():
            parameter.requires_grad_(flag)
        _match_modes(model)

    def _check_own(self, own: list[tuple[nn.Parameter, bool, float]]) -> None:
        """Refuses what reaches into the encoder's own weights."""
        if any(_sample(parameter) != before for parameter, _, before in own):
            raise ConfigError(
                f"{self._method}: these options change the encoder's own weights before anything "
                "is trained; totune keeps them. Choose another initialisation."
            )
        if any(parameter.requires_grad for parameter, _, _ in own):
            raise ConfigError(
                f"{self._method}: these options train weights of the encoder itself, so the "
                "method could not be taken out again. Leave bias at 'none'."
            )

    def config(self) -> dict[str, Any]:
        """PEFT's configuration as plain JSON, `peft_type` among it."""
        found: dict[str, Any] = plain(self._tuner.peft_config[_ADAPTER].to_dict())
        return found

    def parameters(self) -> list[nn.Parameter]:
        return [p for name, p in self._encoder.model.named_parameters() if name in self._names]

    def state_dict(self) -> dict[str, Tensor]:
        """The weights by the names that PEFT gives them in `adapter_model.safetensors`."""
        from peft import get_peft_model_state_dict

        with without_warnings():
            weights = get_peft_model_state_dict(self._encoder.model, save_embedding_layers=False)
        return {f"{_ON_DISK}{n}": tensor.detach().clone() for n, tensor in weights.items()}

    def load_state_dict(self, weights: Mapping[str, Tensor]) -> None:
        from peft import set_peft_model_state_dict

        check_fit(weights, self.state_dict())
        with without_warnings():
            set_peft_model_state_dict(self._encoder.model, dict(weights))

    def merge(self) -> None:
        try:
            with torch.no_grad(), without_warnings():
                self._tuner.merge_and_unload()
        except (AttributeError, NotImplementedError, ValueError) as error:
            raise ModelError(
                f"{self._method} cannot be merged into the encoder's weights: {first_line(error)}. "
                "Keep it beside the encoder; it is small."
            ) from None
        self._encoder.inserted = None

    def remove(self) -> None:
        self._tuner.unload()
        self._encoder.inserted = None


def _sample(parameter: nn.Parameter) -> float:
    """A sum that changes if a weight is drawn or split again; 0 where there are no values (meta).

    Initialisations change all of a weight, so some of its values suffice and cost little.
    """
    if parameter.is_meta:
        return 0.0
    return float(parameter.detach().flatten()[::97].sum(dtype=torch.float64))


def _match_modes(model: nn.Module) -> None:
    """Puts what was wrapped around a module in its mode, so that eval mode has no dropout."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for module in model.modules():
        if isinstance(module, BaseTunerLayer):
            assert isinstance(module, nn.Module)
            module.train(module.get_base_layer().training)
