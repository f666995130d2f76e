"""Folders of models with modules inserted: small, known by their encoder, and made whole."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from tests.encoder_zoo import UNLIKE, tiny_encoder
from tests.tiny_runs import (
    KINDS,
    MAX_LENGTH,
    TinyTask,
    forget_hashes,
    tiny_examples,
    tiny_tokenizer,
)
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

import totune
from totune.adapters.restore import insert_again
from totune.encoders.adapter_modules import AdapterModules
from totune.encoders.first_token import FIRST_TOKEN_TYPES
from totune.encoders.layouts import LAYOUTS, layout_of
from totune.encoders.loading import load_encoder
from totune.encoders.mixing import Readout
from totune.errors import ConfigError, ModelError, TotuneError
from totune.export import load_model, merge, save_model
from totune.heads.base import HEADS, Head
from totune.heads.linear import Linear
from totune.machine import Precision
from totune.model import Model
from totune.sequence_classifier import HEAD_LAYOUTS, usual_head, usual_pooling
from totune.training.devices import Devices
from totune.training.inputs import open_source, predict

ROWS = 6
BOTTLENECK = {"kind": "bottleneck", "bottleneck_size": 4, "activation": "gelu"}
APART: dict[str, dict[str, Any]] = {
    "adapters": {**BOTTLENECK, "sharing": "per-sublayer", "placement": "houlsby"},
    "every-2": {**BOTTLENECK, "sharing": "every-2", "placement": "houlsby"},
    "pfeiffer": {**BOTTLENECK, "sharing": "per-sublayer", "placement": "pfeiffer"},
    "prefix": {"peft_type": "PREFIX_TUNING", "num_virtual_tokens": 3},
}
LINEAR: dict[str, dict[str, Any]] = {
    "lora": {"peft_type": "LORA", "r": 2, "lora_alpha": 8},
    "ia3": {"peft_type": "IA3", "feedforward_modules": []},
}


def cell(kind: str, method: str, usual: str) -> Any:
    """Parameters (kind, method), slow where other cells run the same code."""
    often = kind in UNLIKE or method == usual
    return pytest.param(kind, method, marks=() if often else pytest.mark.slow)


EVERY_KIND = [
    cell(kind, method, usual="adapters")
    for kind in LAYOUTS
    for method in (*APART, *LINEAR)
    # which has no norm behind its feed-forward
    if (kind, method) != ("modernbert", "pfeiffer")
    # whose attention takes keys and values from outside
    and (method != "prefix" or kind in FIRST_TOKEN_TYPES)
]
ADAPTER_FILES = {
    *("adapter_config.json", "adapter_model.safetensors", "head.safetensors", "totune.json")
}
Place = Callable[..., Path]


@pytest.fixture(scope="module")
def encoder_folders(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Folders of the zoo's encoders."""
    root = tmp_path_factory.mktemp("encoders")

    def find(kind: str, seed: int = 0) -> Path:
        folder = root / f"{kind}-{seed}"
        if not folder.is_dir():
            tiny_encoder(kind, seed).model.save_pretrained(folder)
            tiny_tokenizer().save_pretrained(folder)
        return folder

    return find


@dataclass
class Trained:
    """A model as training would have left it, and the facts that are saved beside it."""

    model: Model
    tiny: TinyTask
    names: list[str]
    about: dict[str, Any]

    @property
    def insert(self) -> AdapterModules:
        assert self.model.encoder.inserted is not None
        return self.model.encoder.inserted

    def save(self, folder: Path) -> dict[str, Any]:
        """Saves and returns the description."""
        model, task = self.model, self.tiny.task
        save_model(folder, model, tiny_tokenizer(), task, self.about, self.names)
        return description(folder)

    def outputs(self) -> np.ndarray:
        return predict(
            self.model, open_source(self.tiny.train, self.model, None, -1), Devices()
        ).values


def trained(
    encoder: Path,
    method: str,
    *,
    kind: str = "classification",
    readout: Readout | None = None,
    head: Head | None = None,
    norms: bool = False,
    precision: Precision = "fp32",
) -> Trained:
    """Inserted modules, head and (if asked) layer norms differ from what they start as."""
    loaded, tiny = load_encoder(str(encoder)), TinyTask.of(kind, ROWS)
    fingerprint = loaded.encoder.fingerprint()
    readout = readout or Readout("top", usual_pooling(loaded.encoder))
    head = head or Linear(**usual_head(loaded.encoder))
    model = Model(loaded.encoder, readout, head, tiny.task, precision)
    insert_again(loaded.encoder, config_of(method, loaded.encoder.kind))
    names = _spread(model, norms)
    about = {
        "max_length": MAX_LENGTH,
        "pairs": kind == "pairs",
        "strategy": method,
        "model": str(encoder),
        "fingerprint": fingerprint,
        "precision": precision,
    }
    return Trained(model.eval(), tiny, names, about)


