"""Every command that writes leaves alone what is not of totune."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.recorder import Recorder
from tests.tiny_data import save_encoder, write_reviews
from tests.unit.runs.samples import info_of, record_of
from typer.testing import CliRunner

from totune.analyses.base import AnalysisResult
from totune.analyses.findings import Findings
from totune.api import compare
from totune.cli.app import app
from totune.errors import ConfigError, TotuneError
from totune.outputs import check_output_folder
from totune.runs.store import Store
from totune.study.study import Study


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: data, a text, a folder of an encoder, and somebody's folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOTUNE_CACHE", str(tmp_path / "cache"))
    write_reviews(Path("reviews.csv"), rows=60)
    Path("text.txt").write_text("w1 w2\n\nw3 w4\n" * 20)
    save_encoder(Path("encoder"))
    write(Path("theirs/best/novel.txt"), "chapter one")
    write(Path("theirs/report.html"), "<p>theirs</p>")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def refused(*arguments: object) -> str:
    """The error's message, after a command that has changed nothing."""
    before = contents(Path())
    ended = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(ended.exception, TotuneError), ended.output + repr(ended.exception)
    assert ended.exception.exit_code == 2
    assert contents(Path()) == before
    return str(ended.exception)


DATA = ("reviews.csv", "--model", "encoder")
WRITING: dict[str, tuple[object, ...]] = {
    "compare": ("compare", *DATA),
    "train": ("train", *DATA),
    "merge": ("merge", "model"),
    "features": ("features", *DATA),
    "pretrain bert": ("pretrain", "bert", "text.txt", "--preset", "tiny"),
    "pretrain elmo": ("pretrain", "elmo", "text.txt", "--preset", "tiny"),
    "convert-elmo": ("convert-elmo", "official"),
    "reproduce": ("reproduce", "hart-sparse"),
    "layer-probe": ("analyze", "layer-probe", *DATA),
    "divergence": ("analyze", "divergence", "reviews.csv", "--reference", "reviews.csv"),
    "label-cost": ("analyze", "label-cost", *DATA),
    "adapter-ablation": ("analyze", "adapter-ablation", "reviews.csv", "--model-dir", "model"),
}


@pytest.fixture
def prepared(here: Path) -> None:
    """What convert-elmo looks for first."""
    write(Path("official/options.json"), "{}")


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.usefixtures("prepared")
def test_a_folder_of_somebody_else(command: str) -> None:
    message = refused(*WRITING[command], "--out", "theirs")
    assert "--out theirs holds best, report.html" in message
    assert "nothing is written to it. Name a new or empty folder" in message


@pytest.mark.parametrize("kind", ["study", "totune", "features", "pretraining"])
def test_what_a_killed_process_left_of_its_first_file_blocks_nothing(
    tmp_path: Path, kind: str
) -> None:
    (tmp_path / f"{kind}.json.4194305.tmp").write_text('{"half')
    check_output_folder(tmp_path)
    (tmp_path / "thesis.txt.4194305.tmp").write_text("years of work")
    with pytest.raises(ConfigError, match=r"holds thesis\.txt\.4194305\.tmp"):
        check_output_folder(tmp_path)


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.usefixtures("prepared")
def test_the_empty_name(command: str) -> None:
    assert "--out is empty" in refused(*WRITING[command], "--out", "")


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.usefixtures("prepared")
def test_a_file_and_a_link_to_nothing(command: str) -> None:
    Path("gone").symlink_to("nowhere")
    assert "text.txt is a file" in refused(*WRITING[command], "--out", "text.txt")
    assert "text.txt is a file" in refused(*WRITING[command], "--out", "text.txt/deeper")
    assert "is a link to nothing" in refused(*WRITING[command], "--out", "gone")


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.usefixtures("prepared")
def test_a_link_to_somebody_elses_folder(command: str) -> None:
    Path("link").symlink_to("theirs")
    assert "--out link holds best" in refused(*WRITING[command], "--out", "link")


