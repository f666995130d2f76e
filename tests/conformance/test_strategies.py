"""Every strategy, whatever it does: the plan is pure, and training does what it says."""

import copy
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.encoder_zoo import LAYERS, TINY, tiny_config, with_encoders
from tests.tiny_runs import (
    KINDS,
    Killed,
    TinyTask,
    assert_same_training,
    classes,
    fit,
    kill_after,
    metrics_of,
    short,
    stepped,
    tiny_model,
    weights,
)

from totune.encoders.transformers import TransformersEncoder
from totune.errors import ConfigError
from totune.features import FeatureCache
from totune.heads.base import HEADS
from totune.model import Model
from totune.registry import option_names, options_of
from totune.strategies.base import STRATEGIES
from totune.strategies.coverage import kinds, trained_names
from totune.strategies.phases import COMPUTED_HEAD, Group, Phase, Solved
from totune.training.inputs import open_source, predict

# A strategy that cannot adapt a type says so; its message is tested below.
REFUSED = {("last-k", "albert-one-group")}
# Nor does one that needs classes of texts train on another task.
NOT_FOR = {"contrastive": ("regression", "tagging")}
# What is slow of strategies by encoders and by tasks runs code that other cells run too.
SELDOM = pytest.mark.slow
# Every strategy meets these; classification is what other tests train.
TASKS_OF = {
    "bert": ("regression", "pairs", "tagging"),
    "albert": ("pairs",),
    "modernbert": ("tagging",),
}

planned = pytest.mark.parametrize(
    ("name", "encoder"),
    with_encoders(STRATEGIES.names(), usual=("adapters", "fine-tuning"), without=REFUSED),
)
taught = pytest.mark.parametrize(
    ("name", "encoder"), with_encoders(STRATEGIES.names(), without=REFUSED)
)
each = pytest.mark.parametrize("name", STRATEGIES.names())
each_task = pytest.mark.parametrize(
    ("encoder", "kind"),
    [
        pytest.param(encoder, kind, marks=() if kind in TASKS_OF.get(encoder, ()) else SELDOM)
        for encoder in TINY
        for kind in TASKS_OF["bert"]
    ],
)


def on_tasks(kinds: Sequence[str], usual: Sequence[str]) -> pytest.MarkDecorator:
    """Strategies by tasks: all on the first, those in `usual` on the others."""
    return pytest.mark.parametrize(
        ("name", "kind"),
        [
            pytest.param(name, kind, marks=() if kind == kinds[0] or name in usual else SELDOM)
            for name in STRATEGIES.names()
            for kind in kinds
            if kind not in NOT_FOR.get(name, ())
        ],
    )


@pytest.fixture(scope="module")
def classification() -> TinyTask:
    return TinyTask.of("classification")


def covered(model: Model, groups: Sequence[Group]) -> set[int]:
    """Identities of the parameters in a part, and of a kind, that some group names."""
    kind_of = kinds(model)
    return {
        id(parameter)
        for part, named in model.parts().items()
        for _, parameter in named
        if any(group.covers(part, kind_of[id(parameter)]) for group in groups)
    }


def all_groups(plan: list[Phase]) -> list[Group]:
    return [group for phase in plan for group in phase.train]


def assert_names_parts(model: Model, plan: list[Phase]) -> None:
    """Every group of the plan covers something that there is, and the head trains throughout."""
    assert plan
    assert len({phase.name for phase in plan}) == len(plan)
    parts = model.parts()
    assert list(parts)[: LAYERS + 1] == ["embeddings", *(f"layer.{d + 1}" for d in range(LAYERS))]
    head = {id(parameter) for _, parameter in parts["head"]}
    for phase in plan:
        assert covered(model, phase.train) >= head
        solved = isinstance(phase.stop, Solved)
        computed = (COMPUTED_HEAD,) if solved or phase.objective == "pairs" else ()
        assert all((group.learning_rate > 0) != (group in computed) for group in phase.train)
        optional = {"mixing", "pooler"}  # empty where the head does not read them
        assert all(covered(model, [g]) for g in phase.train if g.parts not in optional)


@each
def test_options_are_a_frozen_dataclass_with_defaults(name: str) -> None:
    member = STRATEGIES.get(name)
    assert member.__dataclass_params__.frozen
    assert all(f.default is not dataclasses.MISSING for f in dataclasses.fields(member))
    made = STRATEGIES.create(name)
    assert STRATEGIES.create(name, options_of(made)) == made


WRONG = {
    "learning_rate": (0.0, float("inf")),
    "num_train_epochs": (0,),
    "warmup_ratio": (1.5,),
    "weight_decay": (-0.1,),
    "pooling": ("median",),
    "layers": ("bottom",),
}


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        (name, option, value)
        for name in STRATEGIES.names()
        for option in option_names(STRATEGIES.get(name))
        for value in WRONG.get(option, ())
    ],
)
def test_options_that_cannot_train_are_refused(name: str, option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"{name}: {option}={value!r}"):
        STRATEGIES.create(name, {option: value})


