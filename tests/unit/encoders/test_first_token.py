"""A top layer that computes its first token alone gives the same state and gradients."""

import copy

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModel,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    PretrainedConfig,
    PreTrainedModel,
    RobertaConfig,
)

from totune.encoders.first_token import only_first_token, whole_top_layer
from totune.encoders.kernels import accelerate_encoder

SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
CONFIGS = [BertConfig(**SIZES), RobertaConfig(**SIZES), ElectraConfig(**SIZES, embedding_size=8)]


def build(config: PretrainedConfig, implementation: str = "sdpa") -> PreTrainedModel:
    torch.manual_seed(0)
    return AutoModel.from_config(config, attn_implementation=implementation)


def batch() -> dict[str, Tensor]:
    ids = torch.randint(5, 50, (3, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.model_type)
@pytest.mark.parametrize("training", [True, False])
def test_state_and_gradients_are_equal(
    config: PretrainedConfig, fast: bool, training: bool
) -> None:
    whole = build(config).train(training)
    if fast:
        accelerate_encoder(whole, torch.device("cpu"))
    narrow = copy.deepcopy(whole)
    assert only_first_token(narrow)
    states = [model(**batch()).last_hidden_state for model in (whole, narrow)]
    assert states[1].shape == (3, 1, 16)
    assert torch.allclose(states[0][:, :1], states[1], atol=1e-6)
    for state in states:
        (state[:, 0] * torch.arange(48).sin().view(3, 16)).sum().backward()
    for expected, found in zip(whole.parameters(), narrow.parameters(), strict=True):
        if expected.grad is not None:
            limit = 1e-5 * max(1.0, expected.grad.abs().max().item())
            assert torch.allclose(expected.grad, found.grad, atol=limit)


def test_it_can_be_undone_and_keeps_names() -> None:
    model = build(CONFIGS[0])
    names = list(model.state_dict())
    assert only_first_token(model)
    assert list(model.state_dict()) == names
    whole_top_layer(model)
    assert model(**batch()).last_hidden_state.shape == (3, 9, 16)
    whole_top_layer(model)


def test_a_copy_computes_with_its_own_weights() -> None:
    model = build(CONFIGS[0]).eval()
    only_first_token(model)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.encoder.layer[-1].output.LayerNorm.bias.add_(1.0)
    difference = twin(**batch()).last_hidden_state - model(**batch()).last_hidden_state
    assert torch.allclose(difference, torch.ones_like(difference), atol=1e-6)


def test_other_types_and_eager_attention_are_refused() -> None:
    distilbert = DistilBertConfig(vocab_size=50, dim=16, n_layers=1, n_heads=2, hidden_dim=24)
    assert not only_first_token(build(distilbert))
    assert not only_first_token(build(CONFIGS[0], "eager"))
