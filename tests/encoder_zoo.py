"""Tiny random encoders of every supported type, for tests."""

import copy
from collections.abc import Container, Iterable
from functools import lru_cache

import numpy as np
import pytest
import torch
from transformers import AutoConfig, PretrainedConfig

from totune.encoders.layouts import LAYOUTS
from totune.encoders.transformers import TransformersEncoder
from totune.inputs.batches import Batch

LAYERS, WIDTH, VOCABULARY, PADDING = 4, 32, 60, 1

_SIZES = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
    "pad_token_id": PADDING,
}
_DEBERTA_V3 = {
    "type_vocab_size": 0,
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": ["p2c", "c2p"],
    "position_buckets": 8,
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
}
_OWN: dict[str, dict[str, object]] = {
    "albert": {"embedding_size": 16, "num_hidden_groups": 2},
    "deberta-v2": {**_DEBERTA_V3, "conv_kernel_size": 3, "conv_act": "gelu"},
    "distilbert": {"dim": WIDTH, "hidden_dim": 48, "n_layers": LAYERS, "n_heads": 4},
    "electra": {"embedding_size": 16},
    "modernbert": {"local_attention": 4, "global_attn_every_n_layers": 3, "cls_token_id": 0},
    "roberta": {"type_vocab_size": 1},
}
# A second configuration of a type: other modules are there or not.
_VARIANTS = {
    "albert-one-group": ("albert", {"embedding_size": 16, "num_hidden_groups": 1}),
    "deberta-v2-without-convolution": ("deberta-v2", _DEBERTA_V3),
    "electra-without-projection": ("electra", {"embedding_size": WIDTH}),
}
TINY = [*LAYOUTS, *_VARIANTS]
# They differ in more than names: layers apart, layers that share weights, norms before sublayers.
UNLIKE = ("bert", "albert", "modernbert")


def with_encoders(
    names: Iterable[str],
    usual: Container[str] = (),
    without: Container[tuple[str, str]] = (),
) -> list[pytest.param]:  # type: ignore[valid-type]
    """Parameters (name, encoder): every name with every encoder, but for pairs in `without`.

    Most run what others run too, and are slow: all but those of the encoders in `UNLIKE`, and of
    the names in `usual`.
    """
    return [
        pytest.param(
            name, encoder, marks=() if encoder in UNLIKE or name in usual else pytest.mark.slow
        )
        for name in names
        for encoder in TINY
        if (name, encoder) not in without
    ]


def tiny_config(name: str) -> PretrainedConfig:
    kind, own = _VARIANTS.get(name, (name, _OWN.get(name, {})))
    return AutoConfig.for_model(kind, **{**_SIZES, **own})


def tiny_encoder(name: str, seed: int = 0) -> TransformersEncoder:
    """In eval mode; weights are spread wide, so that a wrong mask or position shows.

    Made once and copied, which takes half the time; it leaves the generator as if made.
    """
    encoder, random_state = _encoder_and_random_state(name, seed)
    torch.set_rng_state(random_state)
    return copy.deepcopy(encoder)


@lru_cache(maxsize=64)
def _encoder_and_random_state(name: str, seed: int) -> tuple[TransformersEncoder, torch.Tensor]:
    torch.manual_seed(seed)
    encoder = TransformersEncoder.from_config(tiny_config(name))
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return encoder.eval(), torch.get_rng_state()


def batch_of(lengths: list[int], padded_to: int | None = None, seed: int = 0) -> Batch:
    """Random word pieces: row i depends on the seed and its place only, not on the padding."""
    width = padded_to or max(lengths)
    random = np.random.default_rng(seed)
    rows = [random.integers(5, VOCABULARY, 40)[:length] for length in lengths]
    ids = np.full((len(lengths), width), PADDING)
    segments = np.zeros_like(ids)
    for row, pieces in enumerate(rows):
        ids[row, : len(pieces)] = pieces
        segments[row, len(pieces) // 2 : len(pieces)] = 1
    return Batch(
        indices=np.arange(len(lengths)),
        input_ids=torch.from_numpy(ids),
        attention_mask=torch.from_numpy((ids != PADDING).astype(np.int64)),
        token_type_ids=torch.from_numpy(segments),
    )
