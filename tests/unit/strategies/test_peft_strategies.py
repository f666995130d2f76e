"""The strategies `lora` and `peft`: what they insert, what their plans train."""

from typing import Any

import pytest
from tests.encoder_zoo import LAYERS
from tests.tiny_runs import short, tiny_model

from totune.errors import ConfigError
from totune.model import Model
from totune.registry import options_of
from totune.runs.run import weight_bytes
from totune.strategies.base import STRATEGIES, Strategy
from totune.strategies.coverage import assign, trained_names
from totune.strategies.peft import Peft

DENSE = {"peft_type": "LORA", "target_modules": ["dense"]}


def inserted_in(model: Model) -> dict[str, set[str]]:
    """Names of wrapped modules by the part that they are in."""
    assert model.encoder.inserted is not None
    ours = {id(p) for p in model.encoder.inserted.parameters()}
    return {
        part: {name for name, p in named if id(p) in ours} for part, named in model.parts().items()
    }


@pytest.mark.parametrize("name", ["lora", "peft"])
def test_head_and_insert_train_and_the_pooler_does_not(name: str) -> None:
    model, plan = tiny_model(STRATEGIES.create(name), "bert", 3)
    (phase,) = plan
    groups = assign(model, phase.train)
    assert sorted(groups) == sorted(trained_names(model, plan))
    parts = inserted_in(model)
    expected = {n for names in parts.values() for n in names}
    expected |= {n for n, _ in model.parts()["head"]}
    assert model.parts()["pooler"]
    assert set(groups) == expected
    assert {group.learning_rate for group in groups.values()} == {
        STRATEGIES.create(name).learning_rate
    }


@pytest.mark.parametrize(
    ("encoder", "modules"),
    [
        ("bert", {"query", "value"}),
        ("distilbert", {"q_lin", "v_lin"}),
        ("modernbert", {"Wqkv"}),
        ("mpnet", {"q", "v"}),
    ],
)
def test_lora_updates_queries_and_values(encoder: str, modules: set[str]) -> None:
    model, _ = tiny_model(STRATEGIES.create("lora", {"r": 2}), encoder, 3)
    parts = inserted_in(model)
    for depth in range(1, LAYERS + 1):
        names = {name.split(".lora_")[0].rpartition(".")[2] for name in parts[f"layer.{depth}"]}
        assert names == modules
    assert not parts["embeddings"]


@pytest.mark.parametrize(
    "strategy",
    [STRATEGIES.create("lora", {"target_modules": ["dense"]}), Peft(config=DENSE)],
    ids=["lora", "peft"],
)
def test_the_pooler_gets_no_update_by_its_name(strategy: Strategy) -> None:
    model, _ = tiny_model(strategy, "bert", 3)
    assert model.encoder.inserted is not None
    parts = inserted_in(model)
    assert len(parts["layer.1"]) == 2 * 3  # attention.output, intermediate, output
    assert not parts["pooler"]
    listed = sum(len(names) for names in parts.values())
    assert len(model.encoder.inserted.parameters()) == listed
    assert model.encoder.inserted.config()["exclude_modules"] == [
        "pooler.dense",
        "pooler.activation",
    ]


def test_unknown_modules_are_told_with_what_there_is() -> None:
    strategy = STRATEGIES.create("lora", {"target_modules": ["qeury", "value", "up_proj"]})
    with pytest.raises(ConfigError) as caught:
        tiny_model(strategy, "bert", 3)
    assert len(caught.value.faults) == 2
    assert "'qeury'. Did you mean 'query'? Known: dense, key, query, value." in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value"), [("r", 0), ("lora_alpha", 0), ("lora_dropout", 1.0), ("r", "two")]
)
def test_options_of_lora_are_checked(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"lora: {option}={value!r}"):
        STRATEGIES.create("lora", {option: value})


def test_a_configuration_says_what_null_stands_for() -> None:
    made = STRATEGIES.create("peft")
    assert options_of(made)["config"] == {"peft_type": "IA3"}
    assert STRATEGIES.create("peft", options_of(made)) == made == Peft()


@pytest.mark.parametrize(
    "config",
    [
        {"peft_type": "IA3", "target_modules": ["key"], "feedforward_modules": []},
        {"peft_type": "PREFIX_TUNING", "num_virtual_tokens": 3},
        {"peft_type": "LN_TUNING"},
        DENSE,
    ],
    ids=lambda config: config["peft_type"],
)
def test_other_methods_are_planned_and_called_by_their_names(config: dict[str, Any]) -> None:
    strategy = short("peft", config=config)
    assert strategy.label == f"peft-{config['peft_type'].lower().replace('_', '-')}"
    assert STRATEGIES.create("peft", options_of(strategy)) == strategy
    model, plan = tiny_model(strategy, "bert", 3)
    names = {n for part in inserted_in(model).values() for n in part}
    assert names
    assert names < set(trained_names(model, plan))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"peft_type": "IA4"}, "Did you mean 'IA3'"),
        ({"r": 4}, "no peft_type"),
        ({"peft_type": "LORA", "rnak": 4}, "no option 'rnak'"),
        ("IA3", "config='IA3'"),
    ],
)
def test_configurations_are_checked_before_there_is_an_encoder(
    config: object, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        STRATEGIES.create("peft", {"config": config})


@pytest.mark.parametrize("method", ["LORA", "RANDLORA"])
def test_what_must_be_stored_is_what_is_saved(method: str) -> None:
    """RandLoRA keeps fixed matrices beside what it trains."""
    strategy = STRATEGIES.create("peft", {"config": {"peft_type": method, "r": 2}})
    model, plan = tiny_model(strategy, "bert", 3)
    parameters = model.unique_parameters()
    trained = {name: parameters[name] for name in trained_names(model, plan)}
    assert model.encoder.inserted is not None
    saved = sum(t.numel() * t.element_size() for t in model.encoder.inserted.state_dict().values())
    head = sum(4 * p.numel() for n, p in trained.items() if n.startswith("head."))
    assert weight_bytes(model, trained) == saved + head
    assert (weight_bytes(model, trained) > sum(4 * p.numel() for p in trained.values())) == (
        method == "RANDLORA"
    )