@planned
def test_a_plan_is_pure(name: str, encoder: str) -> None:
    model, plan = tiny_model(short(name), encoder, 3)
    before = weights(model)
    flags = [p.requires_grad for p in model.parameters()]
    modes = [module.training for module in model.modules()]
    assert short(name).plan(model) == plan
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())
    assert [p.requires_grad for p in model.parameters()] == flags
    assert [module.training for module in model.modules()] == modes
    assert_names_parts(model, plan)


@taught
def test_a_plan_needs_no_weights(name: str, encoder: str) -> None:
    model, plan = tiny_model(short(name), encoder, 3)
    with torch.device("meta"):
        built = TransformersEncoder.from_config(tiny_config(encoder))
        head = HEADS.create("linear", short(name).head_defaults(built))
        hollow = Model(built, short(name).readout(built), head, classes(3))
        short(name).prepare(hollow)
    assert short(name).plan(hollow) == plan
    assert trained_names(hollow, plan) == trained_names(model, plan)


def last_weights(model: Model, plan: list[Phase], tiny: TinyTask) -> dict[str, torch.Tensor]:
    """The weights after the last epoch, which need not be the best one that is kept."""
    states: list[dict[str, torch.Tensor]] = []
    fit(model, plan, tiny, on_epoch=lambda _: states.append(weights(model)))
    return states[-1]


@planned
def test_training_changes_what_the_plan_names_and_nothing_else(
    name: str, encoder: str, classification: TinyTask
) -> None:
    model, plan = tiny_model(short(name, num_train_epochs=1), encoder, 3)
    before, wanted = weights(model), covered(model, all_groups(plan))
    after = last_weights(model, plan, classification)
    for parameter_name, parameter in model.named_parameters():
        changed = not torch.equal(after[parameter_name], before[parameter_name])
        assert changed == (id(parameter) in wanted), parameter_name
        assert torch.isfinite(parameter).all()


@each
def test_each_phase_trains_its_own(name: str, classification: TinyTask) -> None:
    """After every epoch, what its phase does not name is what it was before, bit for bit."""
    model, plan = tiny_model(short(name, num_train_epochs=1), "bert", 3)
    by_name = {phase.name: covered(model, phase.train) for phase in plan}
    states = [weights(model)]
    trainer = fit(model, plan, classification, on_epoch=lambda _: states.append(weights(model)))
    previous = states[0]
    for epoch, state in zip(trainer.history.epochs, states[1:], strict=True):
        for parameter_name, parameter in model.named_parameters():
            if id(parameter) not in by_name[epoch.phase]:
                assert torch.equal(state[parameter_name], previous[parameter_name])
        previous = state


@each_task
@each
def test_it_works_for_every_task(name: str, encoder: str, kind: str) -> None:
    if (name, encoder) in REFUSED or kind in NOT_FOR.get(name, ()):
        pytest.skip("refused; another test reads the message")
    tiny = TinyTask.of(kind)
    model, plan = tiny_model(short(name, num_train_epochs=1), encoder, tiny.task)
    trainer = fit(model, plan, tiny)
    assert [epoch.phase for epoch in trainer.history.epochs if epoch.ended] == [
        phase.name for phase in plan
    ]
    for train, dev in metrics_of(trainer):
        assert set(train) == set(dev) >= {*tiny.task.metrics, "loss"}
    source = open_source(tiny.dev, model, None, -1)
    outputs = predict(model, source, trainer.devices)
    assert outputs.values.shape == (tiny.dev.positions, tiny.task.outputs)
    assert np.isfinite(outputs.values).all()
    assert np.isfinite(outputs.losses).all()


@taught
def test_the_cache_changes_no_result(
    name: str, encoder: str, classification: TinyTask, tmp_path: Path
) -> None:
    cache = FeatureCache(tmp_path, budget_bytes=10**8)
    results = []
    for given in (None, cache):
        model, plan = tiny_model(short(name, num_train_epochs=1), encoder, 3)
        trainer = fit(model, plan, classification, cache=given)
        source = open_source(classification.dev, model, given, model.freeze_prefix())
        outputs = predict(model, source, trainer.devices).values
        results.append((model, torch.from_numpy(outputs), trainer.history))
    (whole, outputs, history), (cached, from_cache, cached_history) = results
    depths = [epoch.frozen_depth for epoch in history.epochs]
    assert [epoch.frozen_depth for epoch in cached_history.epochs] == depths
    if name != "contrastive":  # which freezes what it has tuned
        assert depths == sorted(depths, reverse=True)  # what is frozen shrinks with every phase
    assert [e.cached for e in cached_history.epochs] == [depth >= 1 for depth in depths]
    assert not any(epoch.cached for epoch in history.epochs)
    torch.testing.assert_close(from_cache, outputs, atol=1e-5, rtol=0)
    assert_same_training(cached, whole)


