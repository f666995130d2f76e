"""Bottleneck adapters: what they compute, where they go, how many weights they have."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
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
from transformers import AlbertConfig, BertConfig, PretrainedConfig

from totune.adapters.adapters import AdapterConfig, Adapters, insert_adapters
from totune.adapters.bottleneck import Adapted, Bottleneck
from totune.adapters.sharing import names_of
from totune.cli.plan import describe
from totune.encoders.encoder import Cached
from totune.encoders.first_token import FIRST_TOKEN_TYPES
from totune.encoders.kernels import FastDropout
from totune.encoders.transformers import TransformersEncoder
from totune.errors import ConfigError, ModelError
from totune.heads.linear import Linear
from totune.inputs.batches import Batch
from totune.model import Model
from totune.registry import options_of
from totune.strategies.base import STRATEGIES
from totune.strategies.coverage import assign, trained_names
from totune.strategies.defaults import ADAPTERS
from totune.tasks.classification import Classification

PLACEMENTS = ("houlsby", "pfeiffer")
SHARINGS = ("per-sublayer", "per-layer", "every-2")
REFUSED = {("pfeiffer", "modernbert")}
all_cases = pytest.mark.parametrize(
    ("placement", "name"), with_encoders(PLACEMENTS, usual=PLACEMENTS, without=REFUSED)
)
each_case = pytest.mark.parametrize(
    ("placement", "name"), with_encoders(PLACEMENTS, usual=("houlsby",), without=REFUSED)
)


@pytest.fixture
def adapted_batch() -> Batch:
    return batch_of([5, 9, 7])


def insert(
    encoder: TransformersEncoder, sharing: object = "per-sublayer", placement: str = "houlsby"
) -> Adapters:
    """Adapters whose weights are large enough to be seen."""
    adapters = insert_adapters(encoder, config_of(sharing, placement))
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in adapters.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return adapters


def config_of(sharing: object, placement: str = "houlsby") -> AdapterConfig:
    facts = {"bottleneck_size": 6, "sharing": sharing, "placement": placement}
    return AdapterConfig.from_json({**facts, "activation": "gelu"})


def states_of(encoder: TransformersEncoder, batch: Batch) -> Tensor:
    """[L + 1, B, T, H]."""
    with torch.no_grad():
        return torch.stack(encoder.encode(batch).states)


def sharing_for(name: str) -> str:
    """A map with shared adapters that the type can have."""
    return "per-layer" if name == "albert-one-group" else "every-2"


# What an adapter computes


def test_a_bottleneck_is_near_the_identity_and_has_biases() -> None:
    adapter = Bottleneck(768, 64, "gelu")
    assert sum(p.numel() for p in adapter.parameters()) == 2 * 768 * 64 + 768 + 64
    for layer in (adapter.down, adapter.up):
        assert layer.weight.abs().max() <= 0.02
        assert 0.0080 < layer.weight.std() < 0.0095  # 1e-2 truncated at two deviations: 0.0088
        assert not layer.bias.any()


@pytest.mark.parametrize(
    ("activation", "function"), [("gelu", nn.functional.gelu), ("relu", torch.relu)]
)
def test_it_is_the_formula(activation: str, function) -> None:
    adapter = Bottleneck(5, 3, activation)
    nn.init.normal_(adapter.down.bias)
    nn.init.normal_(adapter.up.bias)
    z = torch.randn(4, 5)
    hidden = function(z @ adapter.down.weight.T + adapter.down.bias)
    expected = hidden @ adapter.up.weight.T + adapter.up.bias
    torch.testing.assert_close(adapter(z), expected)
    torch.testing.assert_close(Adapted(nn.Identity(), adapter)(z), z + expected)


# In every type of encoder


@each_case
def test_with_zero_up_projections_the_encoder_is_as_before(
    name: str, placement: str, adapted_batch: Batch
) -> None:
    encoder = tiny_encoder(name)
    plain = states_of(encoder, adapted_batch)
    adapters = insert(encoder, placement=placement)
    with torch.no_grad():
        for own, parameter in adapters.state_dict().items():
            if ".up." in own:
                parameter.zero_()
    assert torch.equal(states_of(encoder, adapted_batch), plain)


@all_cases
def test_every_layer_changes_and_is_restored_to_the_bit(
    name: str, placement: str, adapted_batch: Batch
) -> None:
    encoder = tiny_encoder(name)
    plain, names = states_of(encoder, adapted_batch), list(encoder.state_dict())
    adapters = insert(encoder, placement=placement)
    assert encoder.inserted is adapters
    changed = states_of(encoder, adapted_batch)
    assert torch.equal(changed[0], plain[0])
    assert all(not torch.allclose(changed[d], plain[d], atol=1e-3) for d in range(1, LAYERS + 1))
    adapters.remove()
    assert encoder.inserted is None
    assert list(encoder.state_dict()) == names
    assert torch.equal(states_of(encoder, adapted_batch), plain)


@each_case
def test_starting_from_any_block_gives_the_same_top(
    name: str, placement: str, adapted_batch: Batch
) -> None:
    encoder = tiny_encoder(name)
    insert(encoder, sharing_for(name), placement)
    states = states_of(encoder, adapted_batch)
    for depth in range(LAYERS + 1):
        with torch.no_grad():
            top = encoder.encode(adapted_batch, Cached(depth, states[depth]))[LAYERS]
        torch.testing.assert_close(top, states[-1], atol=1e-5, rtol=0)


@each_case
def test_gradients_reach_every_adapter(name: str, placement: str, adapted_batch: Batch) -> None:
    encoder = tiny_encoder(name).train()
    adapters = insert(encoder, placement=placement)
    encoder.prepare_training(torch.device("cpu"))
    encoder.encode(adapted_batch)[LAYERS].sin().sum().backward()
    for own, parameter in zip(adapters.state_dict(), adapters.parameters(), strict=True):
        assert parameter.grad is not None, own
        assert parameter.grad.any(), own


@each_case
def test_they_are_in_the_blocks_and_nowhere_else(name: str, placement: str) -> None:
    encoder = tiny_encoder(name)
    before = {id(p) for p in encoder.parameters()}
    adapters = insert(encoder, placement=placement)
    inserted = {id(p) for p in adapters.parameters()}
    assert len(inserted) == len(adapters.parameters())
    assert {id(p) for p in encoder.parameters()} == before | inserted
    in_layers = {id(p) for d in range(1, LAYERS + 1) for _, p in encoder.block_parameters(d)}
    assert inserted <= in_layers
    assert not inserted & {id(p) for _, p in encoder.block_parameters(0)}


@each_case
def test_the_first_token_alone_is_the_same(name: str, placement: str, adapted_batch: Batch) -> None:
    encoder = tiny_encoder(name)
    insert(encoder, placement=placement)
    whole = states_of(encoder, adapted_batch)[-1]
    encoder.read_first_token_only()
    with torch.no_grad():
        top = encoder.encode(adapted_batch)[LAYERS]
    assert (top.shape[1] == 1) == (encoder.kind in FIRST_TOKEN_TYPES)
    torch.testing.assert_close(top[:, 0], whole[:, 0], atol=1e-5, rtol=0)


@each_case
def test_removed_is_as_if_their_output_were_zero(
    name: str, placement: str, adapted_batch: Batch
) -> None:
    encoder = tiny_encoder(name)
    adapters = insert(encoder, placement=placement)
    # Of the four layers of either ALBERT two, or all, share their adapters.
    first, last = (1, LAYERS) if name == "albert-one-group" else (3, 4)
    with_all = states_of(encoder, adapted_batch)
    with adapters.removed(first, last):
        without = states_of(encoder, adapted_batch)
    assert torch.equal(states_of(encoder, adapted_batch), with_all)
    assert not torch.allclose(without[-1], with_all[-1], atol=1e-3)
    inserted = {id(p) for p in adapters.parameters()}
    with torch.no_grad():
        for depth in range(first, last + 1):
            for own, parameter in encoder.block_parameters(depth):
                if id(parameter) in inserted and ".up." in own:
                    parameter.zero_()
    assert torch.equal(states_of(encoder, adapted_batch), without)


@each_case
def test_a_copy_has_its_own(name: str, placement: str, adapted_batch: Batch) -> None:
    encoder = tiny_encoder(name)
    plain = states_of(encoder, adapted_batch)
    insert(encoder, sharing_for(name), placement)
    twin = copy.deepcopy(encoder)
    assert isinstance(twin.inserted, Adapters)
    assert {id(p) for p in twin.inserted.parameters()} <= {id(p) for p in twin.parameters()}
    before = states_of(encoder, adapted_batch)
    assert torch.equal(states_of(twin, adapted_batch), before)
    twin.inserted.remove()
    assert torch.equal(states_of(twin, adapted_batch), plain)
    assert torch.equal(states_of(encoder, adapted_batch), before)
    assert encoder.inserted is not None


@pytest.mark.parametrize("name", TINY)
def test_they_can_be_planned_without_memory(name: str) -> None:
    with torch.device("meta"):
        encoder = TransformersEncoder.from_config(tiny_config(name))
        adapters = insert_adapters(encoder, AdapterConfig(6))
    assert {p.device.type for p in encoder.parameters()} == {"meta"}
    assert sum(p.numel() for p in adapters.parameters()) > 0


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_they_train_under_autocast(placement: str, adapted_batch: Batch) -> None:
    encoder = tiny_encoder("bert").train()
    adapters = insert(encoder, placement=placement)
    encoder.prepare_training(torch.device("cpu"))
    with torch.autocast("cpu", torch.bfloat16):
        top = encoder.encode(adapted_batch)[LAYERS]
    top.float().sin().sum().backward()
    for parameter in adapters.parameters():
        assert parameter.grad is not None
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.any()


def test_dropout_can_be_replaced_in_between(adapted_batch: Batch) -> None:
    encoder = tiny_encoder("bert")
    plain = states_of(encoder, adapted_batch)
    adapters = insert(encoder)
    encoder.prepare_training(torch.device("cpu"))
    adapters.remove()
    dropout = encoder.layer(1).get_submodule("output.dropout")
    assert isinstance(dropout, FastDropout)
    torch.testing.assert_close(states_of(encoder, adapted_batch), plain)


# Sharing


ONE_EACH = [(1, 1), (2, 2), (3, 3), (4, 4)]


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        (
            "per-sublayer",
            [(f"layer.{d}.attention", f"layer.{d}.feed_forward") for d in (1, 2, 3, 4)],
        ),
        ("per-layer", [(f"layer.{d}",) * 2 for d in (1, 2, 3, 4)]),
        ("every-1", [(f"layer.{d}",) * 2 for d in (1, 2, 3, 4)]),
        ("every-3", [("layers.1-3",) * 2] * 3 + [("layer.4",) * 2]),
        ("every-9", [("layers.1-4",) * 2] * 4),
        (("a", None, ("b", "a"), (None, "b")), [("a", "a"), (None, None), ("b", "a"), (None, "b")]),
    ],
)
def test_names(sharing, expected) -> None:
    assert names_of(sharing, ONE_EACH, "houlsby") == expected


@pytest.mark.parametrize("sharing", ["per-sublayer", "per-layer"])
def test_pfeiffer_has_one_in_each_layer(sharing: str) -> None:
    names = names_of(sharing, ONE_EACH, "pfeiffer")
    assert names == [(None, f"layer.{depth}") for depth in (1, 2, 3, 4)]


def test_equal_names_are_one_module(adapted_batch: Batch) -> None:
    encoder = tiny_encoder("bert")
    adapters = insert(encoder, ["a", None, ["b", "a"], [None, "b"]])
    assert list(adapters.state_dict())[::4] == ["a.down.weight", "b.down.weight"]
    first, third = encoder.layer(1), encoder.layer(3)
    shared = first.get_submodule("attention.output.dropout.adapter")
    assert third.get_submodule("output.dropout.adapter") is shared
    assert type(encoder.layer(2).get_submodule("output.dropout")) is nn.Dropout


def test_layers_below_the_lowest_adapter_stay_a_frozen_prefix(adapted_batch: Batch) -> None:
    encoder = tiny_encoder("bert")
    plain = states_of(encoder, adapted_batch)
    adapters = insert(encoder, [None, None, "a", "a"])
    encoder.requires_grad_(False)
    for parameter in adapters.parameters():
        parameter.requires_grad_(True)
    assert encoder.frozen_depth() == 2
    assert torch.equal(states_of(encoder, adapted_batch)[:3], plain[:3])


def test_layers_that_share_weights_share_adapters() -> None:
    names = names_of("per-sublayer", [(1, 2), (3, 4)], "houlsby")
    assert (
        names
        == [("layers.1-2.attention", "layers.1-2.feed_forward")] * 2
        + [("layers.3-4.attention", "layers.3-4.feed_forward")] * 2
    )
    one = insert(tiny_encoder("albert-one-group"))
    two = insert(tiny_encoder("albert"))
    assert len(two.parameters()) == 2 * len(one.parameters()) == 2 * 2 * 4


@pytest.mark.parametrize("sharing", ["every-2", "every-4", ["a", "a", "b", "b"]])
def test_maps_that_agree_with_shared_weights_are_taken(
    sharing: object, adapted_batch: Batch
) -> None:
    encoder = tiny_encoder("albert")
    plain = states_of(encoder, adapted_batch)
    insert(encoder, sharing)
    assert not torch.allclose(states_of(encoder, adapted_batch)[1:], plain[1:], atol=1e-3)


def test_removing_some_layers_of_a_shared_adapter(adapted_batch: Batch) -> None:
    encoder = tiny_encoder("bert")
    adapters = insert(encoder, "every-4")
    with_all = states_of(encoder, adapted_batch)
    with adapters.removed(2, 3), adapters.removed(2, 2):
        without = states_of(encoder, adapted_batch)
        plain = tiny_encoder("bert")
        with torch.no_grad():
            expected = plain.encode(adapted_batch, Cached(1, with_all[1]))
    assert torch.equal(without[1], with_all[1])
    torch.testing.assert_close(without[3], expected[3], atol=1e-5, rtol=0)
    assert not torch.allclose(without[4], expected[4], atol=1e-3)
    assert torch.equal(states_of(encoder, adapted_batch), with_all)


def test_adapters_come_back_after_a_fault(adapted_batch: Batch) -> None:
    encoder = tiny_encoder("bert")
    adapters = insert(encoder)
    with_all = states_of(encoder, adapted_batch)
    with pytest.raises(RuntimeError), adapters.removed(1, 4):
        raise RuntimeError
    assert torch.equal(states_of(encoder, adapted_batch), with_all)


# What is refused


@pytest.mark.parametrize(
    ("name", "sharing", "placement", "said"),
    [
        ("bert", ["a", "b"], "houlsby", ['["a", "b"]', "has 2 entries", "4 layers"]),
        ("bert", [None, None, [None, None], None], "houlsby", ["no adapter", "4 layers"]),
        ("bert", [["a", "b"], "a", "a", "a"], "pfeiffer", ["after attention", "houlsby"]),
        ("bert", [["a", None], None, None, None], "pfeiffer", ["after attention"]),
        ("albert", "every-3", "houlsby", ["every-3", "layers 3-4", "share their weights"]),
        ("albert", ["a", "b", "c", "c"], "houlsby", ["layers 1-2", "one name", "per-layer"]),
        ("albert-one-group", "every-2", "pfeiffer", ["layers 1-4", "share their weights"]),
        ("modernbert", "per-layer", "pfeiffer", ["modernbert", "placement=houlsby"]),
    ],
)
def test_what_does_not_fit_the_encoder_is_refused(
    name: str, sharing: object, placement: str, said: list[str], adapted_batch: Batch
) -> None:
    encoder = tiny_encoder(name)
    plain = states_of(encoder, adapted_batch)
    with pytest.raises(ConfigError) as caught:
        insert_adapters(encoder, config_of(sharing, placement))
    assert len(caught.value.faults) == 1
    for text in said:
        assert text in str(caught.value)
    assert encoder.inserted is None
    assert torch.equal(states_of(encoder, adapted_batch), plain)


def test_groups_of_several_albert_layers_are_refused() -> None:
    config = tiny_config("albert")
    config.inner_group_num = 2
    with torch.device("meta"):
        encoder = TransformersEncoder.from_config(config)
    with pytest.raises(ConfigError, match="inner_group_num > 1"):
        insert_adapters(encoder, AdapterConfig())


@pytest.mark.parametrize(
    "value",
    [
        "per-sublayers",
        "every-0",
        "every-",
        "",
        [],
        [1, 2],
        [["a"]],
        [["a", "b", "c"]],
        ["a", ""],
        3,
        None,
    ],
)
def test_sharing_is_checked_by_itself(value: object) -> None:
    with pytest.raises(ConfigError, match="every-N") as caught:
        STRATEGIES.create("adapters", {"sharing": value})
    assert len(caught.value.faults) == 1
    assert f"sharing={value!r}: write per-sublayer" in str(caught.value)


def test_an_encoder_holds_one_insert() -> None:
    encoder = tiny_encoder("bert")
    adapters = insert(encoder)
    with pytest.raises(ModelError, match="already"):
        insert_adapters(encoder, AdapterConfig())
    adapters.remove()
    insert_adapters(encoder, AdapterConfig())


@pytest.mark.parametrize(("first", "last"), [(0, 2), (3, 2), (2, 5)])
def test_removed_refuses_layers_that_are_not_there(first: int, last: int) -> None:
    adapters = insert(tiny_encoder("bert"))
    with (
        pytest.raises(ConfigError, match=rf"{first}\.\.{last}.*1\.\.4"),
        adapters.removed(first, last),
    ):
        pass


def test_removed_refuses_a_part_of_layers_that_share_weights(adapted_batch: Batch) -> None:
    encoder = tiny_encoder("albert")
    adapters = insert(encoder)
    with_all = states_of(encoder, adapted_batch)
    with pytest.raises(ConfigError, match=r"layers 3\.\.4 share"), adapters.removed(1, 3):
        pass
    assert torch.equal(states_of(encoder, adapted_batch), with_all)


def test_merging_is_refused() -> None:
    with pytest.raises(ModelError, match=r"cannot be merged: .* gelu"):
        insert(tiny_encoder("bert")).merge()


# Saving


@pytest.mark.parametrize("sharing", [*SHARINGS, ["a", None, ["b", "a"], [None, "b"]]])
def test_configuration_and_weights_make_the_same_again(
    sharing: object, adapted_batch: Batch
) -> None:
    encoder = tiny_encoder("bert")
    adapters = insert(encoder, sharing)
    config = json.loads(json.dumps(adapters.config()))
    assert config == adapters.config()
    assert (config["kind"], config["hidden_size"]) == ("bottleneck", WIDTH)
    twin = tiny_encoder("bert")
    again = insert_adapters(twin, AdapterConfig.from_json(config))
    assert not torch.equal(states_of(twin, adapted_batch), states_of(encoder, adapted_batch))
    weights = adapters.state_dict()
    assert len({weight.data_ptr() for weight in weights.values()}) == len(weights)
    again.load_state_dict(weights)
    assert torch.equal(states_of(twin, adapted_batch), states_of(encoder, adapted_batch))


def test_weights_that_do_not_fit_are_refused_and_leave_all_as_it_was() -> None:
    adapters = insert(tiny_encoder("bert"))
    before = {name: weight.clone() for name, weight in adapters.state_dict().items()}
    lacking = dict(list(before.items())[1:])
    wrong = {name: torch.zeros(3) for name in before}
    cases = [
        (lacking, "layer.1.attention.down.weight is missing"),
        (before | {"layer.9.x": torch.zeros(1)}, "layer.9.x is not one of theirs"),
        (wrong, r"has shape \(3,\), not \(6, 32\) \(and 31 more faults\)"),
    ]
    for weights, said in cases:
        with pytest.raises(ModelError, match=said):
            adapters.load_state_dict(weights)
    assert all(torch.equal(w, before[name]) for name, w in adapters.state_dict().items())


def test_an_incomplete_configuration_is_refused() -> None:
    config = insert(tiny_encoder("bert")).config()
    del config["activation"]
    with pytest.raises(ModelError, match="does not say activation"):
        AdapterConfig.from_json(config)


# The strategy


def model_of(config: PretrainedConfig, **options: object) -> tuple[Model, list]:
    """A planned model on the meta device, and its plan."""
    strategy = STRATEGIES.create("adapters", options)
    with torch.device("meta"):
        encoder = TransformersEncoder.from_config(config)
        head = Linear(**strategy.head_defaults(encoder))
        readout = strategy.readout(encoder)
        model = Model(encoder, readout, head, Classification(labels=("a", "b")))
        strategy.prepare(model)
        return model, strategy.plan(model)


def trained_below_out(model: Model, plan: list) -> int:
    """Trainable parameters without the head's last layer."""
    sizes = {name: p.numel() for name, p in model.unique_parameters().items()}
    return sum(sizes[n] for n in trained_names(model, plan) if not n.startswith("head.out."))