def config_of(method: str, kind: str) -> dict[str, Any]:
    if method in APART:
        return APART[method]
    return LINEAR[method] | {"target_modules": list(layout_of(kind).projections)}


def _spread(model: Model, norms: bool) -> list[str]:
    """Changes what trains and returns its names."""
    assert model.encoder.inserted is not None
    wanted = {id(parameter) for parameter in model.encoder.inserted.parameters()}
    for module in (model.head, model.mixing, *model.modules()):
        if (norms and "Norm" in type(module).__name__) or module in (model.head, model.mixing):
            wanted |= {id(parameter) for parameter in module.parameters()}
    chosen = {n: p for n, p in model.unique_parameters().items() if id(p) in wanted}
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in chosen.values():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return list(chosen)


def description(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / "totune.json").read_text())
    return facts


def rows_of(kind: str = "classification") -> Any:
    return tiny_examples(kind, ROWS)


def files_of(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# Saving and loading


@pytest.mark.parametrize(("kind", "method"), EVERY_KIND)
def test_every_method_comes_back_to_the_bit(
    kind: str, method: str, encoder_folders: Place, tmp_path: Path
) -> None:
    saved = trained(encoder_folders(kind), method, norms=True)
    about = saved.save(tmp_path)
    assert files_of(tmp_path) == ADAPTER_FILES
    assert about["kind"] == "adapter"
    np.testing.assert_array_equal(load_model(tmp_path).outputs(rows_of()), saved.outputs())
    inserted = load_file(tmp_path / "adapter_model.safetensors")
    stored = sum(tensor.numel() for tensor in inserted.values())
    assert stored == sum(parameter.numel() for parameter in saved.insert.parameters())


@pytest.mark.parametrize("kind", [*KINDS, "tagging"])
def test_every_task_comes_back(kind: str, encoder_folders: Place, tmp_path: Path) -> None:
    readout = Readout("top", "none") if kind == "tagging" else None
    head = Linear() if kind == "tagging" else None
    saved = trained(encoder_folders("bert"), "adapters", kind=kind, readout=readout, head=head)
    saved.save(tmp_path)
    loaded = totune.load(tmp_path)
    assert loaded.task == saved.tiny.task
    np.testing.assert_array_equal(loaded.outputs(rows_of(kind)), saved.outputs())


@pytest.mark.parametrize(
    ("readout", "head"),
    [
        (Readout("scalar-mix", "cls"), Linear()),
        (Readout("top", "last-four"), Linear(layers=2)),
        (Readout("top", "none"), HEADS.create("bcn")),
    ],
    ids=["scalar mix", "last four", "bcn"],
)
def test_any_readout_and_head_come_back(
    readout: Readout, head: Head, encoder_folders: Place, tmp_path: Path
) -> None:
    kind = "pairs" if head.name == "bcn" else "classification"
    saved = trained(encoder_folders("roberta"), "lora", kind=kind, readout=readout, head=head)
    saved.save(tmp_path)
    np.testing.assert_array_equal(load_model(tmp_path).outputs(rows_of(kind)), saved.outputs())


@pytest.mark.parametrize("norms", [False, True])
def test_of_the_encoder_only_what_was_trained_is_stored(
    norms: bool, encoder_folders: Place, tmp_path: Path
) -> None:
    saved = trained(encoder_folders("bert"), "pfeiffer", norms=norms)
    saved.save(tmp_path)
    stored = load_file(tmp_path / "head.safetensors")
    beside = {name for name in stored if not name.startswith(("head.", "mixing."))}
    assert bool(beside) == norms
    assert all("norm" in name.lower() for name in beside)
    parameters = saved.model.unique_parameters()
    assert all(torch.equal(stored[name], parameters[name]) for name in beside)
    inserted = {id(parameter) for parameter in saved.insert.parameters()}
    assert not any(id(parameters[name]) in inserted for name in beside)


def test_a_model_trained_in_bf16_answers_in_bf16(
    encoder_folders: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("totune.machine._has_fast_bf16", lambda _: True)
    saved = trained(encoder_folders("bert"), "lora", precision="bf16")
    saved.save(tmp_path)
    np.testing.assert_array_equal(load_model(tmp_path).outputs(rows_of()), saved.outputs())


def test_saving_over_another_kind_of_model_leaves_nothing_of_it(
    encoder_folders: Place, tmp_path: Path
) -> None:
    whole = trained(encoder_folders("bert"), "lora")
    whole.insert.merge()
    about = {name: fact for name, fact in whole.about.items() if name != "fingerprint"}
    save_model(tmp_path, whole.model, tiny_tokenizer(), whole.tiny.task, about)
    assert "model.safetensors" in files_of(tmp_path)
    saved = trained(encoder_folders("bert"), "adapters")
    saved.save(tmp_path)
    assert files_of(tmp_path) >= ADAPTER_FILES
    assert not files_of(tmp_path) & {"config.json", "model.safetensors"}
    save_model(tmp_path, whole.model, tiny_tokenizer(), whole.tiny.task, about)
    assert not files_of(tmp_path) & {"adapter_config.json", "adapter_model.safetensors"}


@pytest.mark.parametrize("kind", ["bert", "distilbert", "modernbert"])
@pytest.mark.parametrize("method", LINEAR)
@pytest.mark.filterwarnings("ignore::FutureWarning")  # PEFT's use of transformers
def test_peft_loads_the_folder(
    kind: str, method: str, encoder_folders: Place, tmp_path: Path
) -> None:
    saved = trained(encoder_folders(kind), method, readout=Readout("top", "mean"))
    saved.save(tmp_path)
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    assert "base_model_name_or_path" not in config  # or transformers would load it without head
    base = AutoModel.from_pretrained(encoder_folders(kind))
    model = PeftModel.from_pretrained(base, tmp_path).eval()
    batch = saved.tiny.train.pieces.batch(np.arange(ROWS))
    with torch.no_grad():
        found = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask)
        expected = saved.model.encoder.encode(batch).top
    torch.testing.assert_close(found.last_hidden_state, expected)


# The encoder


def test_another_place_of_the_same_encoder(encoder_folders: Place, tmp_path: Path) -> None:
    encoder = tmp_path / "encoder"
    shutil.copytree(encoder_folders("bert"), encoder)
    saved = trained(encoder, "adapters")
    saved.save(tmp_path / "model")
    encoder.rename(tmp_path / "moved")
    message = refused(tmp_path / "model")
    assert f"whose folder {encoder} is gone" in message
    assert "with `model`" in message
    found = totune.load(tmp_path / "model", model=str(tmp_path / "moved")).outputs(rows_of())
    np.testing.assert_array_equal(found, saved.outputs())
    with pytest.raises(ModelError, match="There is no folder"):
        load_model(tmp_path / "model", str(tmp_path / "nowhere"))


def test_another_encoder_is_refused(encoder_folders: Place, tmp_path: Path) -> None:
    saved = trained(encoder_folders("bert"), "lora")
    saved.save(tmp_path)
    other = encoder_folders("bert", seed=1)
    with pytest.raises(ModelError) as caught:
        load_model(tmp_path, str(other))
    message = str(caught.value)
    theirs = load_encoder(str(other)).encoder.fingerprint()
    for part in (
        str(encoder_folders("bert")),
        str(other),
        saved.about["fingerprint"][:8],
        theirs[:8],
    ):
        assert part in message
    assert "with `model`" in message
    assert "Traceback" not in message


def test_a_hub_encoder_that_cannot_be_had_names_the_remedy(
    encoder_folders: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(reference: str, **_: object) -> None:
        raise ModelError(f"The hub cannot be reached for {reference}.")

    trained(encoder_folders("bert"), "adapters").save(tmp_path)
    edit(tmp_path / "totune.json", model="some/encoder")
    monkeypatch.setattr("totune.export.adapters.load_encoder", unreachable)
    message = refused(tmp_path)
    assert "The hub cannot be reached for some/encoder." in message
    assert "with `model`" in message


def test_a_whole_model_takes_no_encoder(encoder_folders: Place, tmp_path: Path) -> None:
    trained(encoder_folders("bert"), "lora").save(tmp_path / "lora")
    merge(tmp_path / "lora", tmp_path / "whole")
    with pytest.raises(ModelError, match="Leave `model` out"):
        load_model(tmp_path / "whole", str(encoder_folders("bert")))


# Wrong files


def refused(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_model(folder)
    assert str(folder) in str(caught.value)
    return str(caught.value)


def edit(file: Path, **changes: Any) -> None:
    """Replaces entries of a JSON file of a model; None takes one out."""
    forget_hashes(file.parent)
    facts = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({n: fact for n, fact in facts.items() if fact is not None}))


@pytest.mark.parametrize("method", ["adapters", "lora"])
@pytest.mark.parametrize("name", sorted(ADAPTER_FILES))
def test_a_missing_or_damaged_file_is_named(
    name: str, method: str, encoder_folders: Place, tmp_path: Path
) -> None:
    trained(encoder_folders("bert"), method).save(tmp_path)
    file = tmp_path / name
    whole = file.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"[1]", b"\xff\xfe\x00"):
        file.write_bytes(content)
        assert name in refused(tmp_path)
    file.write_bytes(b'{"a": 1}')
    refused(tmp_path)
    file.unlink()
    assert name in refused(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fingerprint": None}, "'fingerprint' is missing"),
        ({"model": None}, "'model' is missing"),
        ({"head": {"name": "linear", "options": {"layers": 7}}}, "layers=7"),
        ({"max_length": "long"}, "long"),
    ],
)
def test_a_description_edited_by_hand_is_refused(
    change: dict[str, Any], words: str, encoder_folders: Place, tmp_path: Path
) -> None:
    trained(encoder_folders("bert"), "adapters").save(tmp_path)
    edit(tmp_path / "totune.json", **change)
    assert words in refused(tmp_path)


