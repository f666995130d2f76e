"""Every step against AllenNLP-models 2.10.1's biattentive classification network.

`oracles/bcn.npz`, float64, eval mode. What padding holds differs on purpose: real rows alone are
compared.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from totune.heads.base import States
from totune.heads.bcn import BcnModule, biattended
from totune.modules.attention import attend, attention, similarity
from totune.modules.recurrent import BiLstm
from totune.modules.tokens import Tokens

ORACLE = {
    name: torch.from_numpy(array)
    for name, array in np.load(Path(__file__).parent / "oracles" / "bcn.npz").items()
}
MASK = ORACLE["mask"]


def close(found: Tensor, name: str) -> None:
    torch.testing.assert_close(found, ORACLE[name], atol=1e-9, rtol=0)


def close_text(found: Tensor, name: str) -> None:
    torch.testing.assert_close(found[MASK], ORACLE[name][MASK], atol=1e-9, rtol=0)


def stored(name: str) -> Tokens:
    return Tokens(ORACLE[name], MASK)


def fill_lstm(lstm: BiLstm, name: str) -> None:
    for direction, suffix in ((lstm.ahead[0], ""), (lstm.back[0], "_reverse")):
        for parameter, values in direction.named_parameters():
            values.copy_(ORACLE[f"w.{name}.{parameter}{suffix}"])


@pytest.fixture
def bcn() -> BcnModule:
    module = BcnModule(
        6,
        dense_size=7,
        encoder_size=5,
        integrator_size=4,
        maxout_sizes=ORACLE["maxout_dims"].tolist(),
        pieces=ORACLE["maxout_pools"].tolist(),
        input_dropout=0.5,
        dropout=0.5,
    )
    with torch.no_grad():
        fill_lstm(module.encoder, "encoder_lstm")
        fill_lstm(module.integrator, "integrator_lstm")
        # The oracle's bias of the self-attention moves all its scores alike: softmax drops it.
        module.self_attention.score.weight.copy_(ORACLE["w.self_attention.weight"])
        layers = [(module.dense, "pre_encode")]
        layers += [(maxout.linear, f"maxout.{at}") for at, maxout in enumerate(module.maxout)]
        for layer, name in layers:
            layer.weight.copy_(ORACLE[f"w.{name}.weight"])
            layer.bias.copy_(ORACLE[f"w.{name}.bias"])
    return module.double().eval()


@pytest.fixture
def embedding() -> Tensor:
    return ORACLE["w.embedding.weight"].clone().requires_grad_()


@pytest.fixture
def text(embedding: Tensor) -> Tokens:
    return Tokens(embedding[ORACLE["ids"]], MASK)


@torch.no_grad()
def test_dense_layer_and_encoder(bcn: BcnModule, text: Tokens) -> None:
    close(text.states, "embedded")
    seen: list[Tensor] = []
    bcn.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].states))
    close(bcn.encode(text).states, "encoded")
    close_text(seen[0], "pre_encoded")


@torch.no_grad()
def test_attention_to_itself() -> None:
    encoded = stored("encoded")
    weights = attention(similarity(encoded, encoded), encoded)
    close_text(weights, "attention")
    close_text(attend(weights, encoded), "attended")
    close_text(biattended(encoded).states, "integrator_input")


@torch.no_grad()
def test_integrator(bcn: BcnModule) -> None:
    close(bcn.integrate(stored("encoded")).states, "integrated")


@torch.no_grad()
def test_pooling(bcn: BcnModule) -> None:
    text = stored("integrated")
    scores = bcn.self_attention.score(text.states).squeeze(-1)
    close_text(scores + ORACLE["w.self_attention.bias"], "self_attention_logits")
    close(bcn.self_attention.weights(text), "self_attention")
    for found, name in (
        (text.max(), "max_pool"),
        (text.min(), "min_pool"),
        (text.mean(), "mean_pool"),
        (bcn.self_attention(text), "self_attentive_pool"),
        (bcn.pool(text), "pooled"),
    ):
        close(found, name)


@torch.no_grad()
def test_maxout_layers(bcn: BcnModule) -> None:
    first = bcn.maxout[0](ORACLE["pooled"])
    close(first, "maxout_1")
    second = bcn.maxout[1](first)
    close(second, "maxout_2")
    close(bcn.maxout[2](second), "logits")
    close(bcn.classify(ORACLE["pooled"]), "logits")


def test_the_whole_network_its_loss_and_gradients(
    bcn: BcnModule, text: Tokens, embedding: Tensor
) -> None:
    logits = bcn(States(tokens=(text,)))
    loss = functional.cross_entropy(logits, ORACLE["label"])
    loss.backward()
    close(logits.detach(), "logits")
    close(logits.detach().softmax(dim=-1), "probs")
    close(loss.detach(), "loss")
    close(bcn.self_attention.score.weight.grad, "grad.self_attention")
    close(bcn.dense.weight.grad, "grad.pre_encode")
    close(embedding.grad, "grad.embedding")
