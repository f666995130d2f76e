"""Every head, whatever it does: shapes, gradients, and no row depends on another."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.encoder_zoo import PADDING, WIDTH, tiny_encoder
from tests.tiny_runs import (
    MAX_LENGTH,
    TinyTask,
    classes,
    fit,
    short,
    tagged_examples,
    tiny_task,
    tiny_tokenizer,
    tiny_words,
)

from totune.data.examples import Examples
from totune.encoders.mixing import Readout
from totune.errors import ConfigError
from totune.export import load_model, save_model
from totune.features import FeatureCache, compute
from totune.heads.base import HEADS, Head
from totune.inputs.batches import Batch
from totune.inputs.encoded import EncodingOptions, frame
from totune.inputs.encodings import EncodedSplit
from totune.model import Model, Viewed, wants_of
from totune.registry import options_of
from totune.tasks.base import Task
from totune.tasks.multi_label import MultiLabel
from totune.tasks.regression import Regression
from totune.training.devices import Devices
from totune.training.inputs import Split, open_source, predict

LENGTHS = [9, 1, 4, 6]
JOINT, APART = EncodingOptions("joint"), EncodingOptions("separate")
SMALL = {"hidden_size": 8}  # where a head has such options: tests are quick
# Those with segments and without, with a pooler and without; blocks are theirs to conform to.
ENCODERS = (
    *("distilbert", "modernbert"),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("roberta", "mpnet", "deberta-v2")),
)


@dataclasses.dataclass(frozen=True)
class Case:
    """A head with options, on rows of one kind, encoded in one way."""

    name: str
    kind: str
    encoding_options: EncodingOptions = JOINT
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        given = ",".join(f"{key}={value}" for key, value in self.options)
        return "-".join(
            filter(None, [self.name, self.kind, self.encoding_options.pair_encoding, given])
        )

    @property
    def head(self) -> Head:
        known = {field.name for field in dataclasses.fields(HEADS.get(self.name))}
        small = {name: value for name, value in SMALL.items() if name in known}
        return HEADS.create(self.name, small | dict(self.options))

    def examples(self, lengths: list[int], seed: int = 0) -> Examples:
        """Rows of so many words; of a pair the second text has as many as another row's first."""
        if self.kind == "tagging":
            return tagged_examples(lengths, seed)
        texts = [" ".join(words) for words in tiny_words(lengths, seed)]
        seconds = [" ".join(words) for words in tiny_words(lengths[::-1], seed + 1)]
        labels = tuple("abc"[row % 3] for row in range(len(lengths)))
        return Examples(tuple(texts), labels, tuple(seconds) if self.kind == "pairs" else None)

    def units(self, lengths: list[int], seed: int = 0) -> EncodedSplit:
        return frame(self.examples(lengths, seed), tiny_tokenizer(), 40, self.encoding_options)

    def task(self, outputs: int = 3) -> Task:
        if self.kind == "tagging":
            return tiny_task("tagging", tagged_examples([9, 9, 9]))
        return Regression(0.0, 1.0) if outputs == 1 else classes(outputs)

    def model(self, outputs: int = 3, seed: int = 0, encoder: str = "bert") -> Model:
        """On a tiny encoder, in eval mode; weights are spread so that a fault shows."""
        built = tiny_encoder(encoder)
        torch.manual_seed(seed)
        head, task = self.head, self.task(outputs)
        pooled = wants_of(head, task).startswith("pooled")
        model = Model(built, Readout(pooling="mean" if pooled else "none"), head, task)
        with torch.no_grad():
            for parameter in model.head.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        return model.eval()


_KINDS = {
    "pooled": [("classification", JOINT)],
    "pooled-pair": [("pairs", APART)],
    "tokens": [("classification", JOINT)],
    "pair": [("pairs", JOINT), ("pairs", APART)],
    "words": [("tagging", JOINT)],
}
_FURTHER: dict[str, list[dict[str, Any]]] = {
    "linear": [{"layers": 2, "activation": "relu"}, {"layers": 2, "activation": "gelu"}],
    "bilstm": [{"num_layers": 2}, {"crf": True}],
    "crf": [{"constrained": False}],
}
CASES = [
    Case(name, kind, encoding_options, tuple(options.items()))
    for name in HEADS.names()
    for options in [{}, *_FURTHER.get(name, [])]
    for wanted in HEADS.get(name).wants
    for kind, encoding_options in _KINDS[wanted]
]


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


def every(units: EncodedSplit) -> Batch:
    return units.batch(np.arange(len(units)), sides=True)