@each
@pytest.mark.parametrize("encoder", ["bert", pytest.param("modernbert", marks=SELDOM)])
def test_a_run_killed_in_any_phase_ends_as_if_it_had_not_been(
    name: str, encoder: str, classification: TinyTask, tmp_path: Path
) -> None:
    strategy = short(name)
    model, plan = tiny_model(strategy, encoder, 3)
    whole = fit(model, plan, classification)
    epochs = whole.history.epochs
    ends = [epoch.epoch for epoch in epochs if epoch.ended]
    inside = [epoch.epoch for epoch in epochs if not epoch.ended]
    for killed_after in sorted({ends[0], *ends[-2:-1], *inside[:1], *inside[-1:]}):
        checkpoint = tmp_path / f"{killed_after}.pt"
        again, _ = tiny_model(strategy, encoder, 3)
        stop = kill_after(killed_after)
        with pytest.raises(Killed):
            fit(again, plan, classification, checkpoint=checkpoint, on_epoch=stop)
        resumed, _ = tiny_model(strategy, encoder, 3)
        trainer = fit(resumed, plan, classification, checkpoint=checkpoint)
        assert metrics_of(trainer) == metrics_of(whole)
        assert [e.ended for e in trainer.history.epochs] == [e.ended for e in epochs]
        assert [e.frozen_depth for e in trainer.history.epochs] == [e.frozen_depth for e in epochs]
        assert trainer.history.best == whole.history.best
        for parameter_name, parameter in resumed.named_parameters():
            expected = model.get_parameter(parameter_name)
            assert parameter.requires_grad == expected.requires_grad, parameter_name
            assert torch.equal(parameter, expected), parameter_name


@on_tasks((*KINDS, "tagging"), usual=("fine-tuning",))
def test_the_same_seeds_give_the_same_result(name: str, kind: str) -> None:
    tiny = TinyTask.of(kind)
    model, plan = tiny_model(stepped(name), "bert", tiny.task)
    twin, reordered = copy.deepcopy(model), copy.deepcopy(model)
    first, second = fit(model, plan, tiny), fit(twin, plan, tiny)
    assert metrics_of(first) == metrics_of(second)
    assert all(torch.equal(p, twin.get_parameter(n)) for n, p in model.named_parameters())
    assert metrics_of(fit(reordered, plan, tiny, order_seed=1)) != metrics_of(first)
    for train, dev in metrics_of(first):
        assert set(train) == set(dev) >= {*tiny.task.metrics, "loss"}


@on_tasks(("classification", "regression", "tagging"), usual=("feature-extraction", "fine-tuning"))
def test_it_learns(name: str, kind: str) -> None:
    tiny = TinyTask.of(kind)
    strategy = stepped(name, num_train_epochs=10, learning_rate=3e-3)
    model, plan = tiny_model(strategy, "bert", tiny.task)
    losses = [train["loss"] for train, _ in metrics_of(fit(model, plan, tiny))]
    assert min(losses[-3:]) < 0.98 * losses[0]


def test_last_k_refuses_layers_that_share_their_weights() -> None:
    for encoder, k in [("albert-one-group", 1), ("albert-one-group", 3), ("albert", 1)]:
        with pytest.raises(ConfigError, match="share their weights"):
            tiny_model(short("last-k", k=k), encoder, 3)
    for encoder, k in [("albert-one-group", LAYERS), ("albert", 2)]:
        model, plan = tiny_model(short("last-k", k=k), encoder, 3)
        assert covered(model, all_groups(plan)) >= {
            id(p) for _, p in model.parts()[f"layer.{LAYERS}"]
        }


@pytest.mark.parametrize("k", [-1, 0, LAYERS + 1])
def test_last_k_refuses_layers_that_are_not_there(k: int) -> None:
    model, _ = tiny_model(short("last-k"), "bert", 3)
    with pytest.raises(ConfigError, match=f"k={k} is outside 1..{LAYERS}"):
        dataclasses.replace(short("last-k"), k=k).plan(model)


def test_last_k_is_called_by_its_number() -> None:
    strategy = STRATEGIES.create("last-3")
    assert strategy.label == "last-3"
    model, plan = tiny_model(strategy, "bert", 3)
    assert {n.split(".")[0] for n in trained_names(model, plan)} == {"model", "pooler", "head"}
    assert model.encoder.block_modules(1).keys() == {"model.encoder.layer.0"}
    assert not any(n.startswith("model.encoder.layer.0.") for n in trained_names(model, plan))
    assert any(n.startswith("model.encoder.layer.1.") for n in trained_names(model, plan))


def test_fine_tuning_gives_every_block_its_rate() -> None:
    _, (phase,) = tiny_model(short("fine-tuning", learning_rate=1.0, layer_decay=0.5), "bert", 3)
    rates = {group.parts: group.learning_rate for group in phase.train}
    assert rates == {
        "head": 1.0,
        "mixing": 1.0,
        "pooler": 1.0,
        "layer.4": 0.5,
        "layer.3": 0.25,
        "layer.2": 0.125,
        "layer.1": 0.0625,
        "embeddings": 0.03125,
    }
