"""What GLUE's server is sent: names, headers, label words, numbers, every row in its order."""

import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.recorder import Recorder

from totune.errors import ConfigError, DataError
from totune.recipes import glue
from totune.recipes.glue import TEST_SETS, submit_glue

FILES = {
    "CoLA/test.tsv": 'index\tsentence\n0\tBill left.\n1\t\n2\tLeft "Bill.\n',
    "MNLI/test_matched.tsv": "index\tgenre\tsentence1\tsentence2\n7\tx\ta\tb\n9\tx\tc\td\n",
    "STS-B/test.tsv": "index\tsentence1\tsentence2\n0\ta\tb\n1\tc\td\n2\te\tf\n",
    "AX/diagnostic.tsv": "index\tsentence1\tsentence2\n0\ta\tb\n",
}
PREDICTED = {
    "cola": ["unacceptable", "1", "acceptable"],
    "mnli": ["entailment", "contradiction"],
    "stsb": [5.4, -0.2, 3.14159],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "glue" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "glue"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders that count as models, whose predictions are made up."""

    def load(folder: Path) -> SimpleNamespace:
        labels = PREDICTED[folder.name]
        return SimpleNamespace(predict=lambda texts, pairs=None: labels[: len(texts)])

    monkeypatch.setattr(glue, "is_model", lambda folder: folder.name in PREDICTED)
    monkeypatch.setattr(glue, "load_model", load)
    for name in PREDICTED:
        (tmp_path / name).mkdir()
    return tmp_path


def test_files_are_as_the_server_reads_them(models: Path, data: Path, tmp_path: Path) -> None:
    progress = Recorder()
    studies = [str(models / name) for name in PREDICTED]
    made = submit_glue(studies, data_dir=data, out=tmp_path / "out", progress=progress)
    assert (tmp_path / "out/CoLA.tsv").read_text() == "index\tprediction\n0\t0\n1\t1\n2\t1\n"
    assert (tmp_path / "out/MNLI-m.tsv").read_text() == (
        "index\tprediction\n7\tentailment\n9\tcontradiction\n"
    )
    assert (tmp_path / "out/STS-B.tsv").read_text() == (
        "index\tprediction\n0\t5.000\n1\t0.000\n2\t3.142\n"
    )
    assert made.written == {"CoLA": 3, "STS-B": 3, "MNLI-m": 2, "AX": 1}
    assert "no study of rte was named" in made.missing["RTE"]
    assert "MNLI/test_mismatched.tsv is not under" in made.missing["MNLI-mm"]
    assert len(made.written) + len(made.missing) == 11
    assert any("has 3 rows; GLUE's test file of CoLA has 1,063" in told for told in progress.warned)
    names = zipfile.ZipFile(made.archive).namelist()
    assert sorted(names) == ["AX.tsv", "CoLA.tsv", "MNLI-m.tsv", "STS-B.tsv"]


def test_the_test_sets_are_those_of_the_server() -> None:
    assert sorted(one.file for one in TEST_SETS) == sorted(
        ["AX", "CoLA", "MNLI-m", "MNLI-mm", "MRPC", "QNLI", "QQP", "RTE", "SST-2", "STS-B", "WNLI"]
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["{}/cola", "cola={}/mnli"], "are both of cola; name one"),
        (["colla={}/cola"], "which task of GLUE is it.*Did you mean 'cola'"),
        (["{}/nothing"], "holds neither a study with its best model nor a model"),
    ],
)
def test_a_folder_that_is_no_task_is_told(
    models: Path, data: Path, tmp_path: Path, given: list[str], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        submit_glue([one.format(models) for one in given], data_dir=data, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_model_of_another_task_is_told(models: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="CoLA knows 0, 1, and the model predicts 'entailment'"):
        submit_glue([f"cola={models / 'mnli'}"], data_dir=data, out=tmp_path / "out")


def test_a_file_of_another_kind_is_told(models: Path, data: Path, tmp_path: Path) -> None:
    (data / "CoLA/test.tsv").write_text("index\ttext\n0\ta\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column 'sentence', so it is not GLUE's test file"):
        submit_glue([str(models / "cola")], data_dir=data, out=tmp_path / "out")
