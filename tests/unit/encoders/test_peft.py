"""Methods of PEFT in every type of encoder: they go in, train, are saved, and come out again."""

import copy
import json
from typing import Any

import pytest
import torch
from peft import PeftType
from tests.encoder_zoo import (
    LAYERS,
    TINY,
    WIDTH,
    batch_of,
    tiny_config,
    tiny_encoder,
    with_encoders,
)
from torch import Tensor, nn

from totune.adapters.peft import insert_peft, peft_config
from totune.encoders.adapter_modules import AdapterModules
from totune.encoders.encoder import Cached
from totune.encoders.transformers import TransformersEncoder
from totune.errors import ConfigError, ModelError
from totune.features.fingerprint import prefix_fingerprint
from totune.inputs.batches import Batch

METHODS: dict[str, dict[str, Any]] = {
    "LORA": {"peft_type": "LORA", "r": 2, "lora_dropout": 0.5},
    "IA3": {"peft_type": "IA3"},
}
PREFIX = {"peft_type": "PREFIX_TUNING", "num_virtual_tokens": 3}
PREFIXED = ["bert", "camembert", "electra", "roberta", "xlm-roberta", "electra-without-projection"]
UNPREFIXED = [name for name in TINY if name not in PREFIXED]
# Options without which a method does not fit the width of tiny encoders.
FITTING: dict[str, dict[str, Any]] = {
    "C3A": {"block_size": 8},
    "FOURIERFT": {"n_frequency": 10},
    "MISS": {"r": 8},
    "ROAD": {"group_size": 8},
    "TRAINABLE_TOKENS": {"token_indices": [6, 7]},
    "WAVEFT": {"n_frequency": 10},
}
CHANGED_FROM_THE_BEGINNING = {"C3A", "FOURIERFT"}
# BOFT looks for a compiler, SHIRA warns on its first run.
PLAIN = sorted(
    {kind.value for kind in PeftType}
    - {"LORA", "IA3", "BOFT", "SHIRA", "PREFIX_TUNING"}
    - {"ADALORA", "ADAPTION_PROMPT", "POLY", "SHADOW", "XLORA", "CARTRIDGE"}
    - {"PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "P_TUNING", "CPT"}
    - {"FROD", "PVERA", "TINYLORA", "UNILORA", "VBLORA", "VERA"}
)

both_everywhere = pytest.mark.parametrize(
    ("method", "name"), with_encoders(METHODS, usual=("LORA", "IA3"))
)
everywhere = pytest.mark.parametrize(("method", "name"), with_encoders(METHODS, usual=("LORA",)))


@pytest.fixture
def peft_batch() -> Batch:
    return batch_of([12, 5, 9])


def put_in(encoder: TransformersEncoder, method: str | dict[str, Any]) -> AdapterModules:
    facts = METHODS[method] if isinstance(method, str) else method
    return insert_peft(encoder, peft_config(facts))


def perturb(insert: AdapterModules, seed: int = 1) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in insert.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))


def top(encoder: TransformersEncoder, batch: Batch) -> Tensor:
    with torch.no_grad():
        return encoder.encode(batch).top


def named(encoder: TransformersEncoder) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in encoder.named_parameters()}


@both_everywhere
def test_a_fresh_insert_changes_nothing_and_a_trained_one_does(
    method: str, name: str, peft_batch: Batch
) -> None:
    encoder = tiny_encoder(name)
    own = {id(p): (p.detach().clone(), p.requires_grad) for p in encoder.parameters()}
    before = top(encoder, peft_batch)
    insert = put_in(encoder, method)
    assert encoder.inserted is insert
    assert torch.equal(top(encoder, peft_batch), before)
    kept = {id(p): p for p in encoder.parameters() if id(p) in own}
    assert kept.keys() == own.keys()
    assert all(torch.equal(p, own[i][0]) for i, p in kept.items())
    assert all(p.requires_grad == own[i][1] for i, p in kept.items())
    perturb(insert)
    assert not torch.allclose(top(encoder, peft_batch), before, atol=0.1)


