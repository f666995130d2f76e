"""Conformance checks for members that other packages define, without any test framework.

    from totune.testing import check_head
    from my_package import MyHead

    def test_my_head() -> None:
        check_head(MyHead())

Each check builds a tiny random encoder, and raises AssertionError with a sentence where a member
does not behave like totune's own. Rows are random words; nothing is downloaded.
"""

import copy
import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from totune.baselines.base import BASELINES, Baseline
from totune.data.examples import Examples
from totune.encoders.loading import Loaded, load_encoder, quiet
from totune.encoders.mixing import Readout
from totune.export import load_model, save_model
from totune.heads.base import HEADS, Head, InputKind
from totune.inputs.encoded import EncodingOptions, frame
from totune.model import Model, wants_of
from totune.registry import Registry, options_of
from totune.strategies.base import STRATEGIES, Strategy
from totune.strategies.coverage import trained_names
from totune.tasks.base import TASKS, Task
from totune.training.devices import Devices
from totune.training.inputs import Split, open_source, predict
from totune.training.trainer import Trainer, TrainingSettings

WORDS = [f"w{number}" for number in range(50)]
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_MAX_LENGTH = 40
_LENGTHS = (7, 1, 4, 9, 3, 6)  # words of the rows


def save_tiny_encoder(folder: Path, seed: int = 0) -> Path:
    """A random BERT of four layers of 32 features with its tokenizer, as transformers saves them.

    Args:
        folder: where it goes; a `model` for every call of totune.
        seed: of the weights.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(_SPECIAL) + len(WORDS),
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=_MAX_LENGTH,
        pad_token_id=0,
    )
    model = BertModel(config)
    with torch.no_grad():
        for parameter in model.parameters():  # wide, so that a wrong mask or position shows
            parameter.add_(0.2 * torch.randn_like(parameter))
    vocabulary = {piece: number for number, piece in enumerate([*_SPECIAL, *WORDS])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    special = {f"{name[1:-1].lower()}_token": name for name in _SPECIAL}
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend, model_max_length=_MAX_LENGTH, **special
    )
    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


def check_head(head: Head) -> None:
    """Checks a head for every kind of input that it wants.

    Options and registration; shapes; gradients; that neither padding nor other rows change a
    prediction; that equal seeds give equal weights; and saving and loading.

    Raises:
        AssertionError: with what it does otherwise.
    """
    _check_options(head, HEADS)
    assert head.wants, f"{head.name}: `wants` is empty, so it reads nothing."
    with tempfile.TemporaryDirectory(prefix="totune-") as folder:
        loaded = load_encoder(str(save_tiny_encoder(Path(folder) / "encoder")))
        for wanted in head.wants:
            _check_on(head, wanted, loaded, Path(folder) / wanted)


def _check_on(head: Head, wanted: InputKind, loaded: Loaded, folder: Path) -> None:
    name = f"{head.name} on {wanted}"
    examples = _rows(wanted, len(_LENGTHS))
    encoding = EncodingOptions("separate" if wanted == "pooled-pair" else "joint")
    task = TASKS.get("tagging" if wanted == "words" else "classification").from_examples(examples)
    model = _model(head, task, loaded)
    units = frame(examples, loaded.tokenizer, _MAX_LENGTH, encoding)
    every = np.arange(len(units))
    outputs = model(units.batch(every, sides=True))
    expected = (int(units.counts.sum()), task.outputs)
    assert outputs.shape == expected, f"{name}: outputs have shape {outputs.shape}, not {expected}."
    assert bool(torch.isfinite(outputs).all()), f"{name}: outputs are not finite."

    split = Split.labelled("train", units, task, examples.labels or ())
    batch, _ = open_source(split, model, None, -1).batch(every, torch.device("cpu"))
    model.losses(model(batch), batch).sum().backward()  # type: ignore[no-untyped-call]
    for parameter_name, parameter in model.head.named_parameters():
        reached = parameter.grad is not None and bool(parameter.grad.abs().sum() > 0)
        assert reached, f"{name}: no gradient reaches {parameter_name}."

    with torch.no_grad():
        for row in every:
            alone = model(units.batch(np.array([row]), sides=True))
            beside = outputs[units.positions(np.array([row]))]
            same = torch.allclose(alone, beside, atol=1e-4, rtol=1e-4)
            assert same, f"{name}: padding, or the rows beside it, change what row {row} gets."
        again = _model(head, task, loaded)(units.batch(every, sides=True))
    # Kernels differ where gradients are kept.
    same = torch.allclose(again, outputs, atol=1e-4, rtol=1e-4)
    assert same, f"{name}: the same seed gives other weights or outputs."
    _check_saving(name, model, loaded, examples, encoding, folder)


def _check_saving(
    name: str,
    model: Model,
    loaded: Loaded,
    examples: Examples,
    encoding: EncodingOptions,
    folder: Path,
) -> None:
    facts = {"max_length": _MAX_LENGTH, "pairs": examples.pairs is not None}
    about = facts | {"framing": dataclasses.asdict(encoding)}
    save_model(folder, model, loaded.tokenizer, model.task, about)
    units = frame(examples, loaded.tokenizer, _MAX_LENGTH, encoding)
    expected = predict(model, open_source(Split("x", units), model, None, -1), Devices()).values
    found = load_model(folder).outputs(examples)
    same = np.allclose(found, expected, atol=1e-5)
    assert same, f"{name}: saved and loaded, it predicts something else."


def check_strategy(strategy: Strategy) -> None:
    """Checks a strategy under a linear head, and trains with it.

    Options and registration; that the plan is pure and has phases of different names, under each of
    which the head trains; and that training changes nothing that the plan does not name.

    Raises:
        AssertionError: with what it does otherwise.
    """
    _check_options(strategy, STRATEGIES)
    examples = _rows("pooled", 24)
    task = TASKS.get("classification").from_examples(examples)
    with tempfile.TemporaryDirectory(prefix="totune-") as folder:
        loaded = load_encoder(str(save_tiny_encoder(Path(folder))))
    torch.manual_seed(0)
    wants = wants_of(HEADS.create("linear"), task)
    head = HEADS.create("linear", strategy.head_defaults(loaded.encoder, wants))
    model = Model(loaded.encoder, strategy.readout(loaded.encoder, wants), head, task)
    strategy.prepare(model)
    before = _weights(model)
    plan = strategy.plan(model)
    assert plan, f"{strategy.name}: the plan has no phase."
    assert strategy.plan(model) == plan, f"{strategy.name}: a second plan is another one."
    after = _weights(model)
    pure = all(torch.equal(after[name], before[name]) for name in before)
    assert pure, f"{strategy.name}: planning changes weights."
    names = [phase.name for phase in plan]
    assert len(set(names)) == len(names), f"{strategy.name}: two phases share a name: {names}."

    units = frame(examples, loaded.tokenizer, _MAX_LENGTH, EncodingOptions())
    split = Split.labelled("train", units, task, examples.labels or ())
    states: list[dict[str, torch.Tensor]] = []
    trainer = Trainer(model, split, split, TrainingSettings(task.metrics[0], 8), 0)
    trainer.fit(plan, None, lambda _: states.append(_weights(model)))
    trained = set(trained_names(model, plan))
    for name in model.unique_parameters():
        changed = any(not torch.equal(state[name], before[name]) for state in states)
        assert name in trained or not changed, f"{strategy.name}: {name} changes unplanned."
        in_head = name.startswith("head.")
        assert changed or not in_head, f"{strategy.name}: {name} of the head does not train."


def check_baseline(baseline: Baseline) -> None:
    """Checks a baseline on a task that it can do.

    Options and registration; shapes; that a row is predicted alone as in company; strange texts;
    and saving and loading.

    Raises:
        AssertionError: with what it does otherwise.
    """
    _check_options(baseline, BASELINES)
    name, wanted = baseline.name, "words" if "tagging" in baseline.tasks else "pooled"
    train = _rows("words" if wanted == "words" else "pooled", 24)
    task = TASKS.get("tagging" if wanted == "words" else "classification").from_examples(train)

    def embed(examples: Examples) -> np.ndarray:
        vectors = [[len(text), text.count("1"), text.count("2")] for text in examples.texts]
        return np.array(vectors, dtype=np.float32)

    given = embed if baseline.needs_encoder else None
    fitted = baseline.fit(train, task.targets(train.labels or ()), task, 0, given)
    outputs = fitted.outputs(train)
    expected = (int(train.counts.sum()), task.outputs)
    assert outputs.shape == expected, f"{name}: outputs have shape {outputs.shape}, not {expected}."
    alone = np.vstack([fitted.outputs(train.take([row])) for row in range(len(train))])
    assert np.allclose(alone, outputs, atol=1e-6), f"{name}: other rows change a row's outputs."
    strange = ("", "\x00", "日本語", "word " * 1000)
    odd = Examples(strange, words=tuple((text,) for text in strange) if task.per_word else None)
    assert np.isfinite(fitted.outputs(odd)).all(), f"{name}: a strange text has no finite output."
    with tempfile.TemporaryDirectory(prefix="totune-") as folder:
        fitted.save(Path(folder))
        again = baseline.load(Path(folder), task, given).outputs(train)
    assert np.array_equal(again, outputs), f"{name}: saved and loaded, it gives other outputs."


def _check_options(member: Any, registry: "Registry[Any]") -> None:
    kind = type(member)
    name = getattr(kind, "name", "")
    assert name, f"{kind.__name__} has no name: decorate it with `register(NAME)`."
    assert registry.get(name) is kind, f"{name!r} is another {registry.noun}."
    frozen = dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert frozen, f"{name}: its options are not the fields of a frozen dataclass."
    for field in dataclasses.fields(kind):
        assert field.default is not dataclasses.MISSING, f"{name}: {field.name} has no default."
    made = registry.create(name, options_of(member))
    assert made == member, f"{name}: made again from its options it is another."


def _rows(wanted: InputKind, count: int) -> Examples:
    """Random words; the label, or the tag of each word, follows from the words."""
    random = np.random.default_rng(0)
    lengths = [_LENGTHS[row % len(_LENGTHS)] for row in range(count)]
    words = [tuple(WORDS[at] for at in random.integers(0, 50, length)) for length in lengths]
    texts = tuple(map(" ".join, words))
    if wanted == "words":
        tags = tuple(tuple("OAB"[len(word) % 3] for word in row) for row in words)
        return Examples(texts, tags, words=tuple(words), rows=tuple(range(count)))
    pairs = texts[::-1] if wanted in ("pair", "pooled-pair") else None
    return Examples(texts, tuple("abc"[row % 3] for row in range(count)), pairs)


def _model(head: Head, task: Task, loaded: Loaded) -> Model:
    torch.manual_seed(0)
    pooled = wants_of(head, task).startswith("pooled")
    readout = Readout(pooling="mean" if pooled else "none")
    model = Model(copy.deepcopy(loaded.encoder), readout, head, task)
    with torch.no_grad():
        for parameter in model.head.parameters():  # spread, so that a fault shows
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def _weights(model: Model) -> dict[str, torch.Tensor]:
    return {name: one.detach().clone() for name, one in model.unique_parameters().items()}
