"""Against the package `adapters` 1.3.0 in a tiny BERT (`oracles/adapters.npz`, float64)."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig

from totune.adapters.adapters import AdapterConfig, insert_adapters
from totune.encoders.transformers import TransformersEncoder
from totune.inputs.batches import Batch

ORACLE = {
    name: torch.from_numpy(array)
    for name, array in np.load(Path(__file__).parent / "oracles" / "adapters.npz").items()
}
CONFIGS = {
    "houlsby": AdapterConfig(8, "per-sublayer", "houlsby", "gelu"),
    "pfeiffer": AdapterConfig(8, "per-layer", "pfeiffer", "relu"),
}
# The oracle counts layers from 0 and calls the feed-forward sublayer "output".
PLACES = {
    "houlsby": {"attention": "attention", "output": "feed_forward"},
    "pfeiffer": {"output": ""},
}


def encoder_of(tag: str, dtype: torch.dtype) -> TransformersEncoder:
    config = BertConfig(
        vocab_size=40,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=16,
        type_vocab_size=2,
    )
    encoder = TransformersEncoder.from_config(config, "eager").to(dtype).eval()
    weights = {n.removeprefix("bert."): w for n, w in ORACLE.items() if n.startswith("bert.")}
    encoder.model.load_state_dict(weights)
    if tag in CONFIGS:
        adapters = insert_adapters(encoder, CONFIGS[tag])
        adapters.load_state_dict(weights_of(tag))
        assert sum(p.numel() for p in adapters.parameters()) == ORACLE[f"n_parameters_{tag}"]
    return encoder


def weights_of(tag: str) -> dict[str, torch.Tensor]:
    found = {}
    for layer in (0, 1):
        for theirs, ours in PLACES[tag].items():
            for own in ("down.weight", "down.bias", "up.weight", "up.bias"):
                name = ".".join(filter(None, [f"layer.{layer + 1}", ours, own]))
                found[name] = ORACLE[f"{tag}.layer.{layer}.{theirs}.{own}"]
    return found


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 2e-5)])
@pytest.mark.parametrize("tag", ["none", "houlsby", "pfeiffer"])
def test_states_of_every_layer_and_the_pooled_vector(
    tag: str, dtype: torch.dtype, atol: float
) -> None:
    encoder = encoder_of(tag, dtype)
    names = ("input_ids", "attention_mask", "token_type_ids")
    batch = Batch(np.arange(3), *(ORACLE[name] for name in names))
    assert encoder.pooler is not None
    with torch.no_grad():
        states = encoder.encode(batch).states
        pooled = encoder.pooler(states[-1][:, 0])
    found, expected = torch.stack(states), ORACLE[f"hidden_states_{tag}"]
    torch.testing.assert_close(found, expected.to(dtype), atol=atol, rtol=0)
    torch.testing.assert_close(pooled, ORACLE[f"pooled_{tag}"].to(dtype), atol=atol, rtol=0)
