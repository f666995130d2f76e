"""Bottleneck adapters in an encoder: put in, saved, switched off, taken out.

Houlsby et al. 2019 put one behind each of a layer's two sublayers; Pfeiffer et al. 2021 one behind
the feed-forward alone, around its layer norm; Mohebbi and Rajaee share one between places.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn

from totune.adapters.bottleneck import Activation, Adapted, AdaptedNorm, Bottleneck
from totune.adapters.sharing import Names, Placement, Sharing, Span, names_of
from totune.encoders.adapter_modules import AdapterModules, misfits
from totune.encoders.encoder import Encoder
from totune.encoders.layouts import Sublayers, layout_of
from totune.encoders.transformers import TransformersEncoder
from totune.errors import ConfigError, ModelError
from totune.registry import build, option_names


@dataclass(frozen=True)
class AdapterConfig:
    """What adapters are like and where they are.

    Attributes:
        bottleneck_size: m, the width of the bottleneck.
        sharing: as the option of the strategy `adapters`.
        placement: "houlsby" is behind both sublayers, before residual and layer norm; "pfeiffer"
            behind the feed-forward, its residual and its layer norm.
        activation: between the two projections.
    """

    bottleneck_size: Annotated[int, Field(ge=1)] = 64
    sharing: Sharing = "per-sublayer"
    placement: Placement = "houlsby"
    activation: Activation = "gelu"

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> "AdapterConfig":
        """From what `Adapters.config` said.

        Raises:
            ModelError: if something is missing.
            ConfigError: if a value is not one that the option takes.
        """
        names = option_names(cls)
        missing = [name for name in names if name not in facts]
        if missing:
            raise ModelError(
                f"The configuration of the bottleneck adapters does not say {', '.join(missing)}: "
                "it is not complete, save the adapters again."
            )
        return build(cls, {name: facts[name] for name in names}, "bottleneck adapters")


@dataclass(frozen=True)
class Place:
    """Where an adapter is: `module` stands under `name` in `owner`, part of layers first..last."""

    owner: nn.Module
    name: str
    module: Adapted | AdaptedNorm
    first: int
    last: int


class Adapters(AdapterModules):
    """Bottleneck adapters that are in an encoder; `insert_adapters` makes them."""

    def __init__(
        self,
        encoder: TransformersEncoder,
        config: AdapterConfig,
        adapters: Mapping[str, Bottleneck],
        places: Sequence[Place],
    ) -> None:
        self._encoder = encoder
        self._config = config
        self._adapters = dict(adapters)
        self._places = list(places)

    def config(self) -> dict[str, Any]:
        """Kind and options, and the shape of the encoder; plain JSON."""
        options: dict[str, Any] = json.loads(json.dumps(asdict(self._config)))
        encoder = self._encoder
        shape = {"hidden_size": encoder.width, "num_hidden_layers": encoder.depth}
        return {"kind": "bottleneck", **options, "model_type": encoder.kind, **shape}

    def parameters(self) -> list[nn.Parameter]:
        return [p for adapter in self._adapters.values() for p in adapter.parameters()]

    def state_dict(self) -> dict[str, Tensor]:
        """The weights by adapter, such as `layer.3.attention.down.weight`."""
        return {name: parameter.detach() for name, parameter in self._named()}

    def load_state_dict(self, weights: Mapping[str, Tensor]) -> None:
        named = dict(self._named())
        fault = misfits(weights, named, "theirs")
        if fault:
            raise ModelError(
                f"The weights do not fit the bottleneck adapters in this encoder: {fault}. Insert "
                "adapters with the options, and into the encoder, that the weights were saved with."
            )
        with torch.no_grad():
            for name, parameter in named.items():
                parameter.copy_(weights[name])

    def merge(self) -> None:
        """Cannot be done.

        Raises:
            ModelError: always.
        """
        raise ModelError(
            "Bottleneck adapters cannot be merged: between their two projections is a "
            f"{self._config.activation}, so no weights of the encoder can do the same. Keep them "
            "beside the encoder; they are small."
        )

    def remove(self) -> None:
        for place in self._places:
            setattr(place.owner, place.name, place.module.replaced)
        self._places.clear()
        self._encoder.inserted = None

    @contextmanager
    def removed(self, first: int, last: int) -> Iterator[None]:
        """Computes layers first..last (from 1, both included) without their adapters.

        Nothing is trained again, as in Mohebbi and Rajaee, Figure 8; a shared adapter remains in
        the other layers. What the encoder's weights identify, such as cached features, does not
        tell the difference.

        Raises:
            ConfigError: if the encoder has not these layers, or only some of the layers that share
                their weights are among them.
        """
        off = [place for place in self._within(first, last) if place.module.active]
        for place in off:
            place.module.active = False
        try:
            yield
        finally:
            for place in off:
                place.module.active = True

    def _named(self) -> Iterator[tuple[str, nn.Parameter]]:
        for name, adapter in self._adapters.items():
            for own, parameter in adapter.named_parameters():
                yield f"{name}.{own}", parameter

    def _within(self, first: int, last: int) -> list[Place]:
        """The places in layers first..last."""
        depth = self._encoder.depth
        if not 1 <= first <= last <= depth:
            raise ConfigError(
                f"Adapters of layers {first}..{last} cannot be removed: the encoder has layers "
                f"1..{depth}, and the first must not be above the last."
            )
        touched = [place for place in self._places if place.first <= last and first <= place.last]
        for place in touched:
            if place.first < first or last < place.last:
                raise ConfigError(
                    f"Adapters of layers {first}..{last} cannot be removed: layers "
                    f"{place.first}..{place.last} share their weights and adapters in this "
                    f"{self._encoder.kind} encoder. Name all of them or none."
                )
        return touched


def insert_adapters(encoder: Encoder, config: AdapterConfig) -> Adapters:
    """Puts new adapters into an encoder, drawn from PyTorch's generator; almost the identity.

    Modules that get an adapter keep their weights under their name with `.inner` or `.norm` behind.

    Returns:
        The adapters, which are `encoder.inserted` too.

    Raises:
        ModelError: if something is inserted already.
        ConfigError: if the encoder has not the places that `config` asks for.
    """
    if not isinstance(encoder, TransformersEncoder):
        raise ConfigError(
            f"adapters: they go behind the sublayers of a transformer, and an encoder of type "
            f"{encoder.kind} has none. Use fine-tuning or gradual-unfreezing."
        )
    if encoder.inserted is not None:
        raise ModelError(
            "This encoder has modules inserted already, and there is room for one insert alone. "
            "Remove them, or load the encoder again."
        )
    _check_places(encoder, config)
    spans = layer_spans(encoder)
    names = names_of(config.sharing, spans, config.placement)
    adapters: dict[str, Bottleneck] = {}
    places: list[Place] = []
    for span in spans:
        places += _adapt(encoder, config, span, names[span[0] - 1], adapters)
    encoder.inserted = Adapters(encoder, config, adapters, places)
    return encoder.inserted


def _check_places(encoder: TransformersEncoder, config: AdapterConfig) -> None:
    faults = []
    if getattr(encoder.model.config, "inner_group_num", 1) > 1:
        faults.append(
            f"adapters: each layer of this {encoder.kind} encoder is made of several "
            "(inner_group_num > 1), so it has no two places for adapters. Use fine-tuning."
        )
    if config.placement == "pfeiffer" and _sublayers(encoder).feed_forward_norm is None:
        faults.append(
            f"placement=pfeiffer: an adapter there goes around the layer norm behind the "
            f"feed-forward, and {encoder.kind} norms before its sublayers. Use placement=houlsby."
        )
    if faults:
        raise ConfigError(faults)


def _sublayers(encoder: TransformersEncoder) -> Sublayers:
    return layout_of(encoder.kind).sublayers


def layer_spans(encoder: TransformersEncoder) -> list[Span]:
    """First and last of the layers that are one module, since they share their weights."""
    grouped = groupby(range(1, encoder.depth + 1), key=lambda depth: id(encoder.layer(depth)))
    runs = [list(run) for _, run in grouped]
    return [(run[0], run[-1]) for run in runs]


def _adapt(
    encoder: TransformersEncoder,
    config: AdapterConfig,
    span: Span,
    names: Names,
    adapters: dict[str, Bottleneck],
) -> Iterator[Place]:
    """Puts the adapters of one layer, or of several that are one module, in their places."""
    layer, sublayers = encoder.layer(span[0]), _sublayers(encoder)
    kind = AdaptedNorm if config.placement == "pfeiffer" else Adapted
    last = sublayers.feed_forward_norm if kind is AdaptedNorm else sublayers.feed_forward
    for path, name in zip((sublayers.attention, last), names, strict=True):
        if path is None or name is None:
            continue
        if name not in adapters:
            adapters[name] = _new(encoder, config)
        owner_path, _, own_name = path.rpartition(".")
        owner = layer.get_submodule(owner_path)
        replaced = owner.get_submodule(own_name)
        module = kind(replaced, adapters[name]).train(replaced.training)
        setattr(owner, own_name, module)
        yield Place(owner, own_name, module, *span)


def _new(encoder: TransformersEncoder, config: AdapterConfig) -> Bottleneck:
    """An adapter where the encoder's weights are, in their precision."""
    like = next(encoder.parameters())
    adapter = Bottleneck(encoder.width, config.bottleneck_size, config.activation)
    return adapter.to(like.device, like.dtype)