@everywhere
def test_inserted_parameters_lie_in_the_layers(method: str, name: str) -> None:
    encoder = tiny_encoder(name)
    insert = put_in(encoder, method)
    ours = {id(p) for p in insert.parameters()}
    assert len(ours) == len(insert.parameters()) > 0
    layers = [
        {id(p) for _, p in encoder.block_parameters(d) if id(p) in ours} for d in range(LAYERS + 1)
    ]
    assert not layers[0]
    assert all(layers[1:])
    assert set().union(*layers) == ours
    if not name.startswith("albert"):
        assert sum(map(len, layers)) == len(ours)


@everywhere
def test_gradients_reach_every_inserted_parameter(
    method: str, name: str, peft_batch: Batch
) -> None:
    encoder = tiny_encoder(name)
    insert = put_in(encoder, method)
    perturb(insert)
    encoder.requires_grad_(False)
    for parameter in insert.parameters():
        parameter.requires_grad_(True)
    encoder.prepare_training(torch.device("cpu"))
    encoder.train()
    encoder.encode(peft_batch).top.square().sum().backward()
    for parameter in insert.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()
        assert parameter.grad.abs().sum() > 0


@everywhere
def test_starting_at_any_block_gives_the_same_top(
    method: str, name: str, peft_batch: Batch
) -> None:
    encoder = tiny_encoder(name)
    perturb(put_in(encoder, method))
    with torch.no_grad():
        states = encoder.encode(peft_batch).states
        for depth in range(LAYERS):
            above = encoder.encode(peft_batch, Cached(depth, states[depth])).top
            torch.testing.assert_close(above, states[-1], atol=1e-6, rtol=0)


@everywhere
def test_the_first_token_alone_is_the_first_of_all(
    method: str, name: str, peft_batch: Batch
) -> None:
    encoder = tiny_encoder(name)
    perturb(put_in(encoder, method))
    whole = top(encoder, peft_batch)
    encoder.read_first_token_only()
    alone = top(encoder, peft_batch)
    torch.testing.assert_close(alone[:, 0], whole[:, 0], atol=1e-5, rtol=0)


@everywhere
def test_removing_restores_and_merging_keeps(method: str, name: str, peft_batch: Batch) -> None:
    encoder = tiny_encoder(name)
    weights, before = named(encoder), top(encoder, peft_batch)
    perturb(put_in(encoder, method))
    trained, twin = top(encoder, peft_batch), copy.deepcopy(encoder)
    assert encoder.inserted is not None
    assert twin.inserted is not None
    encoder.inserted.remove()
    assert encoder.inserted is None
    assert torch.equal(top(encoder, peft_batch), before)
    assert list(named(encoder)) == list(weights)
    assert all(torch.equal(p, weights[n]) for n, p in named(encoder).items())
    twin.inserted.merge()
    assert twin.inserted is None
    assert list(named(twin)) == list(weights)
    assert not hasattr(twin.model, "peft_config")
    torch.testing.assert_close(top(twin, peft_batch), trained, atol=1e-5, rtol=0)


@pytest.mark.parametrize("facts", [*METHODS.values(), PREFIX], ids=str)
def test_a_copy_is_a_copy(facts: dict[str, Any], peft_batch: Batch) -> None:
    encoder = tiny_encoder("bert")
    insert = put_in(encoder, facts)
    before, twin = top(encoder, peft_batch), copy.deepcopy(encoder)
    assert twin.inserted is not None
    assert {id(p) for p in twin.inserted.parameters()} <= {id(p) for p in twin.parameters()}
    assert not {id(p) for p in twin.inserted.parameters()} & {id(p) for p in insert.parameters()}
    perturb(twin.inserted)
    assert torch.equal(top(encoder, peft_batch), before)
    assert not torch.allclose(top(twin, peft_batch), before, atol=0.1)
    twin.inserted.remove()
    assert twin.inserted is None
    assert encoder.inserted is insert


