"""What PEFT inserts against the papers' equations by hand, and against PEFT's own models."""

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel, PeftModelForFeatureExtraction, get_peft_model
from safetensors.torch import load_file, save_file
from tests.encoder_zoo import LAYERS, batch_of, tiny_encoder
from torch import Tensor, nn

from totune.adapters.peft import insert_peft, peft_config
from totune.encoders.adapter_modules import AdapterModules
from totune.encoders.transformers import TransformersEncoder
from totune.inputs.batches import Batch

LORA = {"peft_type": "LORA", "r": 3, "lora_alpha": 12.0}
IA3 = {"peft_type": "IA3"}
PREFIX = {"peft_type": "PREFIX_TUNING", "num_virtual_tokens": 4}
PREFIXED = ["bert", "camembert", "electra", "roberta", "xlm-roberta"]
ON_DISK = [(n, f) for n in ("bert", "albert", "modernbert", "deberta-v2") for f in (LORA, IA3)]
ON_DISK += [(name, PREFIX) for name in PREFIXED]


@pytest.fixture
def batch() -> Batch:
    return batch_of([12, 5, 9])


def trained(encoder: TransformersEncoder, facts: dict[str, Any]) -> AdapterModules:
    """An insert with random weights."""
    insert = insert_peft(encoder, peft_config(facts))
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in insert.parameters():
            parameter.normal_(0.1, 0.4)
    return insert


def top(encoder: TransformersEncoder, batch: Batch) -> Tensor:
    with torch.no_grad():
        return encoder.encode(batch).top


def peft_top(model: nn.Module, encoder: TransformersEncoder, batch: Batch) -> Tensor:
    """What a model of PEFT's own computes."""
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    if encoder._has_segments and batch.token_type_ids is not None:
        inputs["token_type_ids"] = batch.token_type_ids
    with torch.no_grad():
        return model.eval()(**inputs).last_hidden_state


def without_segments(batch: Batch) -> Batch:
    """PEFT does not pass segments on where there is a prefix; totune does."""
    return dataclasses.replace(batch, token_type_ids=None)


def layer_path(depth: int) -> str:
    return f"encoder.layer.{depth}"


def test_lora_adds_the_scaled_product_to_the_weight(batch: Batch) -> None:
    """h = W x + (alpha / r) B A x (Hu et al. 2021, equation 3 and section 4.1)."""
    encoder, by_hand = tiny_encoder("bert"), tiny_encoder("bert")
    weights = trained(encoder, LORA).state_dict()
    with torch.no_grad():
        for depth in range(LAYERS):
            for name in ("query", "value"):
                path = f"{layer_path(depth)}.attention.self.{name}"
                a, b = (weights[f"base_model.model.{path}.lora_{c}.weight"] for c in "AB")
                assert (a.shape, b.shape) == ((3, 32), (32, 3))
                by_hand.model.get_submodule(path).weight += 12.0 / 3 * b @ a
    assert len(weights) == 4 * LAYERS
    torch.testing.assert_close(top(encoder, batch), top(by_hand, batch), atol=1e-5, rtol=0)


def test_ia3_rescales_keys_values_and_the_feed_forward(batch: Batch) -> None:
    """softmax(Q (l_k K)^T) (l_v V) and (l_ff gamma(W_1 x)) W_2 (Liu et al. 2022, section 3.3)."""
    encoder, by_hand = tiny_encoder("bert"), tiny_encoder("bert")
    weights = trained(encoder, IA3).state_dict()
    with torch.no_grad():
        for depth in range(LAYERS):
            for name in ("attention.self.key", "attention.self.value", "output.dense"):
                path = f"{layer_path(depth)}.{name}"
                factors = weights[f"base_model.model.{path}.ia3_l"].flatten()
                linear: Any = by_hand.model.get_submodule(path)
                if name == "output.dense":
                    linear.weight *= factors  # by the input
                else:
                    linear.weight *= factors[:, None]
                    linear.bias *= factors
    assert len(weights) == 3 * LAYERS
    torch.testing.assert_close(top(encoder, batch), top(by_hand, batch), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", PREFIXED)
@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
def test_a_prefix_is_what_peft_computes(name: str, batch: Batch) -> None:
    encoder, plain, batch = tiny_encoder(name), tiny_encoder(name), without_segments(batch)
    (prefix,) = trained(encoder, PREFIX).parameters()
    theirs = get_peft_model(plain.model, peft_config(PREFIX | {"task_type": "FEATURE_EXTRACTION"}))
    assert isinstance(theirs, PeftModelForFeatureExtraction)
    with torch.no_grad():
        theirs.prompt_encoder["default"].embedding.weight.copy_(prefix)
    expected = peft_top(theirs, plain, batch)
    torch.testing.assert_close(top(encoder, batch), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("name", "facts"), ON_DISK)
@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
def test_peft_reads_our_folder(
    name: str, facts: dict[str, Any], batch: Batch, tmp_path: Path
) -> None:
    encoder = tiny_encoder(name)
    plain = copy.deepcopy(encoder)
    batch = without_segments(batch) if facts is PREFIX else batch
    insert = trained(encoder, facts)
    (tmp_path / "adapter_config.json").write_text(json.dumps(insert.config()))
    save_file(insert.state_dict(), tmp_path / "adapter_model.safetensors")
    theirs = PeftModel.from_pretrained(plain.model, str(tmp_path))
    expected = peft_top(theirs, plain, batch)
    torch.testing.assert_close(top(encoder, batch), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("name", "facts"), ON_DISK)
@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
def test_we_read_the_folder_of_peft(
    name: str, facts: dict[str, Any], batch: Batch, tmp_path: Path
) -> None:
    encoder = tiny_encoder(name)
    plain = copy.deepcopy(encoder)
    batch = without_segments(batch) if facts is PREFIX else batch
    sample = trained(copy.deepcopy(encoder), facts).config()  # with the modules that are meant
    theirs = get_peft_model(plain.model, peft_config(sample | {"task_type": "FEATURE_EXTRACTION"}))
    torch.manual_seed(6)
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.requires_grad:
                parameter.normal_(0.1, 0.4)
    theirs.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    insert = insert_peft(encoder, peft_config(config))
    insert.load_state_dict(load_file(tmp_path / "adapter_model.safetensors"))
    expected = peft_top(theirs, plain, batch)
    torch.testing.assert_close(top(encoder, batch), expected, atol=1e-6, rtol=0)
