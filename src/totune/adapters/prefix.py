"""Prefix tuning through PEFT: trained keys and values before those of the text, in every layer.

Li and Liang 2021; for encoders of all sizes as in P-tuning v2 (Liu et al. 2022).
Shapes: B examples, T word pieces, V virtual tokens, L layers, N heads, D width of a head.
"""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from totune.adapters.peft_support import check_fit, plain
from totune.encoders.adapter_modules import AdapterModules
from totune.encoders.first_token import whole_top_layer
from totune.encoders.layouts import layout_of
from totune.encoders.transformers import TransformersEncoder, position_limit
from totune.errors import ConfigError, ModelError

_EMBEDDINGS = "prompt_embeddings"  # the only name in PEFT's file
_VIRTUAL_TOKENS = 20


class Prefix(nn.Module):
    """Keys and values of V virtual tokens for every layer.

    Args:
        config: PEFT's `PrefixTuningConfig`, complete and without a projection.
        longest: how many positions the encoder has.
    """

    def __init__(self, config: Any, longest: int) -> None:
        from peft import PrefixEncoder

        super().__init__()
        made: Any = PrefixEncoder(config)  # type: ignore[no-untyped-call]
        self.table: nn.Embedding = made.embedding  # weight [V, L * 2 * N * D]
        heads, width = config.num_attention_heads, config.token_dim
        self._shape = (config.num_virtual_tokens, config.num_layers, 2, heads, width // heads)
        self._longest = longest

    def forward(self, attention_mask: Tensor) -> dict[str, Any]:
        """What a model is given for the prefix to be seen: a cache and a mask [B, V + T].

        As in PEFT, the text's positions are counted from V.

        Args:
            attention_mask: [B, T].

        Raises:
            ConfigError: if there are not V + T positions.
        """
        from transformers import DynamicCache

        (rows, length), virtual = attention_mask.shape, len(self.table.weight)
        if virtual + length > self._longest:
            raise ConfigError(
                f"{virtual} virtual tokens and inputs of {length} word pieces need more positions "
                f"than the encoder's {self._longest}. Use max_length={self._longest - virtual} or "
                "fewer virtual tokens."
            )
        states = self.table.weight.view(self._shape).permute(1, 2, 3, 0, 4)
        pairs = [
            tuple(state.expand(rows, *state.shape) for state in layer)  # each [B, N, V, D]
            for layer in states
        ]
        mask = torch.cat((attention_mask.new_ones(rows, virtual), attention_mask), dim=1)
        return {"past_key_values": DynamicCache(pairs), "attention_mask": mask}


def _check(encoder: TransformersEncoder, config: Any) -> None:
    faults = []
    if "past_key_values" not in inspect.signature(encoder.model.forward).parameters:
        faults.append(
            f"PREFIX_TUNING: attention of the type {encoder.kind} takes no keys and values from "
            "outside, so a prefix cannot be put before the text. Use LORA or IA3, or an encoder "
            "of type bert, roberta, xlm-roberta, camembert or electra."
        )
    if config.prefix_projection:
        faults.append(
            "PREFIX_TUNING: with prefix_projection=true PEFT saves the prefix without the network "
            "that makes it, which cannot be trained on. Leave it false."
        )
    virtual, limit = config.num_virtual_tokens, _positions(encoder)
    if virtual is not None and not (isinstance(virtual, int) and 1 <= virtual < limit):
        faults.append(
            f"PREFIX_TUNING: num_virtual_tokens={virtual!r} is not a whole number from 1 to "
            f"{limit - 1}; the encoder has {limit} positions for them and the text."
        )
    if faults:
        raise ConfigError(faults)


def _complete(encoder: TransformersEncoder, config: Any) -> None:
    """Fills in what the encoder decides, as PEFT does, and the task, which PEFT needs."""
    config.task_type = config.task_type or "FEATURE_EXTRACTION"
    config.num_virtual_tokens = config.num_virtual_tokens or _VIRTUAL_TOKENS
    config.num_layers = encoder.depth
    config.token_dim = config.encoder_hidden_size = encoder.width
    config.num_attention_heads = encoder.model.config.num_attention_heads
    config.num_transformer_submodules = 1


def _positions(encoder: TransformersEncoder) -> int:
    return position_limit(encoder.model.config, layout_of(encoder.kind))


class PrefixModules(AdapterModules):
    """A prefix that is in an encoder; `insert_peft` makes it.

    Args:
        encoder: changed in place.
        config: PEFT's `PrefixTuningConfig`; what the encoder decides is filled in.

    Raises:
        ConfigError: if the encoder's attention takes no keys and values from outside, or the
            configuration is not one for this encoder.
    """

    def __init__(self, encoder: TransformersEncoder, config: Any) -> None:
        _check(encoder, config)
        _complete(encoder, config)
        limit = _positions(encoder)
        prefix = Prefix(config, limit).to(encoder.device).train(encoder.model.training)
        # Computing the top layer for its first token alone would leave the prefix out.
        whole_top_layer(encoder.model)
        self._encoder, self._config = encoder, config
        self._max_length = encoder.max_length
        encoder.prefix = prefix
        encoder.max_length = min(encoder.max_length, limit - config.num_virtual_tokens)

    def config(self) -> dict[str, Any]:
        """PEFT's configuration as plain JSON."""
        found: dict[str, Any] = plain(self._config.to_dict())
        return found

    def parameters(self) -> list[nn.Parameter]:
        return list(self._prefix.parameters())

    def state_dict(self) -> dict[str, Tensor]:
        """The weights by the name that PEFT gives them in `adapter_model.safetensors`."""
        return {_EMBEDDINGS: self._prefix.table.weight.detach().clone()}

    def load_state_dict(self, weights: Mapping[str, Tensor]) -> None:
        check_fit(weights, self.state_dict())
        with torch.no_grad():
            self._prefix.table.weight.copy_(weights[_EMBEDDINGS])

    def merge(self) -> None:
        """Cannot be done.

        Raises:
            ModelError: always.
        """
        raise ModelError(
            "PREFIX_TUNING cannot be merged into the encoder's weights: a prefix is keys and "
            "values beside those of the text, which no weights make. Keep it beside the encoder; "
            "it is small."
        )

    def remove(self) -> None:
        self._encoder.prefix = None
        self._encoder.max_length = self._max_length
        self._encoder.inserted = None

    @property
    def _prefix(self) -> Prefix:
        prefix = self._encoder.prefix
        assert isinstance(prefix, Prefix), "it is in from the beginning to the end"
        return prefix
