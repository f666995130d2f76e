"""Tagged words from a CoNLL file to a compared study, and back into files."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.conftest import Run
from tests.tiny_data import BAD, GOOD, OTHER

import totune as package
from totune.errors import ConfigError

PAIR = {"text": "first", "pair": "second"}
APART = {"options": {"pair_encoding": "separate"}}
JOINT = {"options": {"pair_encoding": "joint"}}
Sentence = list[tuple[str, str]]


def sentence(rng: random.Random) -> Sentence:
    """Spans of one or two words: GOOD begins an A, BAD a B, and what follows goes on with it."""
    found: Sentence = []
    for _ in range(rng.randrange(1, 5)):
        found += [(word, "O") for word in rng.sample(OTHER, rng.randrange(0, 3))]
        kind, words = rng.choice((("A", GOOD), ("B", BAD)))
        found.append((rng.choice(words), f"B-{kind}"))
        if rng.random() < 0.3:
            found.append((f"{rng.choice(words)}-{rng.choice(words)}", f"I-{kind}"))
    return found


def write_conll(path: Path, documents: int, seed: int) -> list[Sentence]:
    rng = random.Random(seed)
    written, lines = [], []
    for _ in range(documents):
        lines.append("-DOCSTART- O\n\n")
        for _ in range(3):
            written.append(sentence(rng))
            lines.append("".join(f"{word} {tag}\n" for word, tag in written[-1]) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return written


@pytest.fixture(scope="module")
def conll_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tagged")
    for seed, (name, documents) in enumerate([("train", 40), ("dev", 10), ("test", 10)]):
        write_conll(made / f"{name}.conll", documents, seed)
    return made


@pytest.fixture(scope="module")
def tagging_study(totune: Run, data: Path, conll_folder: Path) -> Path:
    out = conll_folder / "study"
    settings = ("--model", data / "encoder", "--precision", "fp32", "--seeds", "1")
    rates = ("--num-train-epochs", "6", "--learning-rate", "3e-3", "--head", "crf")
    rates += ("--per-device-train-batch-size", "8")
    rates += ("--strategies", "most-frequent-tag,feature-extraction,last-2,fine-tuning")
    ended = totune("compare", conll_folder, "--out", out, *settings, *rates, "--json")
    assert ended.code == 0, ended.err
    assert "the task is tagging" in ended.err
    runs = {run["strategy"]: run["test"] for run in ended.json["runs"]}
    assert list(runs) == ["most-frequent-tag", "feature-extraction", "last-2", "fine-tuning"]
    assert all({"span-f1", "token-accuracy", "f1:A", "f1:B"} <= set(test) for test in runs.values())
    assert runs["fine-tuning"]["span-f1"] > 0.4
    return out


def test_the_report_tells_spans_by_type(tagging_study: Path) -> None:
    text = (tagging_study / "report.md").read_text(encoding="utf-8")
    assert "F1 by type" in text
    assert "sentences" in text


def test_predictions_go_into_files_and_are_measured(
    totune: Run, tagging_study: Path, conll_folder: Path, tmp_path: Path
) -> None:
    model = package.load(tagging_study / "best")
    bare = tmp_path / "bare.txt"
    rows = write_conll(tmp_path / "other.conll", 2, seed=9)
    bare.write_text("".join(" ".join(w for w, _ in row) + "\n" for row in rows), encoding="utf-8")
    tagged = tmp_path / "tagged.conll"
    ended = totune("predict", tagging_study / "best", bare, "--output", tagged)
    assert ended.code == 0, ended.err
    expected = model.predict([[word for word, _ in row] for row in rows])
    lines = [
        [tuple(line.split(" ")) for line in block.splitlines()]
        for block in tagged.read_text(encoding="utf-8").split("\n\n")
        if block.strip()
    ]
    assert [[tag for _, tag in block] for block in lines] == [list(tags) for tags in expected]
    assert [[word for word, _ in b] for b in lines] == [[word for word, _ in row] for row in rows]
    perfect = totune("evaluate", tagging_study / "best", tagged, "--json")
    assert perfect.json["metrics"]["token-accuracy"] == 1.0
    shown = totune("predict", tagging_study / "best", bare, "--json").json["predictions"]
    assert [row["tags"] for row in shown] == [list(tags) for tags in expected]
    table = totune("predict", tagging_study / "best", bare).out.splitlines()
    assert table[0] == "tokens,tags"
    assert len(table) == 1 + len(rows)


def test_documents_come_back_as_they_were_read(
    totune: Run, tagging_study: Path, conll_folder: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.conll", tmp_path / "second.conll"
    assert (
        totune(
            "predict", tagging_study / "best", conll_folder / "test.conll", "--output", first
        ).code
        == 0
    )
    assert first.read_text(encoding="utf-8").count("-DOCSTART-") == 10
    assert totune("predict", tagging_study / "best", first, "--output", second).code == 0
    assert second.read_text(encoding="utf-8") == first.read_text(encoding="utf-8")


def test_the_record_is_met_again_by_evaluate(
    totune: Run, tagging_study: Path, conll_folder: Path
) -> None:
    about = json.loads((tagging_study / "best" / "totune.json").read_text(encoding="utf-8"))
    ended = totune("evaluate", tagging_study / "best", conll_folder, "--json")
    assert ended.code == 0, ended.err
    if about["strategy"] != "most-frequent-tag":
        assert about["framing"] == {"pair_encoding": "joint", "document_context": True}
    assert ended.json["metrics"] == pytest.approx(about["metrics"]["test"], abs=1e-6)


@pytest.mark.parametrize(
    ("source", "head", "settings", "told"),
    [
        ("reviews.csv", "esim", {}, "compares two texts, and this data has one per row"),
        ("reviews.csv", "crf", {}, "cannot be used for the task classification"),
        ("pairs.csv", "siamese", {**PAIR, **JOINT}, "Leave pair_encoding out"),
        ("pairs.csv", "linear", {**PAIR, **APART}, "half of each pair"),
        ("", "bcn", {}, "cannot be used for the task tagging"),
    ],
)
def test_heads_that_do_not_fit_are_told_before_a_run(
    data: Path,
    conll_folder: Path,
    tmp_path: Path,
    source: str,
    head: str,
    settings: dict[str, Any],
    told: str,
) -> None:
    with pytest.raises(ConfigError, match=told) as raised:
        package.compare(
            data / source if source else conll_folder,
            out=tmp_path / "out",
            model=str(data / "encoder"),
            strategies=["fine-tuning", "last-2"],
            head=head,
            **settings,
        )
    assert len(raised.value.faults) == 1
    assert not (tmp_path / "out").exists()


def test_baselines_that_do_not_fit_are_told_before_a_run(
    data: Path, conll_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="'tf-idf' cannot be used for tagging"):
        package.compare(
            conll_folder, out=tmp_path / "out", model=str(data / "encoder"), strategies=["tf-idf"]
        )