def run(model: Model, units: EncodedSplit) -> torch.Tensor:
    with torch.no_grad():
        outputs: torch.Tensor = model(every(units))
    return outputs


def test_options_are_a_frozen_dataclass_with_defaults(case: Case) -> None:
    head = case.head
    assert type(head).__dataclass_params__.frozen
    assert all(f.default is not dataclasses.MISSING for f in dataclasses.fields(head))
    assert HEADS.create(head.name, options_of(head)) == head


@pytest.mark.parametrize("outputs", [1, 5])
def test_a_row_of_outputs_per_position(case: Case, outputs: int) -> None:
    model = case.model(outputs)
    for lengths in ([7, 3, 5], [4], [1], [1, 1]):
        units = case.units(lengths)
        found = model.train(len(lengths) == 3)(every(units))
        assert found.shape == (units.counts.sum(), model.task.outputs)
        assert found.dtype == torch.float32
        assert torch.isfinite(found).all()


def test_gradients_reach_every_parameter(case: Case) -> None:
    model, examples = case.model(), case.examples(LENGTHS)
    units = frame(examples, tiny_tokenizer(), 40, case.encoding_options)
    split = Split.labelled("train", units, model.task, examples.labels or ())
    batch, _ = open_source(split, model, None, -1).batch(np.arange(len(units)), torch.device("cpu"))
    model.losses(model(batch), batch).sum().backward()
    for name, parameter in model.head.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_padding_and_batch_mates_change_no_prediction(case: Case) -> None:
    model, units = case.model(), case.units([*LENGTHS, 30])
    together = run(model, units)
    for indices in (np.arange(len(units) - 1), np.array([1]), np.array([2, 0])):
        with torch.no_grad():
            alone = model(units.batch(indices, sides=True))
        expected = together[units.positions(indices)]
        torch.testing.assert_close(alone, expected, atol=1e-5, rtol=1e-5)


def test_what_padding_holds_is_not_read(case: Case) -> None:
    model, batch = case.model(), every(case.units(LENGTHS))
    noise = torch.where(batch.input_ids == PADDING, 17, batch.input_ids)
    with torch.no_grad():
        other = model(dataclasses.replace(batch, input_ids=noise))
        torch.testing.assert_close(other, model(batch), atol=1e-5, rtol=0)


def test_different_rows_get_different_outputs(case: Case) -> None:
    outputs = run(case.model(), case.units(LENGTHS))
    assert torch.cdist(outputs, outputs).add(torch.eye(len(outputs))).min() > 1e-4


def test_equal_rows_get_equal_outputs(case: Case) -> None:
    rows = dataclasses.replace(case.examples([5]).take([0, 0, 0]), documents=None)
    one_piece = "w3 w3 w3 w3 w3"
    same = dataclasses.replace(
        rows,
        texts=(one_piece,) * 3,
        pairs=None if rows.pairs is None else (one_piece,) * 3,
        words=None if rows.words is None else (tuple(one_piece.split()),) * 3,
    )
    for given in (rows, same):
        outputs = run(case.model(), frame(given, tiny_tokenizer(), 40, case.encoding_options))
        outputs = outputs.view(3, -1)
        assert torch.isfinite(outputs).all()
        torch.testing.assert_close(outputs, outputs[:1].expand(3, -1), atol=1e-5, rtol=1e-5)


def test_the_same_seed_builds_and_predicts_the_same(case: Case) -> None:
    units = case.units(LENGTHS)
    model = case.model()
    first = run(model, units)
    assert torch.equal(run(model, units), first)
    assert torch.equal(run(case.model(), units), first)
    assert not torch.equal(run(case.model(seed=1), units), first)


def test_dropout_is_for_training_alone(case: Case) -> None:
    model, units = case.model(), case.units(LENGTHS)
    model.requires_grad_(False)
    model.freeze_prefix()
    model.train()
    assert not any(module.training for module in model.encoder.block_modules(3).values())
    assert not torch.equal(run(model, units), run(model, units))


