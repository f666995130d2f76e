"""Methods of the PEFT library in an encoder: LoRA, IA3 and their like, and prefix tuning.

LoRA is of Hu et al. 2021, IA3 of Liu et al. 2022. PEFT wraps the modules that a method changes, so
their weights are called `NAME.base_layer.weight` until the insert is merged or removed.
"""

import copy
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from totune.adapters.peft_modules import PeftModules
from totune.adapters.peft_support import refusing
from totune.adapters.prefix import PrefixModules
from totune.encoders.adapter_modules import AdapterModules
from totune.encoders.encoder import Encoder
from totune.encoders.transformers import TransformersEncoder
from totune.errors import ConfigError, ModelError
from totune.registry import did_you_mean

if TYPE_CHECKING:  # importing PEFT takes seconds
    from peft import PeftConfig

_OWN_MODEL = "it needs a model or training steps of PEFT's own"
_BEFORE_TEXT = "it puts virtual tokens before the text, where heads look for its first token"
_UNUSABLE = {
    **dict.fromkeys(("ADALORA", "ADAPTION_PROMPT", "POLY", "SHADOW", "XLORA"), _OWN_MODEL),
    **dict.fromkeys(("CPT", "MULTITASK_PROMPT_TUNING", "PROMPT_TUNING", "P_TUNING"), _BEFORE_TEXT),
    "CARTRIDGE": "it is made for decoders",
}
# Options that reach beyond the modules that a method changes, or need PEFT's own forward pass.
_REACHING = (
    *("layer_replication", "modules_to_save", "target_parameters", "trainable_token_indices"),
    *("alora_invocation_tokens", "arrow_config"),
)

_FROM_DATA = ("corda", "eva", "lora_ga")  # initialisations; without data PEFT takes its usual one


def peft_config(facts: Mapping[str, Any]) -> "PeftConfig":
    """PEFT's configuration from what an `adapter_config.json` says.

    Args:
        facts: `peft_type`, such as "LORA", and options of PEFT's configuration class for it.

    Raises:
        ConfigError: for a method that is unknown or cannot be used here, with every unknown
            option, or for what PEFT itself refuses.
    """
    from peft import PeftType
    from peft.mapping import PEFT_TYPE_TO_CONFIG_MAPPING

    method = str(facts.get("peft_type"))
    _check_method(method)
    kind = PEFT_TYPE_TO_CONFIG_MAPPING[PeftType(method)]
    known = [field.name for field in dataclasses.fields(kind)]
    faults = [
        f"{method} has no option {name!r} in PEFT. {did_you_mean(name, known)}"
        for name in facts
        if name not in known
    ]
    faults += [
        f"{method}: {name} reaches beyond the modules that the method changes, so totune cannot "
        "train it. Leave it out."
        for name in _REACHING
        if facts.get(name)
    ]
    if method == "TRAINABLE_TOKENS" and not facts.get("token_indices"):
        faults.append("TRAINABLE_TOKENS: say which tokens train: token_indices, a list of numbers.")
    if facts.get("init_lora_weights") in _FROM_DATA:
        faults.append(
            f"{method}: init_lora_weights={facts['init_lora_weights']!r} is drawn from data, which "
            "totune does not do. Leave it out."
        )
    if faults:
        raise ConfigError(faults)
    with refusing(f"PEFT refuses these options of {method}"):
        return kind(**copy.deepcopy(dict(facts)))


def _check_method(method: str) -> None:
    from peft.mapping import PEFT_TYPE_TO_CONFIG_MAPPING, PEFT_TYPE_TO_TUNER_MAPPING

    methods = [str(known.value) for known in PEFT_TYPE_TO_CONFIG_MAPPING]
    shared = {
        known.value: "its layers share weights that lie in a model of PEFT's own"
        for known, tuner in PEFT_TYPE_TO_TUNER_MAPPING.items()
        if getattr(tuner, "uses_shared_state", False)
    }
    unusable = shared | _UNUSABLE
    usable = [known for known in methods if known not in unusable]
    if method in unusable:
        raise ConfigError(
            f"peft_type={method!r} cannot be put into an encoder here: {unusable[method]}. "
            f"Use one of {', '.join(sorted(usable))}."
        )
    if method not in usable:
        raise ConfigError(f"PEFT has no peft_type {method!r}. {did_you_mean(method, usable)}")


def insert_peft(encoder: Encoder, config: "PeftConfig") -> AdapterModules:
    """Puts a method of PEFT into an encoder, whose own weights stay as they are.

    Modules to change that `config` leaves open are those of `peft_targets.fill_targets`.

    Returns:
        What was put in, which is `encoder.inserted` too.

    Raises:
        ModelError: if something is inserted already.
        ConfigError: if the method does not fit the encoder.
    """
    if not isinstance(encoder, TransformersEncoder):
        raise ConfigError(
            f"{config.peft_type}: PEFT's methods change models of transformers, and an encoder of "
            f"type {encoder.kind} is none. Use fine-tuning or gradual-unfreezing."
        )
    if encoder.inserted is not None:
        raise ModelError(
            "This encoder has modules inserted already, and there is room for one insert alone. "
            "Remove them, or load the encoder again."
        )
    config = copy.deepcopy(config)
    make = PrefixModules if config.is_prompt_learning else PeftModules
    encoder.inserted = make(encoder, config)
    return encoder.inserted