@everywhere
def test_weights_fit_where_the_configuration_puts_the_same_in(
    method: str, name: str, peft_batch: Batch
) -> None:
    encoder, other = tiny_encoder(name), tiny_encoder(name)
    insert = put_in(encoder, method)
    perturb(insert)
    weights = insert.state_dict()
    assert len({tensor.data_ptr() for tensor in weights.values()}) == len(weights)
    again = put_in(other, json.loads(json.dumps(insert.config())))
    again.load_state_dict(weights)
    assert torch.equal(top(other, peft_batch), top(encoder, peft_batch))
    assert again.config() == insert.config()


@everywhere
def test_a_plan_needs_no_weights(method: str, name: str) -> None:
    with torch.device("meta"):
        hollow = TransformersEncoder.from_config(tiny_config(name))
        insert = put_in(hollow, method)
    solid = put_in(tiny_encoder(name), method)
    assert all(p.is_meta for p in insert.parameters())
    assert [p.shape for p in insert.parameters()] == [p.shape for p in solid.parameters()]


@pytest.mark.parametrize("method", PLAIN)
def test_whatever_peft_injects(method: str, peft_batch: Batch) -> None:
    encoder, other = tiny_encoder("bert"), tiny_encoder("bert")
    before = top(encoder, peft_batch)
    torch.manual_seed(3)
    insert = put_in(encoder, {"peft_type": method, **FITTING.get(method, {})})
    if method not in CHANGED_FROM_THE_BEGINNING:
        torch.testing.assert_close(top(encoder, peft_batch), before, atol=1e-5, rtol=0)
    perturb(insert)
    trained = top(encoder, peft_batch)
    assert not torch.allclose(trained, before, atol=1e-2)
    torch.manual_seed(4)
    again = put_in(other, json.loads(json.dumps(insert.config())))
    again.load_state_dict(insert.state_dict())
    torch.testing.assert_close(top(other, peft_batch), trained, atol=1e-6, rtol=0)
    insert.remove()
    assert torch.equal(top(encoder, peft_batch), before)


def test_a_norm_without_weights_is_not_tuned() -> None:
    encoder = tiny_encoder("modernbert")  # whose lowest layer has one norm alone
    insert = put_in(encoder, {"peft_type": "LN_TUNING"})
    assert len(insert.parameters()) == 2 * LAYERS - 1


def test_a_method_that_cannot_be_merged_says_why() -> None:
    encoder = tiny_encoder("bert")
    insert = put_in(encoder, {"peft_type": "LILY"})
    with pytest.raises(ModelError, match=r"LILY cannot be merged.*not supported for Lily"):
        insert.merge()
    assert encoder.inserted is insert


def test_dropout_is_off_where_the_encoder_is_in_eval_mode(peft_batch: Batch) -> None:
    encoder = tiny_encoder("bert")
    perturb(put_in(encoder, "LORA"))
    assert not any(module.training for module in encoder.modules())
    encoder.prepare_training(torch.device("cpu"))
    first = top(encoder, peft_batch)
    assert torch.equal(top(encoder, peft_batch), first)
    assert not any(type(module) is nn.Dropout and module.p > 0 for module in encoder.modules())
    encoder.train()
    assert not torch.equal(top(encoder, peft_batch), first)


@pytest.mark.parametrize("facts", [*METHODS.values(), PREFIX], ids=str)
def test_gradients_are_finite_in_bfloat16(facts: dict[str, Any], peft_batch: Batch) -> None:
    encoder = tiny_encoder("bert")
    insert = put_in(encoder, facts)
    encoder.requires_grad_(False)
    for parameter in insert.parameters():
        parameter.requires_grad_(True)
    encoder.prepare_training(torch.device("cpu"))
    encoder.train()
    with torch.autocast("cpu", torch.bfloat16):
        loss = encoder.encode(peft_batch).top.float().square().mean()
    loss.backward()
    assert torch.isfinite(loss)
    assert all(p.dtype == torch.float32 for p in encoder.parameters())
    assert all(torch.isfinite(p.grad).all() for p in insert.parameters() if p.grad is not None)
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in insert.parameters())


