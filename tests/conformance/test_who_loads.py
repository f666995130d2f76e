"""What transformers loads gives totune's answers; whatever would not, it refuses."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conformance.test_adapter_folders import Place, encoder_folders, trained
from tests.conformance.test_export import save, spread
from tests.encoder_zoo import tiny_encoder
from tests.tiny_data import save_encoder, write_pairs, write_reviews, write_scores
from tests.tiny_runs import TinyTask, tiny_examples
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    pipeline,
)

import totune
from totune.encoders.mixing import Readout
from totune.export import load_model, merge, who_loads
from totune.heads.base import HEADS
from totune.model import Model, wants_of

__all__ = ["encoder_folders"]
TEXTS = ["w1 w2 w9", "w4", "w7 w5 w30 w31 w32"]
OLD = Path(__file__).with_name("models_of_0_1_0")
AUTO = (AutoModel, AutoModelForSequenceClassification, AutoModelForTokenClassification)


def refused_by_transformers(folder: Path) -> None:
    for auto in AUTO:
        with pytest.raises((OSError, ValueError, KeyError)):
            auto.from_pretrained(folder)
    with pytest.raises((OSError, ValueError, KeyError)):
        pipeline("text-classification", str(folder))


COLUMNS = {"pairs": {"text": "first", "pair": "second", "label": "label"}}
HEADS_OF = [  # every head on a task that it is made for
    (head, kind)
    for head in HEADS.names()
    for kind in ("classification", "pairs", "tagging")
    for wants in HEADS.get(head).wants
    if (wants == "words") == (kind == "tagging") and ("pair" in wants) == (kind == "pairs")
]
STRATEGIES = {  # name -> what transformers' class cannot hold, if anything
    "fine-tuning": "",
    "last-2": "",
    "bitfit": "",
    "frozen-embeddings": "",
    "feature-extraction": "layers=mean",
    "gradual-unfreezing": "",
    "stack-and-finetune": "",
    "adapters": "encoder",
    "lora": "encoder",
    "tf-idf": "baseline",
    "sentence-embedding": "baseline",
}


@pytest.fixture(scope="module")
def few_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    save_encoder(folder / "encoder")
    write_reviews(folder / "reviews.csv", rows=40)
    write_pairs(folder / "pairs.csv", rows=40)
    write_scores(folder / "scores.csv", rows=40)
    return folder


def train(data: Path, kind: str, strategy: str, out: Path) -> totune.export.Predictor:
    epochs = {"num_train_epochs": 1} if STRATEGIES[strategy] != "baseline" else {}
    if strategy == "stack-and-finetune":
        epochs |= {"stack_epochs": 1}
    return totune.train(
        data / f"{kind}.csv",
        strategy,
        out=out,
        model=str(data / "encoder"),
        precision="fp32",
        options=epochs,
        **COLUMNS.get(kind, {}),
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy(strategy: str, few_rows: Path, tmp_path: Path) -> None:
    model = train(few_rows, "reviews", strategy, tmp_path / "model")
    said = "\n".join(who_loads(tmp_path / "model"))
    if STRATEGIES[strategy]:
        refused_by_transformers(tmp_path / "model")
        assert said.startswith("Only totune loads it")
        assert STRATEGIES[strategy] in said
        return
    assert "transformers loads it too" in said
    assert f'pipeline("text-classification", "{tmp_path / "model"}", truncation=True' in said
    assert_same_answers(tmp_path / "model", model)


def assert_same_answers(folder: Path, model: totune.export.Predictor) -> None:
    found = pipeline("text-classification", str(folder), top_k=None)(TEXTS)
    scores = model.predict_proba(TEXTS)
    assert scores is not None
    for answers, row in zip(found, scores, strict=True):
        by_name = {answer["label"]: answer["score"] for answer in answers}
        wanted = dict(zip(model.task.labels, row, strict=True))
        assert by_name == pytest.approx(wanted, abs=1e-5)


def test_scores(few_rows: Path, tmp_path: Path) -> None:
    model = train(few_rows, "scores", "fine-tuning", tmp_path / "model")
    found = pipeline("text-classification", str(tmp_path / "model"))(TEXTS)
    assert [answer["label"] for answer in found] == ["score"] * 3
    assert [answer["score"] for answer in found] == pytest.approx(model.predict(TEXTS), abs=1e-5)


def test_pairs(few_rows: Path, tmp_path: Path) -> None:
    model = train(few_rows, "pairs", "fine-tuning", tmp_path / "model")
    assert "text_pair" in who_loads(tmp_path / "model")[0]
    asked = [{"text": text, "text_pair": "w3 w8"} for text in TEXTS]
    found = pipeline("text-classification", str(tmp_path / "model"))(asked)
    scores = model.predict_proba(TEXTS, ["w3 w8"] * 3)
    assert scores is not None
    assert [answer["label"] for answer in found] == model.predict(TEXTS, ["w3 w8"] * 3)
    assert [answer["score"] for answer in found] == pytest.approx(scores.max(axis=1), abs=1e-5)


def test_a_long_text_is_cut_as_who_loads_says(tmp_path: Path) -> None:
    tiny = TinyTask.of("classification", 6)
    model = spread(
        Model(tiny_encoder("bert"), Readout("top", "pooler"), HEADS.create("linear"), tiny.task)
    )
    save(tmp_path, model, tiny)
    (said,) = who_loads(tmp_path)
    code = said.removeprefix("transformers loads it too: ")
    text = " ".join(["w1 w2 w3"] * 11)
    (answer,) = eval(code, {"pipeline": pipeline})(text)
    scores = load_model(tmp_path).predict_proba([text])
    assert scores is not None
    assert answer["score"] == pytest.approx(scores.max(), abs=1e-5)


@pytest.mark.parametrize(("head", "kind"), HEADS_OF)
def test_every_head(head: str, kind: str, tmp_path: Path) -> None:
    tiny, member = TinyTask.of(kind, 6), HEADS.create(head)
    pooling = "pooler" if wants_of(member, tiny.task).startswith("pooled") else "none"
    model = Model(tiny_encoder("bert"), Readout("top", pooling), member, tiny.task).eval()
    save(tmp_path, model, tiny, pairs=kind == "pairs")
    if head == "linear":
        assert who_loads(tmp_path)[0].startswith("transformers loads it too")
        return
    refused_by_transformers(tmp_path)
    said = who_loads(tmp_path)
    assert f"its head is {head!r}" in said[0]
    encoder = eval(said[1].removeprefix("Its encoder alone: "), {"AutoModel": AutoModel})
    own = model.encoder.model.state_dict()
    assert all(torch.equal(tensor, own[name]) for name, tensor in encoder.state_dict().items())


@pytest.mark.parametrize("method", ["adapters", "prefix", "lora", "ia3"])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_inserted_modules_before_and_after_merging(
    method: str, encoder_folders: Place, tmp_path: Path
) -> None:
    trained(encoder_folders("bert"), method).save(tmp_path / "apart")
    refused_by_transformers(tmp_path / "apart")
    said = who_loads(tmp_path / "apart")
    assert "totune merge" in said[0]
    assert ("PEFT" in said[-1]) == (method != "adapters")
    done = merge(tmp_path / "apart", tmp_path / "whole")
    if done.merged:
        assert_same_answers(tmp_path / "whole", load_model(tmp_path / "whole"))
    else:
        refused_by_transformers(tmp_path / "whole")
        assert who_loads(tmp_path / "whole")[0].startswith("Only totune loads it")


# Folders of version 0.1.0, written by its code: encoders lay beside the description.


@pytest.mark.parametrize("name", ["whole", "classifier", "lora"])
def test_an_old_folder_still_loads(name: str) -> None:
    expected = json.loads((OLD / "outputs.json").read_text())
    model = load_model(OLD / name, str(OLD / "whole") if name == "lora" else None)
    found = model.outputs(tiny_examples("classification", 6))
    assert tiny_examples("classification", 6).texts == tuple(expected["texts"])
    np.testing.assert_allclose(found, expected["outputs"][name], atol=1e-6)


@pytest.mark.parametrize("name", ["whole", "classifier", "lora"])
def test_an_old_folder_is_replaced(name: str, encoder_folders: Place, tmp_path: Path) -> None:
    shutil.copytree(OLD / name, tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("mine")
    tiny = TinyTask.of("classification", 6)
    readout = Readout("scalar-mix", "cls")
    model = spread(Model(tiny_encoder("bert"), readout, HEADS.create("linear"), tiny.task))
    save(tmp_path / "model", model, tiny)
    names = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert names == ["encoder", "head.safetensors", "notes.txt", "totune.json"]
    refused_by_transformers(tmp_path / "model")
