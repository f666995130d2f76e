"""Whole pretrainings of the smallest size: what they leave, going on, and faults on the way."""

import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.recorder import Recorder
from tests.tiny_data import save_encoder
from tests.unit.pretraining.conftest import write_corpus

from totune.encoders.loading import load_encoder
from totune.errors import ConfigError, DataError, ModelError, RunError
from totune.io import read_checked_json
from totune.pretraining.bert import pretrain_bert
from totune.pretraining.curriculum import TrainingBudget
from totune.pretraining.elmo import pretrain_elmo
from totune.pretraining.run import Pretrained, PretrainingRun
from totune.pretraining.settings import BERT_PRESETS, ELMO_PRESETS, PretrainingSettings
from totune.pretraining.stepper import Stepper, StepPosition

KINDS = {"bert": pretrain_bert, "elmo": pretrain_elmo}
SHORT = {"max_steps": 12, "eval_steps": 5, "batch_size": 8, "precision": "fp32"}
TIMES = {"seconds", "tokens_per_second", "matrix_share"}


def pretrain(kind: str, text: Path, out: Path, options: Any = None, **settings: Any) -> Pretrained:
    chosen = PretrainingSettings(**{**SHORT, **settings})
    given: Any = {"preset": "tiny", "settings": chosen, **(options or {})}
    return KINDS[kind]([text], out, **given)


def log_of(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{name: line[name] for name in line if name not in TIMES} for line in lines]