@pytest.mark.parametrize("facts", [*METHODS.values(), PREFIX], ids=str)
def test_fingerprints_know_what_is_inserted(facts: dict[str, Any]) -> None:
    encoder = tiny_encoder("bert")
    plain = encoder.fingerprint(), prefix_fingerprint(encoder, LAYERS)
    insert = put_in(encoder, facts)
    fresh = encoder.fingerprint(), prefix_fingerprint(encoder, LAYERS)
    perturb(insert)
    trained = encoder.fingerprint(), prefix_fingerprint(encoder, LAYERS)
    assert len({plain[0], fresh[0], trained[0]}) == len({plain[1], fresh[1], trained[1]}) == 3
    insert.remove()
    assert (encoder.fingerprint(), prefix_fingerprint(encoder, LAYERS)) == plain


@pytest.mark.parametrize("name", PREFIXED)
def test_a_prefix_is_part_of_the_lowest_block(name: str, peft_batch: Batch) -> None:
    encoder = tiny_encoder(name)
    weights, before, longest = named(encoder), top(encoder, peft_batch), encoder.max_length
    insert = put_in(encoder, PREFIX)
    (prefix,) = insert.parameters()
    assert prefix.shape == (3, LAYERS * 2 * WIDTH)
    assert any(p is prefix for _, p in encoder.block_parameters(0))
    assert encoder.max_length == longest - 3
    assert not torch.allclose(top(encoder, peft_batch), before, atol=0.1)
    insert.remove()
    assert torch.equal(top(encoder, peft_batch), before)
    assert (list(named(encoder)), encoder.max_length) == (list(weights), longest)


@pytest.mark.parametrize("name", PREFIXED)
def test_a_prefix_trains_and_is_saved(name: str, peft_batch: Batch) -> None:
    encoder, other = tiny_encoder(name), tiny_encoder(name)
    insert = put_in(encoder, PREFIX)
    again = put_in(other, json.loads(json.dumps(insert.config())))
    again.load_state_dict(insert.state_dict())
    assert torch.equal(top(other, peft_batch), top(encoder, peft_batch))
    encoder.prepare_training(torch.device("cpu"))
    encoder.train()
    encoder.encode(peft_batch).top.square().sum().backward()
    (prefix,) = insert.parameters()
    assert prefix.grad is not None
    # Of the top layer's keys and values, too: every layer sees the prefix.
    assert (prefix.grad.view(3, LAYERS * 2, WIDTH).abs().sum((0, 2)) > 0).all()
    with torch.no_grad():
        states = encoder.eval().encode(peft_batch).states
        for depth in range(LAYERS):
            above = encoder.encode(peft_batch, Cached(depth, states[depth])).top
            torch.testing.assert_close(above, states[-1], atol=1e-6, rtol=0)


@pytest.mark.parametrize("asked_first", [True, False])
def test_a_prefix_is_seen_where_the_first_token_alone_is_read(
    asked_first: bool, peft_batch: Batch
) -> None:
    encoder, other = tiny_encoder("bert"), tiny_encoder("bert")
    torch.manual_seed(5)
    put_in(other, PREFIX)
    if asked_first:
        encoder.read_first_token_only()
    torch.manual_seed(5)
    put_in(encoder, PREFIX)
    if not asked_first:
        encoder.read_first_token_only()
    torch.testing.assert_close(top(encoder, peft_batch), top(other, peft_batch))


def test_a_prefix_and_the_text_must_have_room() -> None:
    encoder = tiny_encoder("roberta")
    put_in(encoder, PREFIX)
    assert top(encoder, batch_of([encoder.max_length])).shape == (1, encoder.max_length, WIDTH)
    with pytest.raises(ConfigError, match=f"Use max_length={encoder.max_length} or fewer"):
        top(encoder, batch_of([encoder.max_length + 1]))


def test_a_prefix_cannot_be_merged() -> None:
    insert = put_in(tiny_encoder("bert"), PREFIX)
    with pytest.raises(ModelError, match="PREFIX_TUNING cannot be merged"):
        insert.merge()