COUNTS = [
    ({"sharing": "per-layer"}, 1_189_632),
    ({"train_layer_norms": True, "classifier_layers": 2}, 3_006_720),
    ({"sharing": "every-3"}, 396_544),
    ({}, 2_379_264),
]


@pytest.mark.parametrize(("options", "expected"), COUNTS)
def test_trainable_parameters_of_bert_base(options: dict, expected: int) -> None:
    model, plan = model_of(BertConfig(), **options)
    assert model.readout.pooling == "pooler"
    assert trained_below_out(model, plan) == expected


@pytest.mark.shared
@pytest.mark.parametrize(("options", "expected"), COUNTS)
def test_totune_plan_prints_them(options: dict, expected: int, shared: Path) -> None:
    model = str(shared / "models" / "bert-base-uncased-config")
    (phase,) = describe("adapters", model, "linear", 2, options)["phases"]
    assert phase["trainable"] - (768 * 2 + 2) == expected


def groups_by_kind(**options: object) -> Iterator[tuple[str, float]]:
    model, plan = model_of(tiny_config("bert"), **options)
    for name, group in assign(model, plan[0].train).items():
        yield name, group.learning_rate


@pytest.mark.parametrize("train_layer_norms", [True, False])
def test_it_trains_what_it_says(train_layer_norms: bool) -> None:
    found = dict(groups_by_kind(train_layer_norms=train_layer_norms, learning_rate=1e-3))
    assert set(found.values()) == {1e-3}
    others = {name for name in found if ".adapter." not in name and not name.startswith("head.")}
    assert all("layer" in name and "LayerNorm" in name for name in others)
    assert len(others) == (LAYERS * 4 if train_layer_norms else 0)
    assert sum(".adapter." in name for name in found) == LAYERS * 2 * 4
    assert not any("pooler" in name for name in found)


