"""Saved folders: transformers loads them where it has the class, totune loads them always."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.encoder_zoo import LAYERS, tiny_encoder
from tests.tiny_runs import (
    KINDS,
    MAX_LENGTH,
    TinyTask,
    classes,
    forget_hashes,
    tiny_examples,
    tiny_task,
    tiny_tokenizer,
)
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    pipeline,
)

import totune
from totune.baselines.base import BASELINES
from totune.encoders.layouts import LAYOUTS
from totune.encoders.mixing import Readout
from totune.errors import DataError, ModelError
from totune.export import embedder, load_model, save_baseline, save_model, who_loads
from totune.heads.base import HEADS, Head
from totune.heads.linear import Linear
from totune.machine import Precision
from totune.model import Model
from totune.sequence_classifier import HEAD_LAYOUTS, usual_head, usual_pooling
from totune.tasks.base import Task
from totune.training.devices import Devices
from totune.training.inputs import open_source, predict

ROWS = 6


def usual_model(kind: str, task: Task | None = None, precision: Precision = "fp32") -> Model:
    encoder = tiny_encoder(kind)
    return spread(
        Model(
            encoder,
            Readout("top", usual_pooling(encoder)),
            Linear(**usual_head(encoder)),
            task or classes(3),
            precision,
        )
    )


def spread(model: Model) -> Model:
    """In eval mode, with a head whose weights show a fault."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in [*model.head.parameters(), *model.mixing.parameters()]:
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def save(folder: Path, model: Model, tiny: TinyTask, pairs: bool = False) -> dict[str, Any]:
    """Saves and returns the description."""
    about = {"max_length": MAX_LENGTH, "pairs": pairs, "strategy": "fine-tuning"}
    save_model(folder, model, tiny_tokenizer(), tiny.task, about)
    return description(folder)


def description(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "totune.json").read_text())


def outputs_of(model: Model, tiny: TinyTask) -> np.ndarray:
    return predict(model, open_source(tiny.train, model, None, -1), Devices()).values


def logits_of(folder: Path, model: Model, tiny: TinyTask) -> np.ndarray:
    """What transformers alone makes of the folder and the same pieces."""
    twin, report = AutoModelForSequenceClassification.from_pretrained(
        folder, output_loading_info=True
    )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert not twin.training
    batch = tiny.train.pieces.batch(np.arange(len(tiny.train)))
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    if model.encoder._has_segments:
        inputs["token_type_ids"] = batch.token_type_ids
    with torch.no_grad():
        return twin(**inputs).logits.numpy()


@pytest.mark.parametrize("kind", sorted(HEAD_LAYOUTS))
def test_transformers_loads_the_usual_model(kind: str, tmp_path: Path) -> None:
    model, tiny = usual_model(kind), TinyTask.of("classification", ROWS)
    about = save(tmp_path, model, tiny)
    assert about["transformers_class"] == "AutoModelForSequenceClassification"
    assert about["transformers_note"] == ""
    expected = outputs_of(model, tiny)
    np.testing.assert_allclose(logits_of(tmp_path, model, tiny), expected, atol=1e-5)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["id2label"] == {"0": "a", "1": "b", "2": "c"}
    assert config["label2id"] == {"a": 0, "b": 1, "c": 2}
    assert config["problem_type"] == "single_label_classification"
    assert AutoTokenizer.from_pretrained(tmp_path)("w3 w4")["input_ids"] == [2, 8, 9, 3]
    np.testing.assert_allclose(load_model(tmp_path).outputs(train()), expected, atol=1e-6)


def train(kind: str = "classification") -> Any:
    return tiny_examples(kind, ROWS)


