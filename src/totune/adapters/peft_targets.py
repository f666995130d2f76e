"""Which modules of an encoder a method of PEFT changes, where its configuration does not say."""

import re
from typing import Any

from torch import nn

from totune.encoders.encoder import Encoder
from totune.encoders.layouts import layout_of
from totune.encoders.transformers import TransformersEncoder
from totune.errors import ConfigError
from totune.registry import did_you_mean


def fill_targets(encoder: TransformersEncoder, config: Any) -> None:
    """Says in `config` which modules a method changes, where it leaves that open.

    IA3 rescales keys, values and what lies between the two projections of the feed-forward (Liu et
    al. 2022, section 3.3); where one matrix makes queries, keys and values (ModernBERT), all that
    it makes. Tuning of norms takes all norms of the layers, other methods the query and value
    projections, as Hu et al. (2021) do.

    Args:
        encoder: decides what these modules are called.
        config: of any class of PEFT's; changed in place.

    Raises:
        ConfigError: with every module it names that the encoder has not.
    """
    method, layout = config.peft_type, layout_of(encoder.kind)
    if method == "IA3" and config.feedforward_modules is None:
        config.feedforward_modules = _in_layers(layout.layers, layout.rescaled[-1:])
    if getattr(config, "target_modules", "") is not None or method == "TRAINABLE_TOKENS":
        _check(encoder, config)
    elif method == "IA3":
        config.target_modules = _in_layers(layout.layers, layout.rescaled)
    elif method == "LN_TUNING":
        config.target_modules = _norms(encoder)
    else:
        config.target_modules = list(layout.projections)


def leave_out_pooler(encoder: Encoder, config: Any) -> None:
    """Says in `config` that the pretrained pooler stays as it is, if nothing is said of that.

    Its linear map is called what others in the layers are, too.
    """
    undecided = getattr(config, "exclude_modules", "") is None
    if undecided and isinstance(encoder, TransformersEncoder):
        present = dict(encoder.model.named_modules())
        pooler = [name for name in layout_of(encoder.kind).pooler if name in present]
        config.exclude_modules = pooler or None


def _check(encoder: TransformersEncoder, config: Any) -> None:
    """Refuses names in a list that no module has; PEFT would leave them out."""
    targets = getattr(config, "target_modules", None)
    if targets is None or isinstance(targets, str):
        return
    whole = encoder.model.named_modules()
    leaves = {f".{name}": module for name, module in whole if not any(module.children())}
    known = {n.rpartition(".")[2] for n, module in leaves.items() if isinstance(module, nn.Linear)}
    faults = [
        f"target_modules: no module of this {encoder.kind} encoder is called {target!r}. "
        f"{did_you_mean(str(target), known)}"
        for target in sorted(targets, key=str)
        if not any(name.endswith(f".{target}") for name in leaves)
    ]
    if faults:
        raise ConfigError(faults)


def _norms(encoder: TransformersEncoder) -> list[str]:
    """Names of the norms in the encoder's layers, as paths within the model."""
    path = layout_of(encoder.kind).layers
    modules = encoder.model.get_submodule(path).named_modules()
    return [f"{path}.{name}" for name, m in modules if "norm" in type(m).__name__.lower()]


def _in_layers(layers: str, paths: tuple[str, ...]) -> str:
    """A pattern for paths within any layer; PEFT matches it against whole names of modules."""
    within = "|".join(map(re.escape, paths))
    return rf"(.*\.)?{re.escape(layers)}\.\d+\.({within})"