@pytest.mark.parametrize("command", ["compare", "train", "features"])
@pytest.mark.usefixtures("here")
def test_the_encoder_that_is_read(command: str) -> None:
    assert "encoder" in refused(*WRITING[command], "--out", "encoder")


@pytest.mark.usefixtures("here")
def test_pretraining_further_into_the_encoder_that_is_read() -> None:
    where = ("--model", "encoder", "--out", "encoder")
    assert "--out encoder holds" in refused("pretrain", "bert", "text.txt", *where)


@pytest.mark.usefixtures("here")
def test_the_cache_has_a_name_too() -> None:
    assert "--cache-dir is empty" in refused("compare", *DATA, "--cache-dir", "")


@pytest.mark.usefixtures("here")
def test_pruning_the_cache_leaves_other_files() -> None:
    write(Path("cache/notes.features"), "mine")
    ended = CliRunner().invoke(app, ["cache", "prune", "--max-size", "0"])
    assert ended.exit_code == 0
    assert Path("cache/notes.features").read_text() == "mine"


# A study's folder


def study(folder: Path = Path("study")) -> Store:
    store = Store(folder)
    record = record_of("tf-idf", 0)
    store.save(record, {})
    store.save_info(info_of(strategies=["tf-idf"], seeds=[0], runs=[record.fingerprint]))
    return store


def report_of_ours() -> None:
    write(Path("study/report.html"), "<footer>Made by totune 0.1.0</footer>")


@pytest.mark.usefixtures("here")
def test_what_stands_where_a_study_writes() -> None:
    study()
    write(Path("study/best/novel.txt"), "chapter one")
    assert "study/best holds novel.txt and is not a model" in refused("compare", *DATA, *OUT)
    Path("study/best/novel.txt").unlink()
    Path("study/best").rmdir()
    for name in ("report.html", "report.md"):
        write(Path("study") / name, "my own report")
        assert f"study/{name} is not a report of totune" in refused("compare", *DATA, *OUT)
        assert f"study/{name} is not a report of totune" in refused("report", "study")
        Path("study", name).unlink()
    Path("study/best").symlink_to(Path("theirs/best").resolve())
    assert "study/best is a link to" in refused("compare", *DATA, *OUT)


OUT = ("--out", "study")


@pytest.mark.usefixtures("here")
def test_the_best_model_of_a_study_is_not_replaced_while_it_is_read() -> None:
    study()
    save_encoder(Path("study/best/encoder"))
    write(Path("study/best/totune.json"), json.dumps({"totune": "0.1.0", "kind": "model"}))
    data = ("reviews.csv", "--model", "study/best/encoder")
    assert "lies in study/best, which this command replaces" in refused("compare", *data, *OUT)
    data = (*data, "--out", "study/best")
    assert "lies in study/best, which this command replaces" in refused("train", *data)


def test_a_study_goes_on_beside_what_is_not_its_own(here: Path) -> None:
    settings: dict[str, Any] = {
        "model": "encoder",
        "strategies": ["tf-idf"],
        "folds": 1,
        "out": "study",
    }
    compare("reviews.csv", seeds=1, **settings)
    theirs = {"notes.txt": "mine", "best/notes.txt": "mine too", "runs/notes.txt": "and mine"}
    for name, text in theirs.items():
        write(Path("study") / name, text)
    again = compare("reviews.csv", seeds=2, **settings)
    assert len(again.records) == 2
    assert {name: Path("study", name).read_text() for name in theirs} == theirs
    assert sorted(path.name for path in again.best.iterdir()) == [
        *("baseline", "notes.txt", "totune.json", "train_texts.npy")
    ]