def test_every_type_with_a_layout_is_a_type_of_encoder() -> None:
    assert set(HEAD_LAYOUTS) <= set(LAYOUTS)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_several_labels_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    tiny, rows = TinyTask.of("multi-label", ROWS), train("multi-label")
    model = usual_model(kind, tiny.task)
    about = save(tmp_path, model, tiny)
    assert about["task"]["thresholds"] == []  # 0.5 for every label
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["problem_type"] == "multi_label_classification"
    assert config["id2label"] == {"0": "a", "1": "b", "2": "c"}
    loaded = totune.load(tmp_path)
    scores = loaded.predict_proba(rows.texts)
    assert loaded.predict(rows.texts) == [
        tuple(name for name, score in zip("abc", row, strict=True) if score >= 0.5)
        for row in scores
    ]
    assert "top_k=None" in who_loads(tmp_path)[0]
    classify = pipeline("text-classification", str(tmp_path), top_k=None)
    found = [{each["label"]: each["score"] for each in row} for row in classify(list(rows.texts))]
    theirs = [[row[name] for name in "abc"] for row in found]
    np.testing.assert_allclose(scores, theirs, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("task", KINDS)
def test_every_task_comes_back(kind: str, task: str, tmp_path: Path) -> None:
    tiny, rows = TinyTask.of(task, ROWS), train(task)
    model = usual_model(kind, tiny.task)
    save(tmp_path, model, tiny, pairs=task == "pairs")
    logits = expected = outputs_of(model, tiny)
    if task == "regression":  # transformers alone knows no scale, so its weights hold it
        logits = tiny.task.predictions(expected, rows.counts)[:, None]
    np.testing.assert_allclose(logits_of(tmp_path, model, tiny), logits, atol=1e-5)
    loaded = totune.load(tmp_path)
    assert loaded.task == tiny.task
    assert loaded.takes_pairs == (task == "pairs")
    found = loaded.predict(rows.texts, rows.pairs)
    wanted = tiny.task.decode(tiny.task.predictions(expected, rows.counts))
    assert found == (pytest.approx(wanted, rel=1e-4) if task == "regression" else wanted)
    scores = loaded.predict_proba(rows.texts, rows.pairs)
    assert (scores is None) == (task == "regression")
    if scores is not None:
        np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-5)
    predictions = tiny.task.predictions(expected, rows.counts)
    measured = tiny.task.evaluate(tiny.train.targets, predictions)
    assert loaded.evaluate(rows) == pytest.approx(measured, abs=1e-4)


@pytest.mark.parametrize("kind", HEAD_LAYOUTS)
def test_transformers_loads_the_usual_tagger(kind: str, tmp_path: Path) -> None:
    tiny, rows = TinyTask.of("tagging", ROWS), tiny_examples("tagging", ROWS)
    model = spread(Model(tiny_encoder(kind), Readout("top", "none"), Linear(), tiny.task))
    about = save(tmp_path, model, tiny)
    assert about["transformers_class"] == "AutoModelForTokenClassification"
    twin, report = AutoModelForTokenClassification.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert tuple(twin.config.id2label.values()) == tiny.task.labels
    assert rows.words is not None
    for words in rows.words[:3]:
        alone = dataclasses.replace(rows.take([0]), words=(words,), texts=(" ".join(words),))
        found = load_model(tmp_path).outputs(dataclasses.replace(alone, documents=None))
        inputs = tiny_tokenizer()(" ".join(words), return_tensors="pt")
        if not model.encoder._has_segments:
            inputs.pop("token_type_ids")
        with torch.no_grad():
            logits = twin(**inputs).logits[0].numpy()
        firsts = [1]
        for word in words[:-1]:
            firsts.append(firsts[-1] + (3 if "-" in word else 1))
        np.testing.assert_allclose(found, logits[firsts], atol=1e-5)
    assert len(load_model(tmp_path).predict(["w1 w2", "", ["w3"]])[1]) == 0


@pytest.mark.parametrize(
    ("readout", "head", "reason"),
    [
        (Readout("scalar-mix", "none"), Linear(), "it reads layers=scalar-mix"),
        (Readout("top", "none"), Linear(layers=2), "its head has 2 layers"),
        (Readout("top", "none"), HEADS.create("crf"), "its head is 'crf'"),
    ],
    ids=str,
)
def test_any_other_tagger_is_saved_with_the_reason(
    readout: Readout, head: Head, reason: str, tmp_path: Path
) -> None:
    tiny, rows = TinyTask.of("tagging", ROWS), tiny_examples("tagging", ROWS)
    model = spread(Model(tiny_encoder("bert"), readout, head, tiny.task))
    about = save(tmp_path, model, tiny)
    assert about["transformers_class"] == ""
    assert reason in about["transformers_note"]
    found = load_model(tmp_path).outputs(rows)
    np.testing.assert_allclose(found, outputs_of(model, tiny), atol=1e-6)


OTHERS = [
    ("bert", Readout("top", "mean"), Linear(), "pooling=mean"),
    ("bert", Readout("scalar-mix", "pooler"), Linear(), "reads layers=scalar-mix"),
    ("bert", Readout("top", "pooler"), Linear(layers=2), "2 layer"),
    ("bert", Readout("top", "last-four"), Linear(), "last-four"),
    ("roberta", Readout("top", "cls"), Linear(), "1 layer"),
    ("roberta", Readout("top", "pooler"), Linear(), "pooling=pooler"),
    ("electra", Readout("top", "cls"), Linear(layers=2), "tanh"),
    ("albert", Readout("scalar-mix", "max"), Linear(), "reads layers=scalar-mix"),
    ("modernbert", Readout("top", "cls"), Linear(), "no linear sentence head for modernbert"),
]


