"""What each plan says, beyond what holds for all of them."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.encoder_zoo import LAYERS, tiny_encoder
from tests.tiny_data import save_encoder
from tests.tiny_runs import classes, short, tiny_model

from totune.encoders.loading import load_encoder
from totune.encoders.mixing import Readout
from totune.errors import ConfigError
from totune.heads.base import HEADS
from totune.model import Model
from totune.strategies.base import STRATEGIES
from totune.strategies.coverage import assign, kinds
from totune.strategies.phases import Constant, Epochs, Gap, Plateau, Solved, Stretch, solved_head
from totune.tasks.base import Task
from totune.tasks.tagging import Tagging


def test_gradual_unfreezing_opens_one_block_after_the_other() -> None:
    strategy = short("gradual-unfreezing", learning_rate=1.0, layer_decay=0.5, epochs_per_block=2)
    _, plan = tiny_model(strategy, "bert", 3)
    layers = [f"layer {depth}" for depth in range(LAYERS, 0, -1)]
    assert [phase.name for phase in plan] == ["head", *layers, "all"]
    assert [phase.stop for phase in plan] == [Epochs(2)] * (LAYERS + 2)
    blocks = [*(f"layer.{depth}" for depth in range(LAYERS, 0, -1)), "embeddings"]
    for opened, phase in enumerate(plan):
        rates = {group.parts: group.learning_rate for group in phase.train}
        pooler = {"pooler": 1.0} if opened else {}
        assert rates == {"head": 1.0, "mixing": 1.0, **pooler} | {
            block: 0.5**below for below, block in enumerate(blocks[:opened], start=1)
        }


@pytest.mark.parametrize(
    ("encoder", "names"),
    [
        ("albert", ["head", "layer 3", "layer 1", "all"]),
        ("albert-one-group", ["head", "layer 1", "all"]),
    ],
)
def test_layers_that_share_weights_open_together(encoder: str, names: list[str]) -> None:
    model, plan = tiny_model(short("gradual-unfreezing"), encoder, 3)
    assert [phase.name for phase in plan] == names
    counts = [len(assign(model, phase.train)) for phase in plan]
    assert counts == sorted(set(counts))


def test_a_schedule_can_run_over_all_phases() -> None:
    strategy = short("gradual-unfreezing", window="run", num_train_epochs=3)
    _, plan = tiny_model(strategy, "bert", 3)
    assert all(isinstance(phase.schedule, Stretch) for phase in plan)
    total = sum(phase.stop.num_train_epochs for phase in plan)
    assert sum(phase.schedule.share for phase in plan) == pytest.approx(1)
    assert plan[-1].schedule.done == pytest.approx((total - 3) / total)


def test_stack_and_finetune_is_a_stack_and_then_fine_tuning() -> None:
    strategy = short("stack-and-finetune", layer_decay=0.9)
    model, (stack, *tuning) = tiny_model(strategy, "bert", 3)
    rest = {"learning_rate": strategy.learning_rate, "layer_decay": 0.9}
    assert tuning == short("fine-tuning", **rest).plan(model)
    assert {group.learning_rate for group in stack.train} == {1e-3}
    assert stack.schedule == Constant()


@pytest.mark.parametrize("name", ["stack-and-finetune", "gradual-unfreezing"])
@pytest.mark.parametrize("encoder", ["bert", "albert-one-group", "roberta", "electra"])
def test_the_first_phase_fixes_all_that_is_pretrained(name: str, encoder: str) -> None:
    """The pooler, too, where the head reads one; a layer before the output is the head's own."""
    model, (first, second, *_) = tiny_model(short(name), encoder, 3)
    new = {n for n in model.unique_parameters() if n.startswith("head.")}
    assert assign(model, first.train).keys() == new
    pooler = {n for n in model.unique_parameters() if n.startswith("pooler.")}
    assert bool(pooler) == (encoder in ("bert", "albert-one-group"))
    assert pooler < assign(model, second.train).keys()


@pytest.mark.parametrize("name", ["stack-and-finetune", "gradual-unfreezing"])
def test_a_pooler_that_the_weights_lack_is_no_part_of_any_phase(name: str, tmp_path: Path) -> None:
    save_encoder(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "pooler" not in name}
    assert len(kept) == len(weights) - 2
    save_file(kept, tmp_path / "model.safetensors", {"format": "pt"})
    model, plan = tiny_model(short(name), load_encoder(str(tmp_path)).encoder, 3)
    assert model.readout.pooling == "cls"
    trained = {n for phase in plan for n in assign(model, phase.train)}
    assert trained == {n for n in model.unique_parameters() if "pooler" not in n}


@pytest.mark.parametrize(
    ("stop", "found", "restore"),
    [
        ("gap", Gap(7, tolerance=0.1, gap_patience=2, patience=4), "best"),
        ("convergence", Plateau(7, patience=4), "best"),
        ("epochs", Epochs(7), "last"),
    ],
)
def test_what_ends_the_stack(stop: str, found: object, restore: str) -> None:
    options = {"stack_epochs": 7, "patience": 4, "gap_tolerance": 0.1, "gap_patience": 2}
    _, (stack, _) = tiny_model(short("stack-and-finetune", stop=stop, **options), "bert", 3)
    assert stack.stop == found
    assert stack.restore == restore


