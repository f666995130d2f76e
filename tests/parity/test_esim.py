"""Every step against AllenNLP-models 2.10.1's ESIM (`oracles/esim.npz`, float64, eval mode).

What padding holds differs on purpose: real rows alone are compared.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from totune.heads.base import States
from totune.heads.esim import EsimModule
from totune.modules.attention import (
    attention,
    cross_attention,
    enhanced_pair,
    mean_and_max,
    similarity,
)
from totune.modules.recurrent import BiLstm
from totune.modules.tokens import Tokens

ORACLE = {
    name: torch.from_numpy(array)
    for name, array in np.load(Path(__file__).parent / "oracles" / "esim.npz").items()
}
SIDES = ("premise", "hypothesis")


def close(found: Tensor, name: str) -> None:
    torch.testing.assert_close(found, ORACLE[name], atol=1e-9, rtol=0)


def close_on(mask: Tensor, found: Tensor, name: str) -> None:
    torch.testing.assert_close(found[mask], ORACLE[name][mask], atol=1e-9, rtol=0)


def close_text(found: Tensor, name: str, side: str) -> None:
    close_on(ORACLE[f"{side}_mask"], found, name)


def fill_lstm(lstm: BiLstm, name: str) -> None:
    for direction, suffix in ((lstm.ahead[0], ""), (lstm.back[0], "_reverse")):
        for parameter, values in direction.named_parameters():
            values.copy_(ORACLE[f"w.{name}.{parameter}{suffix}"])


@pytest.fixture
def esim() -> EsimModule:
    module = EsimModule(
        6,
        3,
        encoder_size=5,
        projection_size=7,
        inference_size=4,
        dense_size=8,
        dropout=0.5,
    )
    with torch.no_grad():
        fill_lstm(module.encoder, "encoder_lstm")
        fill_lstm(module.inference, "inference_lstm")
        for layer, name in (
            (module.projection, "projection"),
            (module.dense, "output_hidden"),
            (module.out, "output_logit"),
        ):
            layer.weight.copy_(ORACLE[f"w.{name}.weight"])
            layer.bias.copy_(ORACLE[f"w.{name}.bias"])
    return module.double().eval()


@pytest.fixture
def embedding() -> Tensor:
    return ORACLE["w.embedding.weight"].clone().requires_grad_()


@pytest.fixture
def pair(embedding: Tensor) -> tuple[Tokens, ...]:
    return tuple(Tokens(embedding[ORACLE[f"{s}_ids"]], ORACLE[f"{s}_mask"]) for s in SIDES)


def test_the_embedded_texts_are_the_oracles(pair: tuple[Tokens, ...]) -> None:
    for side, text in zip(SIDES, pair, strict=True):
        close(text.states.detach(), f"{side}_embedded")


@torch.no_grad()
def test_encoder(esim: EsimModule, pair: tuple[Tokens, ...]) -> None:
    for side, text in zip(SIDES, pair, strict=True):
        close(esim.encode(text).states, f"{side}_encoded")


@torch.no_grad()
def test_attention_both_ways(esim: EsimModule, pair: tuple[Tokens, ...]) -> None:
    first, second = (esim.encode(text) for text in pair)
    scores = similarity(first, second)
    close(scores, "similarity")
    close_text(attention(scores, second), "p2h_attention", "premise")
    close_text(attention(scores.transpose(1, 2), first), "h2p_attention", "hypothesis")
    from_second, from_first = cross_attention(first, second)
    close_text(from_second, "attended_hypothesis", "premise")
    close_text(from_first, "attended_premise", "hypothesis")


@torch.no_grad()
def test_enhancement_projection_and_inference(esim: EsimModule, pair: tuple[Tokens, ...]) -> None:
    texts = enhanced_pair(*(esim.encode(text) for text in pair))
    for side, enhanced in zip(SIDES, texts, strict=True):
        close_text(enhanced.states, f"{side}_enhanced", side)
        projected = esim.project(enhanced)
        close_text(projected.states, f"{side}_projected", side)
        inferred = esim.infer(projected)
        close(inferred.states, f"{side}_inferred")
        close(inferred.max(), f"{side}_max")


@torch.no_grad()
def test_pooling_and_output(esim: EsimModule, pair: tuple[Tokens, ...]) -> None:
    inferred = [Tokens(ORACLE[f"{s}_inferred"], ORACLE[f"{s}_mask"]) for s in SIDES]
    close(mean_and_max(*inferred), "pooled")
    close(esim.compare(*inferred), "output_hidden")
    logits = esim(States(tokens=pair))
    close(logits, "logits")
    close(logits.softmax(dim=-1), "probs")


def test_loss_and_gradients(esim: EsimModule, pair: tuple[Tokens, ...], embedding: Tensor) -> None:
    loss = functional.cross_entropy(esim(States(tokens=pair)), ORACLE["label"])
    loss.backward()
    close(loss.detach(), "loss")
    close(esim.projection.weight.grad, "grad.projection")
    close(esim.encoder.back[0].weight_hh_l0.grad, "grad.encoder_lstm_hh_reverse")
    close(embedding.grad, "grad.embedding")
