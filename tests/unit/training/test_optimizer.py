"""From groups to AdamW: who trains, at which rate, with which decay."""

import pytest
import torch
from tests.encoder_zoo import LAYERS, TINY, batch_of, tiny_encoder
from tests.tiny_runs import classes

from totune.encoders.mixing import Readout
from totune.heads.linear import Linear
from totune.model import Model
from totune.strategies.coverage import trained_names
from totune.strategies.fine_tuning import FineTuning
from totune.strategies.phases import Constant, Epochs, Group, Phase
from totune.training.optimizer import (
    apply_phase,
    build_optimizer,
    set_rates,
    trainable,
)
from totune.training.trainer import TrainingSettings


def model_of(encoder: str = "bert") -> Model:
    return Model(tiny_encoder(encoder), Readout("scalar-mix", "mean"), Linear(), classes(3))


def phase(*groups: Group) -> Phase:
    return Phase("test", groups, Constant(), Epochs(1))


ALL = phase(Group("*", 0.1, 0.01))


@pytest.mark.parametrize("encoder", TINY)
def test_each_parameter_is_in_one_group(encoder: str) -> None:
    model = model_of(encoder)
    groups = apply_phase(model, phase(Group("head", 1.0), Group("layer.*", 0.5), Group("*", 0.1)))
    members = [id(p) for group in groups for p in group["params"]]
    assert len(members) == len(set(members))
    assert set(members) == {id(p) for p in model.unique_parameters().values()}
    assert set(members) == {id(p) for p in trainable(model)}


@pytest.mark.parametrize("encoder", TINY)
def test_biases_and_norms_do_not_decay(encoder: str) -> None:
    model = model_of(encoder)
    decays = {
        id(p): group["weight_decay"] for group in apply_phase(model, ALL) for p in group["params"]
    }
    spared = {id(p) for n, p in model.named_parameters() if n.endswith("bias") or p.ndim < 2}
    for module in model.modules():
        if "norm" in type(module).__name__.lower():
            spared |= {id(p) for p in module.parameters(recurse=False)}
    for name, parameter in model.unique_parameters().items():
        assert decays[id(parameter)] == (0.0 if id(parameter) in spared else 0.01), name


def test_what_no_group_covers_is_frozen() -> None:
    model = model_of()
    apply_phase(model, ALL)
    apply_phase(model, phase(Group("head", 0.1), Group("layer.4", 0.1)))
    parts = model.parts()
    wanted = {id(p) for part in ("head", "layer.4") for _, p in parts[part]}
    assert {id(p) for p in model.parameters() if p.requires_grad} == wanted
    assert model.freeze_prefix() == LAYERS - 1


def test_the_first_group_that_covers_a_part_sets_its_rate() -> None:
    model = model_of()
    groups = apply_phase(model, phase(Group("layer.3", 0.3, 0.5), Group("*", 0.1)))
    third = {id(p) for _, p in model.parts()["layer.3"]}
    for group in groups:
        inside = {id(p) in third for p in group["params"]}
        assert len(inside) == 1
        assert group["lr"] == group["peak"] == (0.3 if inside == {True} else 0.1)
        assert group["weight_decay"] in ((0.5, 0.0) if inside == {True} else (0.01, 0.0))


@pytest.mark.parametrize("encoder", ["bert", "albert", "albert-one-group"])
def test_rates_fall_by_a_factor_per_block(encoder: str) -> None:
    model = model_of(encoder)
    (plan,) = FineTuning(learning_rate=1.0, layer_decay=0.4).plan(model)
    groups = apply_phase(model, plan)
    rates = {id(p): group["peak"] for group in groups for p in group["params"]}
    shared = {"albert": {4: 1, 3: 1, 2: 3, 1: 3}, "albert-one-group": dict.fromkeys(range(5), 1)}
    for depth in range(1, LAYERS + 1):
        # layers that share their weights train at the rate of the highest of them
        below = shared.get(encoder, {}).get(depth, LAYERS - depth + 1)
        found = [rates[id(p)] for _, p in model.parts()[f"layer.{depth}"]]
        assert found == pytest.approx([0.4**below] * len(found))
    assert {rates[id(p)] for _, p in model.parts()["head"]} == {1.0}
    bottom = [rates[id(p)] for _, p in model.parts()["embeddings"]]
    assert bottom == pytest.approx([0.4**5] * len(bottom))


def test_set_rates_is_a_share_of_each_peak() -> None:
    model = model_of()
    optimizer = build_optimizer(apply_phase(model, phase(Group("head", 0.2), Group("*", 0.1))))
    for factor in (0.5, 1.0, 0.0):
        set_rates(optimizer, factor)
        assert [g["lr"] for g in optimizer.param_groups] == [
            g["peak"] * factor for g in optimizer.param_groups
        ]
    assert {g["peak"] for g in optimizer.param_groups} == {0.2, 0.1}


def test_moments_outlive_a_phase() -> None:
    model = model_of()
    head = phase(Group("head", 0.1))
    first = build_optimizer(apply_phase(model, head))
    model(batch_of([5, 3])).sum().backward()
    first.step()
    moment = first.state[model.head.out.weight]["exp_avg"]
    second = build_optimizer(apply_phase(model, ALL), first)
    assert second.state[model.head.out.weight]["exp_avg"] is moment
    assert second.state[model.head.out.weight]["step"] == 1
    assert next(model.encoder.parameters()) not in second.state


def test_without_bias_correction_the_moments_count_as_they_are() -> None:
    torch.manual_seed(0)
    parameter = torch.nn.Parameter(torch.randn(3, 2))
    group = {"params": [parameter], "weight_decay": 0.1, "lr": 0.05, "peak": 0.05}
    optimizer = build_optimizer([group], bias_correction=False)
    weights = parameter.detach().clone()
    mean = square = torch.zeros(3, 2)
    for _ in range(4):
        parameter.grad = torch.randn(3, 2)
        mean = 0.9 * mean + 0.1 * parameter.grad
        square = 0.999 * square + 0.001 * parameter.grad**2
        weights = weights - 0.05 * (mean / (square.sqrt() + 1e-6) + 0.1 * weights)
        optimizer.step()
        torch.testing.assert_close(parameter.detach(), weights)


def test_trained_names_are_those_of_any_phase() -> None:
    model = model_of("albert-one-group")
    plan = [phase(Group("head", 0.1)), phase(Group("layer.4", 0.1))]
    names = trained_names(model, plan)
    assert len(names) == len(set(names))
    parts = model.parts()
    wanted = {id(p) for part in ("head", "layer.4") for _, p in parts[part]}
    assert {id(model.unique_parameters()[name]) for name in names} == wanted
    assert all(torch.is_floating_point(p) for p in model.unique_parameters().values())


def test_runs_of_before_there_was_a_choice_keep_their_names() -> None:
    assert "bias_correction" not in TrainingSettings("accuracy").to_json()
    assert TrainingSettings("accuracy", bias_correction=False).to_json()["bias_correction"] is False
