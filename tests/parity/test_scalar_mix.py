"""Against AllenNLP 2.10.1's ScalarMix, plain and normed (`oracles/scalar_mix.npz`, float64)."""

from pathlib import Path

import numpy as np
import pytest
import torch

from totune.encoders.mixing import ScalarMix

ORACLE = {
    name: torch.from_numpy(array)
    for name, array in np.load(Path(__file__).parent / "oracles" / "scalar_mix.npz").items()
}


def mix_of(normed: bool) -> ScalarMix:
    module = ScalarMix(len(ORACLE["weights"]), normed).double()
    with torch.no_grad():
        module.weights.copy_(ORACLE["weights"])
        module.gamma.copy_(ORACLE["gamma"].squeeze())
    return module


@pytest.fixture
def mix() -> ScalarMix:
    return mix_of(normed=False)


def test_output(mix: ScalarMix) -> None:
    with torch.no_grad():
        output = mix(list(ORACLE["layers"]))
    torch.testing.assert_close(output, ORACLE["output_plain"], atol=1e-10, rtol=0)


def test_gradients(mix: ScalarMix) -> None:
    output = mix(list(ORACLE["layers"]))
    output[ORACLE["mask"].bool()].square().sum().backward()
    for name, gradient in (("weights", mix.weights.grad), ("gamma", mix.gamma.grad)):
        expected = ORACLE[f"grad_{name}_plain"]
        torch.testing.assert_close(gradient.reshape(-1), expected, atol=1e-10, rtol=0)


def test_vectors_mix_as_the_states_they_come_from(mix: ScalarMix) -> None:
    with torch.no_grad():
        first = mix([layer[:, 0] for layer in ORACLE["layers"]])
    torch.testing.assert_close(first, ORACLE["output_plain"][:, 0], atol=1e-10, rtol=0)


def test_normed_over_the_batch() -> None:
    mix = mix_of(normed=True)
    output = mix(list(ORACLE["layers"]), ORACLE["mask"])
    torch.testing.assert_close(output, ORACLE["output_layernorm"], atol=1e-10, rtol=0)
    output[ORACLE["mask"].bool()].square().sum().backward()
    for name, gradient in (("weights", mix.weights.grad), ("gamma", mix.gamma.grad)):
        expected = ORACLE[f"grad_{name}_layernorm"]
        assert gradient is not None
        torch.testing.assert_close(gradient.reshape(-1), expected, atol=1e-10, rtol=0)