def test_cached_features_predict_as_the_whole_model(case: Case) -> None:
    model, units = case.model(), case.units([5, 2, 9, 1])
    model.requires_grad_(False)
    view = model.view(model.freeze_prefix())
    assert view is not None
    batch = units.batch(np.array([1, 0]), sides=True)
    rows = compute(model.encoder, units.pieces, view, bf16=False).rows(batch.indices)
    with torch.no_grad():
        cached = model(batch, Viewed(view, rows))
        torch.testing.assert_close(cached, model(batch), atol=1e-5, rtol=0)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_type_of_encoder_trains_under_it(encoder: str) -> None:
    for case in CASES:
        model, units = case.model(encoder=encoder), case.units([4, 2])
        outputs = model(every(units))
        assert outputs.shape == (units.counts.sum(), model.task.outputs)
        outputs.square().sum().backward()
        gradients = [p.grad for _, p in model.encoder.block_parameters(1)]
        assert any(g is not None and g.abs().sum() > 0 for g in gradients), case


def test_saved_and_loaded_it_predicts_the_same(case: Case, tmp_path: Path) -> None:
    model, examples = case.model(), case.examples([5, 2, 9, 1])
    about = {
        "max_length": MAX_LENGTH,
        "pairs": examples.pairs is not None,
        "framing": dataclasses.asdict(case.encoding_options),
    }
    save_model(tmp_path, model, tiny_tokenizer(), model.task, about)
    loaded = load_model(tmp_path)
    units = frame(examples, tiny_tokenizer(), MAX_LENGTH, case.encoding_options)
    expected = predict(model, open_source(Split("x", units), model, None, -1), Devices()).values
    np.testing.assert_allclose(loaded.outputs(examples), expected, atol=1e-6)


def test_it_learns_from_cached_features(case: Case, tmp_path: Path) -> None:
    """The loss falls in a few epochs on a frozen encoder."""
    strategy = short(
        "feature-extraction",
        solver="gradient",
        num_train_epochs=5,
        learning_rate=3e-3,
        pair_encoding=case.encoding_options.pair_encoding,
    )
    tiny = TinyTask.of(case.kind, rows=24, encoding_options=case.encoding_options)
    torch.manual_seed(0)
    encoder, head = tiny_encoder("bert"), case.head
    readout = strategy.readout(encoder, wants_of(head, tiny.task))
    model = Model(encoder, readout, head, tiny.task)
    trainer = fit(model, strategy.plan(model), tiny, cache=FeatureCache(tmp_path))
    losses = [epoch.train["loss"] for epoch in trainer.history.epochs]
    assert trainer.history.epochs[0].cached
    assert min(losses[1:]) < losses[0]


def test_a_readout_of_the_wrong_kind_is_refused(case: Case) -> None:
    head, task = case.head, case.task()
    wanted = wants_of(head, task)
    wrong = Readout(pooling="none" if wanted.startswith("pooled") else "mean")
    with pytest.raises(ConfigError, match=f"{head.name!r} reads {wanted}"):
        Model(tiny_encoder("bert"), wrong, head, task)


def test_a_head_for_another_task_is_refused() -> None:
    tagging = tiny_task("tagging", tagged_examples([5]))
    several = MultiLabel(("a", "b"), (0.5, 0.5))
    for name in HEADS.names():
        head = HEADS.create(name)
        unfit = [
            task
            for task, own in ((tagging, True), (classes(2), False), (several, False))
            if not any((wanted == "words") == own for wanted in head.wants)
        ]
        assert unfit or name == "linear"
        for task in unfit:
            with pytest.raises(ConfigError, match=f"head '{name}' reads .* task {task.name}"):
                wants_of(head, task)


def test_every_head_of_whole_texts_learns_several_labels(case: Case) -> None:
    if case.kind == "tagging":
        return
    task = MultiLabel(("a", "b", "c"), (0.5, 0.5, 0.5), shares=(0.0, 0.1, 0.5))
    readout = case.model().readout
    model = Model(tiny_encoder("bert"), readout, case.head, task)
    labels = [("a",), ("a", "c"), (), ("b",)]
    split = Split.labelled("train", case.units(LENGTHS), task, labels)
    batch, _ = open_source(split, model, None, -1).batch(np.arange(4), torch.device("cpu"))
    losses = model.losses(model(batch), batch)
    assert losses.shape == (4,)
    first = torch.from_numpy(task.first_outputs())
    assert any(torch.isin(first, parameter).all() for parameter in model.head.parameters())
    losses.sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.head.parameters())


def test_options_of_the_linear_head() -> None:
    shapes = [tuple(p.shape) for p in HEADS.create("linear").build(WIDTH, classes(3)).parameters()]
    assert shapes == [(3, WIDTH), (3,)]
    for option, value in [("dropout", 1.0), ("dropout", -0.1), ("layers", 3), ("activation", "x")]:
        with pytest.raises(ConfigError, match=rf"head linear: {option}={value!r}"):
            HEADS.create("linear", {option: value})