@pytest.mark.parametrize(
    ("method", "change", "words"),
    [
        ("adapters", {"kind": "prompt"}, "no method that totune knows"),
        ("adapters", {"bottleneck_size": 5}, "shape"),
        ("adapters", {"sharing": "every-0"}, "every-0"),
        ("lora", {"peft_type": "LURA"}, "LURA"),
        ("lora", {"r": 3}, "shape"),
    ],
)
def test_a_configuration_edited_by_hand_is_refused(
    method: str, change: dict[str, Any], words: str, encoder_folders: Place, tmp_path: Path
) -> None:
    trained(encoder_folders("bert"), method).save(tmp_path)
    edit(tmp_path / "adapter_config.json", **change)
    assert words in refused(tmp_path)


def test_weights_of_another_model_are_refused(encoder_folders: Place, tmp_path: Path) -> None:
    trained(encoder_folders("bert"), "adapters", norms=True).save(tmp_path)
    file = tmp_path / "head.safetensors"
    weights = load_file(file)
    name = next(name for name in weights if name.startswith("model."))
    forget_hashes(file.parent)
    save_file({**weights, name: torch.zeros(3)}, file)
    assert f"{name} in head.safetensors is no parameter" in refused(tmp_path)
    save_file({**weights, "other.weight": torch.zeros(3)}, file)
    assert "other.weight in head.safetensors is no parameter" in refused(tmp_path)


