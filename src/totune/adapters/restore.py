"""Putting in again what an `adapter_config.json` describes."""

from collections.abc import Mapping
from typing import Any

from totune.adapters.adapters import AdapterConfig, insert_adapters
from totune.adapters.peft import insert_peft, peft_config
from totune.encoders.adapter_modules import AdapterModules
from totune.encoders.encoder import Encoder
from totune.errors import ModelError

BOTTLENECK = "bottleneck"


def insert_again(encoder: Encoder, config: Mapping[str, Any]) -> AdapterModules:
    """Puts untrained modules into an encoder, as `AdapterModules.config` says they were.

    Args:
        encoder: one without inserted modules; changed in place.
        config: adapters of totune, or any method of PEFT.

    Raises:
        ModelError: if the configuration is of neither, or does not fit the encoder.
    """
    if config.get("kind") == BOTTLENECK:
        return insert_adapters(encoder, AdapterConfig.from_json(config))
    if "peft_type" in config:
        return insert_peft(encoder, peft_config(config))
    raise ModelError(
        "the configuration of the inserted modules names neither 'peft_type' nor the kind "
        f"{BOTTLENECK!r}, so it is of no method that totune knows."
    )