@pytest.fixture(scope="module", params=list(KINDS))
def finished(
    request: Any, corpus_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Pretrained:
    return pretrain(request.param, corpus_file, tmp_path_factory.mktemp("whole") / request.param)


def test_what_is_written_loads_as_an_encoder(finished: Pretrained) -> None:
    loaded = load_encoder(str(finished.folder))
    sizes = finished.facts["parameters"]
    assert sum(p.numel() for p in loaded.encoder.parameters()) == sizes["encoder"]
    assert sizes["trained"] > sizes["encoder"]
    names = {path.name for path in finished.folder.iterdir()}
    assert {"config.json", "model.safetensors", "README.md", "log.jsonl"} <= names
    models = {name for name in names if name.startswith("model.")}
    assert models == {"model.safetensors"}
    assert not [name for name in names if name.endswith((".tmp", ".pt"))]
    saved = read_checked_json(finished.folder / "pretraining.json")
    assert saved == json.loads(json.dumps(dict(finished.facts)))
    card = (finished.folder / "README.md").read_text()
    assert f"{saved['words']:,} words" in card
    assert f"{saved['validation']['perplexity']:.4g}" in card


def test_the_log_tells_losses_and_evaluations(finished: Pretrained) -> None:
    lines = [json.loads(line) for line in (finished.folder / "log.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines if "loss" in line]
    evaluated = [line for line in lines if "held_out" in line]
    assert steps == [10]
    assert [line["step"] for line in evaluated] == [5, 10, 12]
    assert evaluated[-1]["held_out"] == "all"
    assert evaluated[-1]["perplexity"] == finished.validation["perplexity"]
    losses = next(line for line in lines if "loss" in line)
    assert losses["tokens_per_second"] > 0
    assert 0 < losses["matrix_share"] < 1
    assert finished.facts["operations"] > 0


def test_once_finished_nothing_is_done_again(
    finished: Pretrained, corpus_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stepper, "__init__", None)
    kind = finished.facts["kind"]
    assert pretrain(kind, corpus_file, finished.folder).facts["steps"] == 12
    with pytest.raises(ConfigError, match="holds another pretraining"):
        pretrain(kind, corpus_file, finished.folder, seed=1)


@contextmanager
def stopped_at(number: int) -> Iterator[None]:
    """A person interrupts before this step."""
    step = Stepper.step

    def stopping(self: Stepper, at: StepPosition, factor: float) -> Any:
        if at.step == number:
            raise KeyboardInterrupt
        return step(self, at, factor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stepper, "step", stopping)
        yield


def test_what_was_interrupted_goes_on_to_the_same_bits(
    finished: Pretrained, corpus_file: Path, tmp_path: Path
) -> None:
    kind, out = finished.facts["kind"], tmp_path / "out"
    with stopped_at(8), pytest.raises(KeyboardInterrupt):
        pretrain(kind, corpus_file, out)
    with pytest.raises(ModelError):
        load_encoder(str(out))
    torch.manual_seed(99)
    pretrain(kind, corpus_file, out)
    whole = finished.folder
    for name in ("model.safetensors", "softmax.safetensors"):
        if (whole / name).exists():
            assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert log_of(out) == log_of(whole)
    assert not (out / "checkpoint.pt").exists()


def test_an_unreadable_checkpoint_is_reported(
    finished: Pretrained, corpus_file: Path, tmp_path: Path
) -> None:
    kind, out = finished.facts["kind"], tmp_path / "out"
    with stopped_at(8), pytest.raises(KeyboardInterrupt):
        pretrain(kind, corpus_file, out)
    checkpoint = out / "checkpoint.pt"
    state = torch.load(checkpoint, weights_only=True)
    checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    progress = Recorder()
    pretrain(kind, corpus_file, out, {"progress": progress})
    assert progress.warned == [
        f"The checkpoint {checkpoint} cannot be read, so training starts again from step 0."
    ]
    model = "model.safetensors"
    assert (out / model).read_bytes() == (finished.folder / model).read_bytes()
    other = tmp_path / "other"
    with stopped_at(8), pytest.raises(KeyboardInterrupt):
        pretrain(kind, corpus_file, other)
    torch.save({**state, "weights": {}}, other / "checkpoint.pt")
    with pytest.raises(RunError, match=r"by another version of totune\. .* or remove"):
        pretrain(kind, corpus_file, other)
    assert (other / "checkpoint.pt").exists()


def test_short_rows_come_first(corpus_file: Path, tmp_path: Path) -> None:
    """Four short rows for each whole one, then whole rows, also where it is interrupted there."""
    settings = {"short_length": 16, "short_ratio": 0.75}
    whole, again = tmp_path / "whole", tmp_path / "again"
    found = pretrain("bert", corpus_file, whole, **settings)
    lines = [line for line in log_of(whole) if "held_out" in line]
    assert [line["step"] for line in lines] == [5, 10, 12]
    lengths = [row["row_length"] for row in found.facts["evaluations"]]
    assert lengths == [16, 64]  # it turns after 9 of 12 steps
    assert load_encoder(str(whole)).encoder.max_length == 64
    assert "rows of up to 16 tokens; from step 9 on 8 rows" in (whole / "README.md").read_text()
    with stopped_at(11), pytest.raises(KeyboardInterrupt):
        pretrain("bert", corpus_file, again, **settings)
    pretrain("bert", corpus_file, again, **settings)
    assert log_of(again) == log_of(whole)
    model = "model.safetensors"
    assert (again / model).read_bytes() == (whole / model).read_bytes()
    plain = pretrain("bert", corpus_file, tmp_path / "plain")
    assert found.facts["steps"] == plain.facts["steps"]
    assert found.facts["words"] != plain.facts["words"]


def test_places_never_seen_begin_as_copies(corpus_file: Path, tmp_path: Path) -> None:
    """The one step on whole rows, at a rate near 0, leaves what was copied."""
    settings = {"short_length": 16, "short_ratio": 0.9, "weight_decay": 0.0, "max_steps": 10}
    pretrain("bert", corpus_file, tmp_path / "out", **settings)
    encoder: Any = load_encoder(str(tmp_path / "out")).encoder
    places = encoder.model.embeddings.position_embeddings.weight.detach().split(16)
    assert len(places) == 4
    for copied in places[1:]:
        assert (copied - places[0]).abs().max() < 1e-3
    before = save_encoder(tmp_path / "encoder")
    kept = pretrain(
        "bert",
        corpus_file,
        tmp_path / "more",
        {"model": str(before)},
        short_length=16,
        max_length=24,
    )
    encoder = load_encoder(str(kept.folder)).encoder
    first, second = encoder.model.embeddings.position_embeddings.weight.detach()[:24].split(16)
    assert (first[:8] - second).abs().max() > 1e-2


def test_words_are_counted_over_both_parts(corpus_file: Path, tmp_path: Path) -> None:
    wanted = {"max_steps": None, "max_words": 5_000, "short_length": 16}
    found = pretrain("bert", corpus_file, tmp_path / "out", **wanted)
    assert found.facts["words"] == pytest.approx(5_000, rel=0.1)


def test_short_rows_are_shorter_and_of_word_pieces(corpus_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="short_length=64 must be below `max_length=32`"):
        pretrain("bert", corpus_file, tmp_path, short_length=64, max_length=32)
    with pytest.raises(ConfigError, match="`short_length` is for bert"):
        pretrain("elmo", corpus_file, tmp_path, short_length=16)


def test_a_step_in_parts_is_the_same_step(
    finished: Pretrained, corpus_file: Path, tmp_path: Path
) -> None:
    parts = pretrain(finished.facts["kind"], corpus_file, tmp_path, gradient_accumulation_steps=3)
    wanted, found = finished.validation["perplexity"], parts.validation["perplexity"]
    assert found == pytest.approx(wanted, rel=1e-3)


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may grow over `size` bytes: the system refuses the rest, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_last_checkpoint(
    finished: Pretrained, corpus_file: Path, tmp_path: Path
) -> None:
    kind, out = finished.facts["kind"], tmp_path / "out"
    with stopped_at(6), pytest.raises(KeyboardInterrupt):
        pretrain(kind, corpus_file, out)
    good = (out / "checkpoint.pt").read_bytes()
    with room_for(len(good) // 2), pytest.raises(RunError, match="that of step 5 is whole"):
        pretrain(kind, corpus_file, out)
    assert (out / "checkpoint.pt").read_bytes() == good
    assert not list(out.glob("*.tmp"))
    pretrain(kind, corpus_file, out)
    model = "model.safetensors"
    assert (out / model).read_bytes() == (finished.folder / model).read_bytes()


def test_a_full_disk_at_the_end_leaves_the_checkpoint(
    finished: Pretrained, corpus_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, out, model = finished.facts["kind"], tmp_path / "out", "model.safetensors"
    size = (finished.folder / model).stat().st_size
    with monkeypatch.context() as patch:
        write = PretrainingRun._save
        full = lambda self, *given: _in_little_room(size // 2, write, self, *given)  # noqa: E731
        patch.setattr(PretrainingRun, "_save", full)
        with pytest.raises(RunError, match="model cannot be written"):
            pretrain(kind, corpus_file, out)
    assert {path.name for path in out.iterdir()} == {
        "checkpoint.pt",
        "log.jsonl",
        "pretraining.json",
    }
    pretrain(kind, corpus_file, out)
    assert (out / model).read_bytes() == (finished.folder / model).read_bytes()


def _in_little_room(size: int, function: Callable[..., None], *given: Any) -> None:
    with room_for(size):
        function(*given)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_falls(kind: str, corpus_file: Path, tmp_path: Path) -> None:
    found = pretrain(kind, corpus_file, tmp_path, max_steps=60, eval_steps=10)
    curve = [row["perplexity"] for row in found.facts["evaluations"]]
    assert curve[-1] < 0.5 * curve[0]


@pytest.mark.parametrize("kind", KINDS)
def test_time_can_end_it(kind: str, corpus_file: Path, tmp_path: Path) -> None:
    found = pretrain(kind, corpus_file, tmp_path, max_steps=None, max_seconds=0.5, eval_steps=None)
    assert found.facts["steps"] > 0
    assert 0.5 <= found.facts["seconds"] < 20


def test_a_budget_ends_at_what_comes_first() -> None:
    budget = TrainingBudget(steps=10, seconds=100.0, warmup_ratio=0.2)
    assert budget.share(5, 20.0) == 0.5
    assert budget.share(5, 80.0) == 0.8
    assert budget.share(10, 0.0) == 1.0
    factors = [budget.rate_factor(step / 10) for step in range(10)]
    assert factors[:2] == pytest.approx([0.25, 0.75])
    assert factors[2] == max(factors)
    assert factors[2:] == sorted(factors[2:], reverse=True)
    assert factors[-1] > 0


def test_a_bert_learns_pairs_and_whole_words(corpus_file: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"next_sentence": True, "whole_word_mask": True, "cased": True}
    options["validation"] = write_corpus(tmp_path / "other.txt", 6, seed=3)
    found = pretrain("bert", corpus_file, tmp_path / "one", options)
    assert 0 <= found.validation["pairs_accuracy"] <= 1
    encoder = load_encoder(str(tmp_path / "one")).encoder
    assert encoder.pooler is not None
    tokenizer: Any = load_encoder(str(tmp_path / "one")).tokenizer
    assert tokenizer.tokenize("The") != tokenizer.tokenize("the")


def test_an_encoder_without_a_head_gets_a_new_one_and_keeps_its_pooler(
    corpus_file: Path, tmp_path: Path
) -> None:
    before = save_encoder(tmp_path / "encoder")
    progress = Recorder()
    options = {"model": str(before), "progress": progress}
    found = pretrain("bert", corpus_file, tmp_path / "out", options, max_length=24)
    assert [note for note in progress.said if "start with random weights" in note]
    pooler, kept = (
        torch.cat([p.flatten() for p in load_encoder(str(at)).encoder.pooler.parameters()])
        for at in (before, tmp_path / "out")
    )
    assert torch.equal(pooler, kept)
    old, new = (load_encoder(str(at)).encoder.fingerprint() for at in (before, tmp_path / "out"))
    assert old != new
    assert found.facts["continued_from"] == str(before)
    silent = Recorder()
    options = {"model": str(tmp_path / "out"), "progress": silent}
    pretrain("bert", corpus_file, tmp_path / "more", options, max_length=24, max_steps=6)
    assert not [note for note in silent.said if "random weights" in note]


@pytest.mark.parametrize("name", ["albert", "distilbert", "mpnet"])
def test_other_types_go_on(corpus_file: Path, tmp_path: Path, name: str) -> None:
    before = save_encoder(tmp_path / "encoder", name=name)
    options = {"model": str(before)}
    pretrain("bert", corpus_file, tmp_path / "out", options, max_length=24, max_steps=2)
    old, new = (load_encoder(str(at)).encoder for at in (before, tmp_path / "out"))
    assert (old.pooler is None) == (new.pooler is None)
    assert old.fingerprint() != new.fingerprint()


def test_an_elmo_goes_on_with_its_softmax(corpus_file: Path, tmp_path: Path) -> None:
    pretrain("elmo", corpus_file, tmp_path / "one", {"clip": 3.0})
    other = write_corpus(tmp_path / "other.txt", seed=9)
    progress = Recorder()
    options = {"model": str(tmp_path / "one"), "progress": progress}
    found = pretrain("elmo", other, tmp_path / "two", options)
    first, second = ((tmp_path / name / "softmax_words.txt").read_text() for name in ("one", "two"))
    assert first == second
    assert not [note for note in progress.said if "softmax" in note]
    config = json.loads((tmp_path / "two" / "config.json").read_text())
    assert config["options"]["lstm"]["cell_clip"] == 3.0
    assert found.validation["perplexity"] > 1


def test_without_clips_the_options_say_so(finished: Pretrained) -> None:
    if finished.facts["kind"] == "elmo":
        config = json.loads((finished.folder / "config.json").read_text())
        assert config["options"]["lstm"]["cell_clip"] is None
        assert config["options"]["lstm"]["proj_clip"] is None


@pytest.mark.parametrize("kind", KINDS)
def test_faults_of_a_person_are_reported(kind: str, corpus_file: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"vocab_size=5,000 is more than the text allows"):
        pretrain(kind, corpus_file, tmp_path / "a", vocab_size=5_000)
    assert pretrain(kind, corpus_file, tmp_path / "a", max_steps=1).facts["steps"] == 1
    with pytest.raises(DataError, match=r"fewer than the 5000 of one step"):
        pretrain(kind, corpus_file, tmp_path / "b", batch_size=5_000)
    with pytest.raises(ConfigError, match=r"learning_rate=-1.* must.*\n.*warmup_ratio=1.* must"):
        pretrain(kind, corpus_file, tmp_path / "c", learning_rate=-1, warmup_ratio=1)
    with pytest.raises(ConfigError, match=r"no preset 'tinny'.*tiny"):
        pretrain(kind, corpus_file, tmp_path / "d", {"preset": "tinny"})
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds notes.txt and is not a pretraining"):
        pretrain(kind, corpus_file, tmp_path / "e")
    with pytest.raises(RunError, match="smaller learning_rate"):
        pretrain(kind, corpus_file, tmp_path / "f", learning_rate=1e30)
    with pytest.raises(ConfigError, match="precision='half'"):
        pretrain(kind, corpus_file, tmp_path / "g", precision="half")
    with pytest.raises(DataError, match="No corpus is named"):
        KINDS[kind]([], tmp_path / "g")


def test_contradictions_are_reported(corpus_file: Path, tmp_path: Path) -> None:
    encoder = str(save_encoder(tmp_path / "encoder"))
    with pytest.raises(ConfigError, match="`vocab_size` cannot be combined with `model`"):
        pretrain("bert", corpus_file, tmp_path / "out", {"model": encoder}, vocab_size=60)
    with pytest.raises(ConfigError, match="`cased` cannot be combined with `tokenizer`"):
        pretrain("bert", corpus_file, tmp_path / "out", {"tokenizer": encoder, "cased": True})
    with pytest.raises(ModelError, match="is not an ELMo"):
        pretrain("elmo", corpus_file, tmp_path / "out", {"model": encoder})
    with pytest.raises(ConfigError, match="`clip` cannot be combined with `model`"):
        pretrain("elmo", corpus_file, tmp_path / "out", {"model": encoder, "clip": 3.0})


def test_a_given_tokenizer_is_used(corpus_file: Path, tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "encoder")
    pretrain("bert", corpus_file, tmp_path / "out", {"tokenizer": str(folder)})
    given, used = (
        load_encoder(str(at)).tokenizer.get_vocab()  # type: ignore[attr-defined]
        for at in (folder, tmp_path / "out")
    )
    assert given == used


def test_presets_state_their_size() -> None:
    from transformers import BertConfig, BertModel

    from totune.encoders.elmo.encoder import ElmoEncoder
    from totune.encoders.words import Vocabulary

    with torch.device("meta"):
        for size in ELMO_PRESETS.values():
            encoder = ElmoEncoder(size.architecture, Vocabulary())
            assert sum(p.numel() for p in encoder.parameters()) == size.parameters
        for preset in BERT_PRESETS.values():
            config = BertConfig(
                vocab_size=preset.settings.vocab_size,
                **preset.architecture,
                max_position_embeddings=preset.settings.max_length,
            )
            bert = BertModel(config, add_pooling_layer=False)
            assert sum(p.numel() for p in bert.parameters()) == preset.parameters