# Merging


@pytest.mark.parametrize(
    ("kind", "method"),
    [cell(kind, method, usual="lora") for kind in sorted(HEAD_LAYOUTS) for method in LINEAR],
)
def test_transformers_loads_a_merged_model(
    kind: str, method: str, encoder_folders: Place, tmp_path: Path
) -> None:
    saved = trained(encoder_folders(kind), method, norms=True)
    saved.save(tmp_path / "small")
    done = totune.merge(tmp_path / "small", tmp_path / "whole")
    assert done.merged
    assert done.note == "transformers reads it as AutoModelForSequenceClassification."
    expected = saved.outputs()
    found = load_model(tmp_path / "whole").outputs(rows_of())
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(logits_of(tmp_path / "whole", saved), expected, atol=1e-5)
    about, before = description(tmp_path / "whole"), description(tmp_path / "small")
    assert about["kind"] == "model"
    assert "fingerprint" not in about
    kept = set(before) - {"kind", "fingerprint", "files", "sha256"}
    assert {name: about[name] for name in kept} == {name: before[name] for name in kept}


def logits_of(folder: Path, saved: Trained) -> np.ndarray:
    """What transformers alone makes of the folder and the same pieces."""
    twin, report = AutoModelForSequenceClassification.from_pretrained(
        folder, output_loading_info=True
    )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    batch = saved.tiny.train.pieces.batch(np.arange(ROWS))
    with torch.no_grad():
        logits: np.ndarray = twin(batch.input_ids, batch.attention_mask).logits.numpy()
    return logits