@pytest.mark.parametrize(("kind", "readout", "head", "reason"), OTHERS, ids=str)
def test_any_other_model_is_saved_with_the_reason(
    kind: str, readout: Readout, head: Linear, reason: str, tmp_path: Path
) -> None:
    tiny = TinyTask.of("classification", ROWS)
    model = spread(Model(tiny_encoder(kind), readout, head, classes(3)))
    about = save(tmp_path, model, tiny)
    assert about["transformers_class"] == ""
    assert reason in about["transformers_note"]
    expected = outputs_of(model, tiny)
    np.testing.assert_allclose(load_model(tmp_path).outputs(train()), expected, atol=1e-6)
    base, report = AutoModel.from_pretrained(tmp_path / "encoder", output_loading_info=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    own = model.encoder.model.state_dict()
    assert all(torch.equal(tensor, own[name]) for name, tensor in base.state_dict().items())


def test_a_checkpoint_without_pooler_is_read_at_the_first_token(tmp_path: Path) -> None:
    encoder, tiny = tiny_encoder("bert"), TinyTask.of("classification", ROWS)
    encoder.model.pooler = None
    assert usual_pooling(encoder) == "cls"
    model = spread(Model(encoder, Readout("top", "cls"), Linear(**usual_head(encoder)), classes(3)))
    assert save(tmp_path, model, tiny)["transformers_class"] == ""
    expected = outputs_of(model, tiny)
    np.testing.assert_allclose(load_model(tmp_path).outputs(train()), expected, atol=1e-6)


def test_a_checkpoint_in_half_precision_is_saved_as_it_was_trained(tmp_path: Path) -> None:
    model, tiny = usual_model("bert"), TinyTask.of("classification", ROWS)
    model.encoder.model.config.dtype = torch.float16  # as its configuration said
    save(tmp_path, model, tiny)
    saved = load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in saved.values()} == {torch.float32}
    expected = outputs_of(model, tiny)
    np.testing.assert_allclose(load_model(tmp_path).outputs(train()), expected, atol=1e-6)


def test_saving_leaves_the_model_alone(tmp_path: Path) -> None:
    model, tiny = usual_model("roberta"), TinyTask.of("classification", ROWS)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    labels = dict(model.encoder.model.config.id2label)
    fingerprint = model.encoder.fingerprint()
    save(tmp_path, model, tiny)
    save(tmp_path, model, tiny)  # over an older one
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
    assert model.encoder.model.config.id2label == labels
    assert model.encoder.fingerprint() == fingerprint


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_what_was_trained_in_float32_answers_in_float32(
    precision: Precision, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("totune.machine._has_fast_bf16", lambda _: True)
    model, tiny = usual_model("bert", precision=precision), TinyTask.of("classification", ROWS)
    save(tmp_path, model, tiny)
    found = load_model(tmp_path).outputs(train())
    np.testing.assert_allclose(found, outputs_of(model, tiny), atol=1e-6)


# Wrong input


@pytest.fixture
def saved_model(tmp_path: Path) -> Path:
    save(tmp_path, usual_model("bert"), TinyTask.of("classification", ROWS))
    return tmp_path


def test_the_wrong_kind_of_input_is_named(saved_model: Path) -> None:
    loaded = load_model(saved_model)
    with pytest.raises(DataError, match="trained on single texts"):
        loaded.predict(["w1"], ["w2"])
    with pytest.raises(DataError, match="no labels"):
        loaded.evaluate(tiny_examples(rows=3).__class__(("w1",)))


def test_no_text_gives_no_prediction(saved_model: Path) -> None:
    loaded = load_model(saved_model)
    assert loaded.predict([]) == []
    scores = loaded.predict_proba([])
    assert scores is not None
    assert scores.shape == (0, 3)


def test_one_text_gets_one_prediction(saved_model: Path) -> None:
    loaded = load_model(saved_model)
    assert loaded.predict("w1 w2") == loaded.predict(["w1 w2"])[0]
    (expected,) = loaded.predict_proba(["w1 w2"])  # type: ignore[misc]
    np.testing.assert_array_equal(loaded.predict_proba("w1 w2"), expected)
    with pytest.raises(DataError, match="Item 1 of the list is None"):
        loaded.predict(["w1", None])  # type: ignore[list-item]


def test_strange_texts_get_a_prediction(saved_model: Path) -> None:
    texts = ["", " ", "\x00", "日本語", "w1 " * 5000]
    assert set(load_model(saved_model).predict(texts)) <= {"a", "b", "c"}


def refused(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_model(folder)
    assert str(folder) in str(caught.value)
    return str(caught.value)


def test_another_folder_is_no_model(tmp_path: Path) -> None:
    assert "no model of totune" in refused(tmp_path)
    assert "no model of totune" in refused(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "name", ["totune.json", "config.json", "model.safetensors", "head.safetensors"]
)
def test_a_missing_or_damaged_file_is_named(saved_model: Path, name: str) -> None:
    file = saved_model / name
    whole = file.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b'{"a": 1}', b"\xff\xfe\x00"):
        file.write_bytes(content)
        refused(saved_model)
    file.unlink()
    refused(saved_model)


def test_a_folder_without_tokenizer_is_refused(saved_model: Path) -> None:
    (saved_model / "tokenizer.json").unlink()
    assert "tokenizer" in refused(saved_model)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "ensemble"}, "reads no 'ensemble'"),
        ({"kind": None}, "'kind' is missing"),
        ({"task": {"name": "clasification", "labels": ["a"]}}, "Did you mean 'classification'"),
        ({"task": {"name": "classification"}}, "labels"),
        ({"head": {"name": "linear", "options": {"layers": 7}}}, "layers=7"),
        ({"readout": {"layers": "top", "pooling": "median"}}, "pooling='median'"),
        ({"readout": {"depth": 3}}, "no option 'depth'"),
        ({"max_length": "long"}, "long"),
        ({"max_length": None}, "max_length"),
        ({"columns": 5}, "columns"),
        ({"columns": {"text": 3}}, "columns"),
        ({"columns": {"text": "a", "label": "b", "colour": 1}}, "no option 'colour'"),
        ({"framing": 5}, "framing"),
        ({"framing": {"colour": 1}}, "no option 'colour'"),
        ({"task": 5}, "task"),
        ({"files": 5}, "files"),
    ],
)
def test_a_description_edited_by_hand_is_refused(
    saved_model: Path, change: dict[str, Any], words: str
) -> None:
    forget_hashes(saved_model)
    about = {**description(saved_model), **change}
    kept = {name: value for name, value in about.items() if value is not None}
    (saved_model / "totune.json").write_text(json.dumps(kept))
    assert words in refused(saved_model)