def test_norms_under_an_adapter_are_norms_still() -> None:
    options = {"placement": "pfeiffer", "train_layer_norms": True}
    found = dict(groups_by_kind(**options))
    assert sum(".norm." in name for name in found) == LAYERS * 2
    assert sum(".adapter." in name for name in found) == LAYERS * 4
    without = dict(groups_by_kind(placement="pfeiffer"))
    assert not any(".norm." in name for name in without)


def test_the_plan() -> None:
    strategy = STRATEGIES.create("adapters", {"train_layer_norms": True})
    model, (phase,) = model_of(tiny_config("bert"), train_layer_norms=True)
    assert [(group.parts, group.kinds) for group in phase.train] == [
        ("head", ()),
        ("mixing", ()),
        ("*", ("inserted",)),
        ("layer.*", ("norm",)),
    ]
    assert strategy.plan(model) == [phase]
    assert (phase.name, phase.stop.num_train_epochs) == ("adapters", ADAPTERS.usual_epochs)
    assert phase.schedule.warmup_ratio == 0.1
    assert {group.learning_rate for group in phase.train} == {ADAPTERS.learning_rate}


def test_classifier_layers() -> None:
    bert, roberta = tiny_encoder("bert"), tiny_encoder("roberta")
    one, two = (STRATEGIES.create("adapters", {"classifier_layers": n}) for n in (1, 2))
    assert one.head_defaults(bert) == {"layers": 1}
    assert two.head_defaults(bert) == {"layers": 2, "activation": "tanh"}
    assert one.head_defaults(roberta) == two.head_defaults(roberta)


@pytest.mark.parametrize(
    "sharing", ["per-sublayer", "every-3", '["a","a","b",null]', '[["a",null],"a",["b","c"],"c"]']
)
def test_options_round_trip(sharing: str) -> None:
    value = json.loads(sharing) if sharing.startswith("[") else sharing
    made = STRATEGIES.create("adapters", {"sharing": value})
    hash(made)
    options = options_of(made)
    assert STRATEGIES.create("adapters", options) == made
    assert STRATEGIES.create("adapters", json.loads(json.dumps(options))) == made


def test_an_albert_of_twelve_shared_layers_has_two_adapters() -> None:
    model, plan = model_of(AlbertConfig(hidden_size=768, num_attention_heads=12))
    assert trained_below_out(model, plan) == 2 * (2 * 768 * 64 + 768 + 64)