def test_transformers_loads_a_merged_tagger(encoder_folders: Place, tmp_path: Path) -> None:
    readout = Readout("top", "none")
    saved = trained(encoder_folders("bert"), "lora", kind="tagging", readout=readout, head=Linear())
    saved.save(tmp_path / "small")
    done = merge(tmp_path / "small", tmp_path / "whole")
    assert done.note == "transformers reads it as AutoModelForTokenClassification."
    twin = AutoModelForTokenClassification.from_pretrained(tmp_path / "whole")
    assert tuple(twin.config.id2label.values()) == saved.tiny.task.labels
    found = load_model(tmp_path / "whole").outputs(rows_of("tagging"))
    np.testing.assert_allclose(found, saved.outputs(), atol=1e-5)


def test_a_head_that_transformers_lacks_is_merged_too(
    encoder_folders: Place, tmp_path: Path
) -> None:
    saved = trained(encoder_folders("modernbert"), "lora", readout=Readout("scalar-mix", "mean"))
    saved.save(tmp_path / "small")
    done = merge(tmp_path / "small", tmp_path / "whole")
    assert done.merged
    assert "only totune reads it: transformers has no linear sentence head" in done.note
    found = load_model(tmp_path / "whole").outputs(rows_of())
    np.testing.assert_allclose(found, saved.outputs(), atol=1e-5)


@pytest.mark.parametrize("method", APART)
def test_what_is_not_linear_takes_its_encoder_along(
    method: str, encoder_folders: Place, tmp_path: Path
) -> None:
    encoder = tmp_path / "encoder"
    shutil.copytree(encoder_folders("bert"), encoder)
    saved = trained(encoder, method, norms=True)
    saved.save(tmp_path / "small")
    done = merge(tmp_path / "small", tmp_path / "whole")
    assert not done.merged
    assert "cannot be merged" in done.note
    shutil.rmtree(encoder)
    shutil.rmtree(tmp_path / "small")
    assert files_of(tmp_path / "whole") == ADAPTER_FILES | {"encoder"}
    again = tmp_path / "elsewhere"
    (tmp_path / "whole").rename(again)
    np.testing.assert_array_equal(load_model(again).outputs(rows_of()), saved.outputs())
    assert not merge(again, tmp_path / "twice").merged
    shutil.rmtree(again)
    found = load_model(tmp_path / "twice").outputs(rows_of())
    np.testing.assert_array_equal(found, saved.outputs())


def test_merging_with_an_encoder_that_was_moved(encoder_folders: Place, tmp_path: Path) -> None:
    saved = trained(encoder_folders("bert"), "lora")
    saved.save(tmp_path / "small")
    edit(tmp_path / "small" / "totune.json", model=str(tmp_path / "gone"))
    with pytest.raises(ModelError, match="is gone"):
        merge(tmp_path / "small", tmp_path / "whole")
    assert not (tmp_path / "whole").exists()
    merge(tmp_path / "small", tmp_path / "whole", str(encoder_folders("bert")))
    found = load_model(tmp_path / "whole").outputs(rows_of())
    np.testing.assert_allclose(found, saved.outputs(), atol=1e-5)


def test_what_cannot_be_merged_is_told(encoder_folders: Place, tmp_path: Path) -> None:
    small, whole = tmp_path / "small", tmp_path / "whole"
    trained(encoder_folders("bert"), "lora").save(small)
    merge(small, whole)

    def told(folder: Path, out: Path, kind: type[TotuneError]) -> str:
        with pytest.raises(kind) as caught:
            merge(folder, out)
        return str(caught.value)

    assert "so nothing is written to it" in told(small, whole, ConfigError)
    assert "so nothing is written to it" in told(small, small, ConfigError)
    assert "is a file" in told(small, small / "totune.json", ConfigError)
    new = tmp_path / "new"
    assert "nothing to merge: it is a plain model" in told(whole, new, ModelError)
    assert "holds no model of totune" in told(tmp_path, new, ModelError)
    edit(whole / "totune.json", kind="baseline")
    assert "it is a baseline" in told(whole, new, ModelError)
    assert not new.exists()