def test_a_head_of_another_model_is_refused(saved_model: Path) -> None:
    weights = load_file(saved_model / "head.safetensors")
    forget_hashes(saved_model)
    save_file(
        {name: tensor[:1] for name, tensor in weights.items()}, saved_model / "head.safetensors"
    )
    assert "size mismatch" in refused(saved_model)


# Baselines


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in BASELINES.names()
        for kind in (*KINDS, "tagging")
        if ("classification" if kind == "pairs" else kind) in BASELINES.get(name).tasks
    ],
)
def test_a_baseline_comes_back(name: str, kind: str, tmp_path: Path) -> None:
    encoder = tmp_path / "encoder"
    tiny_encoder("bert").model.save_pretrained(encoder)
    tiny_tokenizer().save_pretrained(encoder)
    rows = tiny_examples(kind, 30)
    task, baseline = tiny_task(kind, rows), BASELINES.create(name)
    embed = embedder(str(encoder), MAX_LENGTH) if baseline.needs_encoder else None
    fitted = baseline.fit(rows, task.targets(rows.labels or ()), task, 0, embed)
    about = {"max_length": MAX_LENGTH, "pairs": kind == "pairs", "model": str(encoder)}
    save_baseline(tmp_path / "saved", baseline, fitted, task, about)
    loaded = totune.load(tmp_path / "saved")
    np.testing.assert_allclose(loaded.outputs(rows), fitted.outputs(rows), atol=1e-6)
    assert loaded.task == task
    found = loaded.predict(rows.words or rows.texts, rows.pairs)
    wanted = task.decode(task.predictions(fitted.outputs(rows), rows.counts))
    assert found == (wanted if rows.words else pytest.approx(wanted))
    (tmp_path / "saved" / "baseline" / "baseline.safetensors").write_bytes(b"cut")
    with pytest.raises(ModelError, match=r"baseline.safetensors is damaged or was changed"):
        load_model(tmp_path / "saved")
    forget_hashes(tmp_path / "saved")
    with pytest.raises(ModelError, match="no readable baseline"):
        load_model(tmp_path / "saved")


@pytest.mark.parametrize(("setting", "atol"), [("fp32", 1e-5), ("bf16", 5e-2)])
def test_sentence_vectors_are_means_of_the_top_layer(
    tmp_path: Path, setting: str, atol: float
) -> None:
    encoder, tiny = tiny_encoder("bert"), TinyTask.of("classification", ROWS)
    encoder.model.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    vectors = embedder(str(tmp_path), MAX_LENGTH, setting)(train())
    batch = tiny.train.pieces.batch(np.arange(ROWS))
    with torch.no_grad():
        top = encoder.encode(batch)[LAYERS]
    mask = batch.attention_mask.unsqueeze(-1)
    expected = (top * mask).sum(dim=1) / mask.sum(dim=1)
    np.testing.assert_allclose(vectors, expected.numpy(), atol=atol)
    assert vectors.dtype == np.float32
