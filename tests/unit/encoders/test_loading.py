"""Loading: what is right loads exactly, what is wrong gets one clear message."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.encoder_zoo import VOCABULARY, WIDTH, batch_of, tiny_encoder
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from totune.encoders.loading import Loaded, load_encoder, plan_encoder
from totune.errors import ModelError


def tiny_tokenizer(**options: object) -> PreTrainedTokenizerFast:
    words = ["[UNK]", "[PAD]", *(f"w{number}" for number in range(VOCABULARY - 2))]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", **{"pad_token": "[PAD]", **options}
    )


def saved(folder: Path, name: str = "bert", **tokenizer_options: object) -> Path:
    tiny_encoder(name).model.save_pretrained(folder)
    tiny_tokenizer(**tokenizer_options).save_pretrained(folder)
    return folder


@pytest.fixture
def saved_encoder(tmp_path: Path) -> Path:
    return saved(tmp_path)


def change_config(folder: Path, **changes: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def change_weights(folder: Path, drop: str = "\0", half: bool = False) -> None:
    file = folder / "model.safetensors"
    weights = {
        name: tensor.half() if half else tensor
        for name, tensor in load_file(file).items()
        if drop not in name
    }
    file.unlink()
    save_file(weights, file, metadata={"format": "pt"})


def message(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_encoder(str(folder))
    text = str(caught.value)
    assert "\n" not in text
    assert str(folder) in text or "type" in text
    return text


def same_output(one: Loaded, other: Loaded) -> bool:
    batch = batch_of([7, 4])
    with torch.no_grad():
        return torch.equal(one.encoder.encode(batch).top, other.encoder.encode(batch).top)


def test_a_folder_loads_as_saved(saved_encoder: Path) -> None:
    loaded = load_encoder(str(saved_encoder))
    assert loaded.encoder.fingerprint() == tiny_encoder("bert").fingerprint()
    assert (loaded.reference, loaded.name) == (str(saved_encoder), saved_encoder.name)
    assert not any(module.training for module in loaded.encoder.modules())
    assert loaded.tokenizer("w3 w4")["input_ids"] == [5, 6]


@pytest.mark.parametrize(("limit", "expected"), [(16, 16), (10**30, 40)])
def test_the_length_limit_is_the_smaller_one(tmp_path: Path, limit: int, expected: int) -> None:
    saved(tmp_path, model_max_length=limit)
    assert load_encoder(str(tmp_path)).encoder.max_length == expected


def test_half_precision_weights_are_loaded_as_float32(saved_encoder: Path) -> None:
    change_weights(saved_encoder, half=True)
    change_config(saved_encoder, dtype="float16")
    loaded = load_encoder(str(saved_encoder))
    assert {parameter.dtype for parameter in loaded.encoder.parameters()} == {torch.float32}


def test_pickled_weights_load_but_pickled_code_does_not_run(saved_encoder: Path) -> None:
    from_safetensors = load_encoder(str(saved_encoder))
    weights = load_file(saved_encoder / "model.safetensors")
    (saved_encoder / "model.safetensors").unlink()
    torch.save(weights, saved_encoder / "pytorch_model.bin")
    assert same_output(load_encoder(str(saved_encoder)), from_safetensors)

    ran = saved_encoder / "ran"
    torch.save({"weight": _Evil(ran)}, saved_encoder / "pytorch_model.bin")
    assert "could run code" in message(saved_encoder)
    assert not ran.exists()


class _Evil:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.file,))


def test_a_pooler_that_the_checkpoint_lacks_is_absent(tmp_path: Path) -> None:
    saved(tmp_path, "roberta")
    assert load_encoder(str(tmp_path)).encoder.pooler is not None
    change_weights(tmp_path, drop="pooler")
    encoder = load_encoder(str(tmp_path)).encoder
    assert encoder.pooler is None
    assert not any("pooler" in name for name, _ in encoder.named_parameters())
    with torch.no_grad():
        assert encoder.encode(batch_of([5])).top.shape == (1, 5, WIDTH)


def test_albert_without_pooler_still_runs(tmp_path: Path) -> None:
    saved(tmp_path, "albert")
    change_weights(tmp_path, drop="pooler")
    encoder = load_encoder(str(tmp_path)).encoder
    assert encoder.pooler is None
    with torch.no_grad():
        output = encoder.model(input_ids=batch_of([5]).input_ids)
    assert output.pooler_output is None


def test_loading_is_silent_and_leaves_the_settings(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    saved(tmp_path, "roberta")
    change_weights(tmp_path, drop="pooler")
    capfd.readouterr()
    before = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    load_encoder(str(tmp_path))
    after = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    assert capfd.readouterr() == ("", "")
    assert before == after


def test_random_weights_and_plans_need_no_weights(saved_encoder: Path) -> None:
    (saved_encoder / "model.safetensors").unlink()
    assert "no weights" in message(saved_encoder)
    torch.manual_seed(0)
    random = load_encoder(str(saved_encoder), random_weights=True)
    assert random.encoder.fingerprint() != tiny_encoder("bert").fingerprint()
    (saved_encoder / "tokenizer.json").unlink()
    planned, source = plan_encoder(str(saved_encoder))
    assert planned.device.type == "meta"
    assert source.name == saved_encoder.name
    sizes = [sum(p.numel() for p in encoder.parameters()) for encoder in (planned, random.encoder)]
    assert sizes[0] == sizes[1]


def test_sdpa_is_taken_where_a_type_has_it(tmp_path: Path) -> None:
    for name, expected in (("bert", "sdpa"), ("mpnet", "eager")):
        encoder = load_encoder(str(saved(tmp_path / name, name))).encoder
        assert encoder.model.config._attn_implementation == expected


def test_attention_implementations_agree(saved_encoder: Path) -> None:
    batch = batch_of([7, 4])
    with torch.no_grad():
        eager, sdpa = (
            load_encoder(str(saved_encoder), attn_implementation=name).encoder.encode(batch).top
            for name in ("eager", "sdpa")
        )
    torch.testing.assert_close(eager, sdpa, atol=1e-5, rtol=0)


def test_an_empty_folder(tmp_path: Path) -> None:
    assert "no config.json" in message(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_a_config_that_is_no_json_object(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    assert "not a JSON object" in message(tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": None}, "does not say which model_type"),
        ({"model_type": "bart"}, "Known: albert, bert"),
        ({"model_type": "distillbert"}, "Did you mean 'distilbert'?"),
        ({"model_type": "own", "auto_map": {"AutoModel": "own.Own"}}, "its own code"),
        ({"hidden_size": "wide"}, "not a valid configuration"),
        ({"vocab_size": 90}, "1 weights"),
        ({"num_hidden_layers": 5}, "lack 16 of the encoder's tensors"),
        ({"vocab_size": 20}, "has 60 pieces, the encoder only 20 embeddings"),
    ],
)
def test_a_config_that_does_not_fit(
    saved_encoder: Path, changes: dict[str, object], words: str
) -> None:
    change_config(saved_encoder, **changes)
    assert words in message(saved_encoder)


def test_code_beside_a_supported_type_is_not_run(saved_encoder: Path) -> None:
    (saved_encoder / "own.py").write_text("raise SystemExit('ran')")
    change_config(saved_encoder, auto_map={"AutoModel": "own.Own", "AutoConfig": "own.OwnConfig"})
    assert load_encoder(str(saved_encoder)).encoder.kind == "bert"


def test_weights_that_are_no_numbers(saved_encoder: Path) -> None:
    file = saved_encoder / "model.safetensors"
    weights = load_file(file)
    weights["embeddings.LayerNorm.bias"][3] = torch.inf
    save_file(weights, file, metadata={"format": "pt"})
    assert "not finite (in model.embeddings.LayerNorm.bias)" in message(saved_encoder)


def test_memory_that_runs_out_is_no_damage(
    saved_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("transformers.AutoModel.from_pretrained", full)
    with pytest.raises(MemoryError, match="while the weights in"):
        load_encoder(str(saved_encoder))


@pytest.mark.parametrize("size", [0, 5, 1000, 30_000])
def test_weights_cut_short(saved_encoder: Path, size: int) -> None:
    file = saved_encoder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:size])
    assert "cut short" in message(saved_encoder)


@pytest.mark.parametrize("junk", [b"", b"junk", b"\x80\x02junk"])
def test_damaged_pickled_weights(saved_encoder: Path, junk: bytes) -> None:
    (saved_encoder / "model.safetensors").unlink()
    (saved_encoder / "pytorch_model.bin").write_bytes(junk)
    assert "cannot be read" in message(saved_encoder) or "damaged" in message(saved_encoder)


def test_a_missing_tokenizer(saved_encoder: Path) -> None:
    (saved_encoder / "tokenizer.json").unlink()
    assert "has no tokenizer" in message(saved_encoder)


def test_a_damaged_tokenizer(saved_encoder: Path) -> None:
    (saved_encoder / "tokenizer.json").write_text('{"model":')
    assert "cannot be read" in message(saved_encoder)


def test_a_tokenizer_without_padding(tmp_path: Path) -> None:
    saved(tmp_path, pad_token=None)
    assert "no padding token" in message(tmp_path)


def test_a_slow_tokenizer(saved_encoder: Path) -> None:
    (saved_encoder / "tokenizer.json").unlink()
    (saved_encoder / "vocab.txt").write_text("\n".join(f"w{number}" for number in range(20)))
    settings = {"tokenizer_class": "BertJapaneseTokenizer", "word_tokenizer_type": "basic"}
    (saved_encoder / "tokenizer_config.json").write_text(json.dumps(settings))
    assert "slow Python only" in message(saved_encoder)


def test_a_classifier_checkpoint_gives_its_encoder(tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    saved(tmp_path)
    torch.manual_seed(1)
    config = BertConfig.from_pretrained(tmp_path)
    classifier = AutoModelForSequenceClassification.from_config(config)
    classifier.save_pretrained(tmp_path)
    encoder = load_encoder(str(tmp_path)).encoder
    kept = encoder.model.state_dict()
    for name, tensor in classifier.bert.state_dict().items():
        assert torch.equal(kept[name], tensor)


@pytest.mark.shared
def test_gte_small_is_loaded_in_float32(shared: Path) -> None:
    loaded = load_encoder(str(shared / "models" / "gte-small"))
    assert (loaded.encoder.depth, loaded.encoder.width, loaded.encoder.max_length) == (12, 384, 512)
    assert next(loaded.encoder.parameters()).dtype == torch.float32


@pytest.mark.shared
def test_bert_base_is_planned_from_its_config(shared: Path) -> None:
    folder = shared / "models" / "bert-base-uncased-config"
    encoder, _ = plan_encoder(str(folder))
    assert sum(parameter.numel() for parameter in encoder.parameters()) == 109_482_240
    with pytest.raises(ModelError, match="has no tokenizer"):
        load_encoder(str(folder))