@pytest.mark.parametrize("encoder", ["bert", "modernbert", "deberta-v2", "distilbert"])
def test_bitfit_trains_biases_and_norms_of_the_encoder(encoder: str) -> None:
    model, (phase,) = tiny_model(short("bitfit"), encoder, 3)
    parameters, kind_of = model.unique_parameters(), kinds(model)
    trained = {name: parameters[name] for name in assign(model, phase.train)}
    encoders_own = {name: p for name, p in trained.items() if name.startswith("model.")}
    assert encoders_own
    assert all(p.ndim == 1 for p in encoders_own.values())
    vectors = {n: p for n, p in parameters.items() if n.startswith("model.") and p.ndim == 1}
    assert encoders_own.keys() == vectors.keys()
    assert {kind_of[id(p)] for p in encoders_own.values()} <= {"norm", "bias"}


def test_frozen_embeddings_train_all_else() -> None:
    model, (phase,) = tiny_model(short("frozen-embeddings"), "bert", 3)
    trained = assign(model, phase.train)
    others = {name for name in model.unique_parameters() if "embeddings" not in name}
    assert trained.keys() == others


@pytest.mark.parametrize("pooling", ["auto", "cls", "max", "last-four"])
def test_one_layer_on_the_top_vector_is_solved(pooling: str) -> None:
    strategy = short("feature-extraction", layers="top", pooling=pooling)
    model, plan = tiny_model(strategy, "bert", 3, layers=1)
    assert plan == [solved_head()]
    assert {n.split(".")[0] for n in assign(model, plan[0].train)} == {"head"}


def test_two_vectors_under_one_layer_are_solved() -> None:
    strategy, task = short("feature-extraction", layers="top"), classes(2)
    readout = Readout("top", "mean")
    model = Model(tiny_encoder("bert"), readout, HEADS.create("siamese"), task)
    assert strategy.plan(model) == [solved_head()]


@pytest.mark.parametrize(
    ("options", "task", "head"),
    [
        pytest.param({"layers": "scalar-mix"}, 3, {}, id="scalar mix"),
        pytest.param({"layers": "normed-scalar-mix"}, 3, {}, id="normed mix"),
        pytest.param({"layers": "top"}, 3, {"layers": 2}, id="two layers"),
        pytest.param({"layers": "top"}, Tagging(("O", "A")), {}, id="tagging"),
        pytest.param({"solver": "gradient"}, 3, {}, id="by gradient"),
    ],
)
def test_what_is_not_one_layer_on_a_vector_trains_by_steps(
    options: dict[str, str], task: Task | int, head: dict[str, int]
) -> None:
    _, (phase,) = tiny_model(short("feature-extraction", **options), "bert", task, **head)
    assert phase.stop == Plateau(2, patience=8)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("gradual-unfreezing", "window", "epoch"),
        ("gradual-unfreezing", "ratio", 0.5),
        ("gradual-unfreezing", "schedule", "cosine"),
        ("stack-and-finetune", "stop", "never"),
        ("stack-and-finetune", "gap_tolerance", -0.1),
        ("fine-tuning", "schedule", "cosine"),
    ],
)
def test_options_that_mean_nothing_are_refused(name: str, option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"{name}: {option}={value!r}"):
        STRATEGIES.create(name, {option: value})


@pytest.mark.parametrize("encoder", ["bert", "roberta", "modernbert"])
def test_reinitialised_layers_begin_as_before_pretraining(encoder: str) -> None:
    """Those of the top k layers and the pooler alone, as transformers draws them."""
    kept, _ = tiny_model(short("fine-tuning"), encoder, 3)
    model, plan = tiny_model(short("fine-tuning", reinit_layers=2), encoder, 3)
    other, _ = tiny_model(short("fine-tuning", reinit_layers=2), encoder, 3)
    assert plan == short("fine-tuning").plan(model)
    fresh = {f"layer.{LAYERS}", f"layer.{LAYERS - 1}", "pooler"}
    for part, named in model.parts().items():
        for (name, parameter), (_, before), (_, again) in zip(
            named, kept.parts()[part], other.parts()[part], strict=True
        ):
            new = part in fresh
            if parameter.ndim == 2:
                assert torch.equal(parameter, before) != new, name
                assert torch.equal(parameter, again), name
                if new:
                    assert 0.002 < float(parameter.detach().std()) < 0.03
            elif new:
                assert parameter.unique().tolist() in ([0.0], [1.0])  # biases, norms


def test_more_layers_than_there_are_cannot_begin_anew() -> None:
    with pytest.raises(ConfigError, match=f"reinit_layers=9 is more than the {LAYERS} layers"):
        tiny_model(short("fine-tuning", reinit_layers=9), "bert", 3)
    with pytest.raises(ConfigError, match="reinit_layers=-1"):
        short("fine-tuning", reinit_layers=-1)


def test_the_first_phase_of_a_stack_can_be_solved() -> None:
    strategy = short("stack-and-finetune", first_phase="solved")
    model, (stack, tuning) = tiny_model(strategy, "bert", 3)
    assert isinstance(stack.stop, Solved)
    assert set(assign(model, stack.train)) == {"head.out.weight", "head.out.bias"}
    assert [tuning] == short("fine-tuning", learning_rate=strategy.learning_rate).plan(model)
    assert "stack_learning_rate" in strategy.unused_options(model)


@pytest.mark.parametrize(
    ("options", "head", "reason"),
    [
        ({}, {"layers": 2}, "head 'linear', as it is set, is not one linear layer"),
        ({"layers": "scalar-mix"}, {}, "layers=scalar-mix learns the weights of a mix"),
    ],
)
def test_a_head_that_cannot_be_solved_is_refused(
    options: dict[str, str], head: dict[str, int], reason: str
) -> None:
    for name, more in (("stack-and-finetune", {"first_phase": "solved"}), ("contrastive", {})):
        with pytest.raises(ConfigError, match=f"{name}.*solved.*{reason}"):
            tiny_model(short(name, **options, **more), "bert", 3, **head)