@pytest.mark.parametrize("name", UNPREFIXED)
def test_types_whose_attention_takes_no_prefix_refuse_it(name: str) -> None:
    encoder = tiny_encoder(name)
    with pytest.raises(ConfigError, match=rf"{encoder.kind} takes no keys.*Use LORA or IA3"):
        put_in(encoder, PREFIX)
    assert encoder.inserted is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"prefix_projection": True}, "prefix_projection=true"),
        ({"num_virtual_tokens": 0}, "num_virtual_tokens=0 is not a whole number from 1 to 39"),
        ({"num_virtual_tokens": 40}, "num_virtual_tokens=40 is not"),
        ({"num_virtual_tokens": "3"}, "num_virtual_tokens='3' is not"),
    ],
)
def test_prefixes_that_do_not_fit_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        put_in(tiny_encoder("bert"), PREFIX | more)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({}, "PEFT has no peft_type 'None'"),
        ({"peft_type": "LORE"}, "no peft_type 'LORE'. Did you mean 'LORA'"),
        ({"peft_type": ["LORA"]}, "PEFT has no peft_type"),
        ({"peft_type": "P_TUNING"}, "virtual tokens before the text.*Use one of.*IA3"),
        ({"peft_type": "VERA"}, "share weights"),
        ({"peft_type": "TRAINABLE_TOKENS"}, "say which tokens train"),
        ({"peft_type": "ADALORA", "total_step": 9}, "training steps of PEFT's own"),
        ({"peft_type": "LORA", "rank": 2}, "LORA has no option 'rank' in PEFT.*'rank_pattern'"),
        ({"peft_type": "LORA", "lora_alhpa": 2}, "Did you mean 'lora_alpha'"),
        ({"peft_type": "LORA", "modules_to_save": ["pooler"]}, "modules_to_save reaches beyond"),
        ({"peft_type": "LORA", "init_lora_weights": "eva"}, "drawn from data"),
        ({"peft_type": "LORA", "task_type": "SINGING"}, "PEFT refuses these options of LORA"),
    ],
)
def test_configurations_that_cannot_be_used_are_refused(
    facts: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        peft_config(facts)
    assert len(caught.value.faults) == 1


def test_every_fault_of_a_configuration_is_told() -> None:
    facts = {"peft_type": "IA3", "rank": 1, "alpha": 2, "modules_to_save": ["pooler"]}
    with pytest.raises(ConfigError) as caught:
        peft_config(facts)
    assert len(caught.value.faults) == 3


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"target_modules": ["query", "vaule"]}, "'vaule'. Did you mean 'value'.*dense"),
        ({"target_modules": ["attention"]}, "called 'attention'"),
        ({"target_modules": []}, "LORA does not fit this bert encoder"),
        ({"target_modules": ["LayerNorm"]}, "LORA does not fit this bert encoder"),
        ({"target_modules": ".*nothing"}, "LORA does not fit this bert encoder"),
        ({"r": 0}, "LORA does not fit this bert encoder"),
        ({"rank_pattern": {"kye": 4}}, "did not match any targeted module"),
        ({"init_lora_weights": "pissa"}, "change the encoder's own weights"),
        ({"bias": "all"}, "train weights of the encoder itself"),
    ],
)
def test_configurations_that_do_not_fit_are_refused(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        put_in(tiny_encoder("bert"), {"peft_type": "LORA", **facts})
    assert "\n" not in str(caught.value)


def test_there_is_room_for_one_insert() -> None:
    encoder = tiny_encoder("bert")
    put_in(encoder, "LORA")
    with pytest.raises(ModelError, match="room for one insert alone"):
        put_in(encoder, "IA3")


def test_weights_that_do_not_fit_are_refused() -> None:
    encoder = tiny_encoder("bert")
    insert = put_in(encoder, "LORA")
    weights = insert.state_dict()
    name = next(iter(weights))
    before = named(encoder)
    faulty = [
        ({n: t for n, t in weights.items() if n != name}, f"{name} is missing"),
        (weights | {"other": weights[name]}, "other is not one of its weights"),
        (weights | {name: torch.zeros(1)}, r"has shape \(1,\), not \(2, 32\)"),
        ({}, r"is missing \(and 15 more faults\)"),
    ]
    for given, message in faulty:
        with pytest.raises(ModelError, match=message):
            insert.load_state_dict(given)
    assert all(torch.equal(p, before[n]) for n, p in named(encoder).items())