def test_a_study_killed_before_its_first_run_goes_on(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    settings: dict[str, Any] = {"model": "encoder", "strategies": ["tf-idf"], "seeds": 1}
    for step in ("totune.study.compare.add_callbacks", "totune.export.saving.describe"):
        with monkeypatch.context() as patch:
            patch.setattr(step, killed)
            with pytest.raises(KeyboardInterrupt):
                compare("reviews.csv", out="study", **settings)
    assert compare("reviews.csv", out="study", **settings).to_json()["best"] == "study/best"


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_study_whose_description_is_damaged_goes_on(here: Path, damage: str) -> None:
    settings: dict[str, Any] = {"model": "encoder", "strategies": ["majority"], "seeds": 2}
    whole = compare("reviews.csv", out="study", **settings)
    path = Path("study/study.json")
    text = path.read_text()
    if damage == "gone":
        path.unlink()
    else:
        path.write_text(text[:100] if damage == "cut" else text.replace("[\n    0,", "[\n    7,"))
        with pytest.raises(ConfigError, match=r"study\.json cannot be read as a study"):
            Study(Path("study"))
    told = Recorder()
    again = compare("reviews.csv", out="study", progress=told, **settings)
    assert again.records == whole.records
    assert sum("study.json cannot be read" in warning for warning in told.warned) == (
        damage != "gone"
    )
    assert not [said for said in told.said if said.startswith("run ")]


def test_python_refuses_the_empty_name_too(here: Path) -> None:
    with pytest.raises(ConfigError, match="`out` is empty"):
        compare("reviews.csv", out="")


# A model's folder


@pytest.mark.usefixtures("here")
def test_training_goes_on_where_it_was_killed_and_replaces_its_model() -> None:
    Path("model/training/runs").mkdir(parents=True)
    command = ("train", *DATA, "--strategy", "tf-idf", "--out", "model")
    write(Path("model/config.json"), "their configuration")
    assert "--out model holds config.json" in refused(*command)
    Path("model/config.json").unlink()
    write(Path("model/notes.txt"), "mine")
    for _ in range(2):
        assert CliRunner().invoke(app, list(command)).exit_code == 0
    names = sorted(path.name for path in Path("model").iterdir())
    assert names == ["baseline", "notes.txt", "totune.json", "train_texts.npy", "training"]


# What analyses find


@pytest.mark.usefixtures("here")
def test_findings_replace_findings_alone() -> None:
    Findings("divergence", {}, {}, AnalysisResult((), {})).save(Path("found"))
    probe = ("analyze", "layer-probe", *DATA, "--out", "found")
    for name in ("layer-probe.json", "layer-probe.parquet", "layer-probe.html"):
        write(Path("found/analyses") / name, "{}")
        assert f"found/analyses/{name} is not" in refused(*probe)
        Path("found/analyses", name).unlink()
    study()
    write(Path("study/report.html"), "my own report")
    assert "not a report of totune" in refused("analyze", "overfitting-gap", "study")


# Predictions


@pytest.mark.usefixtures("here")
def test_predictions_replace_predictions_alone(tfidf_model: Path) -> None:
    predict = ("predict", tfidf_model, "new.csv", "--output")
    write(Path("new.csv"), "review\na joy\n")
    Path("link.csv").symlink_to("new.csv")
    for output in ("new.csv", "./new.csv", "link.csv"):
        assert "is the file that is read" in refused(*predict, output)
    assert "--output is empty" in refused(*predict, "")
    for name, text in {
        "train.csv": "text,label\nw1,pos\n",
        "train.jsonl": '{"text": "w1"}\n',
        "tagged.csv": "tokens,tags\nw1,O\n",
    }.items():
        write(Path(name), text)
        assert "does not hold predictions of totune" in refused(*predict, name)
    for name in ("out.csv", "out.tsv", "out.jsonl"):
        for text in ("a joy", "dull"):
            write(Path("new.csv"), f"review\n{text}\n")
            assert CliRunner().invoke(app, [*map(str, predict), name]).exit_code == 0
        assert "neg" in Path(name).read_text()
