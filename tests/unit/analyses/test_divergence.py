import json
from dataclasses import asdict, replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from tests.recorder import Recorder
from tests.tiny_data import write_table
from tests.unit.analyses.small_inputs import CHAT, SCORES, WIKI

from totune.analyses.base import ANALYSES, AnalysisResult
from totune.analyses.divergence import Divergence
from totune.analyses.divergence_section import divergence_section
from totune.analyses.inputs.corpora import (
    CorpusColumns,
    DivergenceInputs,
    NamedTexts,
    read_corpora,
    read_reference,
    read_scores,
    scores_of_studies,
)
from totune.errors import ConfigError, DataError
from totune.information import corpus_divergence
from totune.information.divergence import LogBase, contributions
from totune.progress import Progress
from totune.runs.records import RunRecord, StudyInfo

# Peters et al. (2019, Table 6): divergence, accuracy of a frozen encoder, minus tuned.
PAPER = {
    "telephone": (0.21, 84.4, -1.1),
    "government": (0.18, 86.7, -0.2),
    "travel": (0.14, 86.1, -0.6),
    "fiction": (0.09, 84.5, 0.4),
    "slate": (0.09, 80.9, -0.6),
}


def found(corpora: DivergenceInputs, **options: object) -> AnalysisResult:
    return Divergence(**options).run(corpora, Progress())


@pytest.fixture
def corpora() -> DivergenceInputs:
    return DivergenceInputs(WIKI, [WIKI._replace(name="wiki again"), CHAT])


@pytest.fixture
def paper() -> AnalysisResult:
    """The paper's table, as if it had been measured here."""
    rows = [
        {
            "corpus": name,
            "texts": 1000,
            "terms": 50_000,
            "covered": 0.9,
            "divergence": divergence,
            "by_size": 0.02,
            "distinctive": "uh, yeah",
            "frozen": frozen,
            "tuned": frozen - difference,
            "difference": difference,
        }
        for name, (divergence, frozen, difference) in PAPER.items()
    ]
    facts = {
        "reference": "books and Wikipedia",
        "reference_texts": 10,
        "reference_terms": 1000,
        "vocabulary": 10_000,
        "base": "e",
        "metric": "score",
        "frozen": "feature-extraction",
        "tuned": "fine-tuning",
        "correlation": Divergence()._correlation(rows),
    }
    return AnalysisResult(rows, facts)


def test_a_corpus_is_at_no_distance_from_itself_and_at_the_known_one_from_another(
    corpora: DivergenceInputs,
):
    same, other = found(corpora).rows
    assert same["divergence"] == 0
    assert same["distinctive"] == ""
    expected = corpus_divergence(WIKI.texts, CHAT.texts)
    assert other["divergence"] == pytest.approx(expected * np.log(2), abs=1e-12)
    assert 0 < other["divergence"] < 1
    assert (other["texts"], other["terms"], other["covered"]) == (2, 9, 1)
    assert set(other["distinctive"].split(", ")) == {"uh", "you", "know", "yeah"}


def test_corpora_without_a_term_in_common_are_one_bit_apart():
    apart = DivergenceInputs(WIKI, [NamedTexts("codes", ["x1 x2", "x3"])])
    ((nats,), (bits,)) = (found(apart, base=base).rows for base in ("e", 2))
    assert (nats["divergence"], bits["divergence"]) == pytest.approx((np.log(2), 1))
    assert bits["by_size"] == pytest.approx(nats["by_size"] / np.log(2))


@pytest.mark.parametrize(
    ("base", "unit", "most"), [("e", "nats", "0.693"), (2, "bits", "1"), (None, "bits", "1")]
)
def test_the_unit_is_told(corpora: DivergenceInputs, base: LogBase | None, unit: str, most: str):
    values = found(replace(corpora, scores=SCORES), base=base or 2)
    facts = {name: value for name, value in values.facts.items() if base or name != "base"}
    section = divergence_section(
        "D", AnalysisResult(values.rows, facts)
    )  # without a base: an older file
    assert f" {unit}, wiki again nearest" in section.paragraphs[0]
    assert f" to {most} (no term in common)." in section.paragraphs[0]
    assert f"Divergence, {unit}" in [column.name for column in section.tables[0].columns]
    assert f"in {unit} (logarithms to base {base or 2})" in section.tables[0].notes[0]
    assert f"Divergence from wiki, {unit}" in "".join(
        ElementTree.fromstring(section.pictures[0].svg).itertext()
    )


def test_what_terms_add_is_the_divergence():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(50)), rng.dirichlet(np.ones(50))
    assert contributions(p, q).sum() == pytest.approx(jensenshannon(p, q, base=2) ** 2)
    assert (contributions(p, q) >= 0).all()


def test_size_alone_makes_a_small_sample_look_distant():
    rng = np.random.default_rng(1)
    words = np.array([f"w{number}" for number in range(500)])
    shares = 1 / np.arange(1, 501)
    shares /= shares.sum()

    def sample(name: str, size: int) -> NamedTexts:
        return NamedTexts(name, [" ".join(rng.choice(words, size, p=shares))])

    values = found(
        DivergenceInputs(sample("all", 200_000), [sample("few", 500), sample("many", 50_000)])
    )
    few, many = values.rows
    assert few["divergence"] > 10 * many["divergence"]
    assert few["by_size"] == pytest.approx(few["divergence"], rel=0.2)
    assert many["by_size"] == pytest.approx(many["divergence"], rel=0.6)


def test_the_vocabulary_is_the_analysis_options(corpora: DivergenceInputs):
    values = found(corpora, max_vocabulary=2)
    assert values.facts["vocabulary"] == 2
    assert values.rows[1]["covered"] < 1
    cased = DivergenceInputs(NamedTexts("a", ["The the"]), [NamedTexts("b", ["the the"])])
    assert found(cased).rows[0]["divergence"] == 0
    assert found(cased, lowercase=False).rows[0]["divergence"] > 0
    with pytest.raises(ConfigError, match="no regular expression"):
        ANALYSES.create("divergence", {"token_pattern": "("})


def test_equal_material_gives_equal_values_that_survive_json(corpora: DivergenceInputs):
    scored = replace(corpora, scores=SCORES)
    values = found(scored)
    assert values == found(scored)
    assert json.loads(json.dumps(asdict(values), allow_nan=False)) == asdict(values)
    assert divergence_section(Divergence.title, values) == Divergence().section(values, ())


def test_the_paper_finds_no_significant_correlation_and_neither_is_one_found_in_its_table(
    paper: AnalysisResult,
):
    correlation = paper.facts["correlation"]
    assert correlation["rho"] == pytest.approx(-5.25 / 9.5)  # by hand, ties at their mean rank
    assert correlation["p"] > 0.3
    section = divergence_section("Distance", paper)
    assert section.paragraphs[0].startswith(
        "Over 5 corpora, the distance from books and Wikipedia has no significant rank correlation"
    )
    assert "a p-value above that does not show that there is no relation" in section.paragraphs[2]
    (table,) = section.tables
    assert table.values("Corpus")[0] == "telephone"
    assert [cell.text for cell in table.rows[0].cells[1:4]] == ["84.4", "−1.1", "0.210"]


def test_a_relation_is_told_with_its_direction(paper: AnalysisResult):
    rows = [
        dict(row, difference=-row["divergence"] - at / 1e3) for at, row in enumerate(paper.rows)
    ]
    rows[-1]["divergence"] = 0.08
    rows[-1]["difference"] = 0.1
    facts = {**paper.facts, "correlation": Divergence()._correlation(rows)}
    words = divergence_section("D", AnalysisResult(rows, facts)).paragraphs[0]
    assert words == (
        "The further a corpus lies from books and Wikipedia, the worse feature-extraction does "
        "against fine-tuning: over 5 corpora Spearman's rho is −1.00, p = 0.017."
    )
    errors = {**facts, "metric": "mse"}
    assert (
        "the better feature-extraction"
        in divergence_section("D", AnalysisResult(rows, errors)).paragraphs[0]
    )


def test_few_scores_are_shown_without_a_correlation(corpora: DivergenceInputs):
    values = found(replace(corpora, scores=SCORES, metric="accuracy"))
    assert [row["difference"] for row in values.rows] == [-0.1, 0.05]
    assert values.facts["correlation"] is None
    section = divergence_section("D", values)
    assert "needs at least three corpora" in section.paragraphs[1]
    (table,) = section.tables
    assert [row.cells[2].text for row in table.rows] == ["+5.0", "−10.0"]
    names = [
        "".join(node.itertext()) for node in ElementTree.fromstring(section.pictures[0].svg).iter()
    ]
    assert {"wiki again", "chat"} <= set(names)


def test_without_scores_there_is_a_distance_and_no_picture(corpora: DivergenceInputs):
    section = divergence_section("D", found(corpora))
    assert len(section.paragraphs) == 1
    assert section.paragraphs[0].startswith("chat lies furthest from wiki with 0.")
    assert section.pictures == ()
    assert [column.name for column in section.tables[0].columns][:2] == [
        "Corpus",
        "Divergence, nats",
    ]


@pytest.mark.parametrize(
    ("others", "scores", "told"),
    [
        ([], {}, "no corpus to compare"),
        ([CHAT, CHAT], {}, "Two corpora are called 'chat'"),
        ([CHAT], {"cat": {"frozen": 1, "tuned": 1}}, "Did you mean 'chat'"),
        ([CHAT], {"chat": {"frozen": float("nan"), "tuned": 1}}, "must be two numbers"),
        ([CHAT], {"chat": {"frozen": 1}}, "must be two numbers"),
    ],
)
def test_corpora_that_cannot_be_compared_are_refused(others, scores, told: str):
    with pytest.raises(ConfigError, match=told):
        DivergenceInputs(WIKI, others, scores)


def test_a_corpus_without_terms_is_named():
    with pytest.raises(DataError, match="None of the 1 texts of marks holds a term"):
        found(DivergenceInputs(WIKI, [NamedTexts("marks", ["!!"])]))
    with pytest.raises(DataError, match="nothing is empty"):
        found(DivergenceInputs(WIKI, [NamedTexts("nothing", [])]))


def read(*sources: Path, **options: str) -> list[tuple[str, list[str]]]:
    corpora = read_corpora(
        [str(source) for source in sources], CorpusColumns(**options), Progress()
    )
    return [(corpus.name, list(corpus.texts)) for corpus in corpora]


GENRES = [("fiction", "a b", "c"), ("travel", "d", "e"), ("fiction", "f", ""), ("", "g", "h")]


@pytest.fixture
def genres(tmp_path: Path) -> Path:
    return write_table(tmp_path / "genres.csv", ("genre", "sentence1", "sentence2"), GENRES)


def test_text_files_are_read_line_by_line_and_several_as_one_reference(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("three", encoding="utf-8")
    sources = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    assert read(*map(Path, sources)) == [("a", ["one", "two"]), ("b", ["three"])]
    reference = read_reference(sources, CorpusColumns(by="genre"), Progress())
    assert reference.name == "a + b"
    assert list(reference.texts) == list(reference.texts) == ["one", "two", "three"]


def test_trees_are_read_as_sentences(tmp_path: Path):
    (tmp_path / "trees.txt").write_text("(3 (2 It) (4 works))\n", encoding="utf-8")
    assert read(tmp_path / "trees.txt") == [("trees", ["It works"])]


def test_a_column_splits_a_table_and_both_texts_of_a_pair_count(genres: Path):
    progress = Recorder()
    reading = CorpusColumns("sentence1", "sentence2", "genre")
    corpora = read_corpora([str(genres)], reading, progress)
    assert [(corpus.name, list(corpus.texts)) for corpus in corpora] == [
        ("fiction", ["a b", "c", "f"]),
        ("travel", ["d", "e"]),
    ]
    assert progress.warned == [f"{genres}: 1 row without 'genre' left out (line 5)."]


def test_columns_are_found_and_a_lone_one_needs_no_name(tmp_path: Path):
    rows = [(f"this is text number {at}", "ab"[at % 2]) for at in range(10)]
    labelled = write_table(tmp_path / "labelled.csv", ("review", "label"), rows)
    lone = write_table(tmp_path / "lone.csv", ("anything",), [("x y",), ("z",)])
    (first, second) = read(labelled, lone)
    assert first == ("labelled", [text for text, _ in rows])
    assert second == ("lone", ["x y", "z"])


def test_a_folder_of_splits_is_one_corpus(tmp_path: Path):
    rows = [(f"this is text number {at}", "ab"[at % 2]) for at in range(20)]
    folder = tmp_path / "reviews"
    folder.mkdir()
    for name in ("train", "dev", "test"):
        write_table(folder / f"{name}.csv", ("text", "label"), rows)
    ((name, texts),) = read(folder)
    assert (name, len(texts)) == ("reviews", 60)
    with pytest.raises(ConfigError, match="Name the file"):
        read(folder, by="label")


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path):
    for folder in ("films", "books"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.txt").write_text("x", encoding="utf-8")
    found = read(tmp_path / "films/train.txt", tmp_path / "books/train.txt")
    assert [name for name, _ in found] == ["films/train", "books/train"]


def test_what_cannot_be_read_is_told_with_its_remedy(tmp_path: Path, genres: Path):
    with pytest.raises(DataError, match=r"Did you mean .*genres\.csv"):
        read(tmp_path / "genre.csv")
    with pytest.raises(DataError, match=r"no column 'kind' \(`by`\)"):
        read(genres, text="sentence1", by="kind")
    numbers = write_table(tmp_path / "numbers.csv", ("x", "y"), [("1", "2"), ("3", "4")])
    with pytest.raises(DataError, match="Name it with text"):
        read(numbers)
    many = write_table(tmp_path / "many.csv", ("a", "b"), [("t", f"v{at}") for at in range(60)])
    with pytest.raises(DataError, match="has 60 different values"):
        read(many, text="a", by="b")
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    with pytest.raises(ConfigError, match="by=genre splits a table"):
        read(tmp_path / "a.txt", by="genre")


def test_scores_are_read_from_csv_and_json(tmp_path: Path):
    table = write_table(tmp_path / "s.csv", ("corpus", "frozen", "tuned"), [("chat", "84.4", "85")])
    rows = [{"corpus": "chat", "frozen": 84.4, "tuned": 85}]
    (tmp_path / "s.json").write_text(json.dumps(rows), encoding="utf-8")
    expected = {"chat": {"frozen": 84.4, "tuned": 85.0}}
    assert read_scores(table) == read_scores(tmp_path / "s.json") == expected


@pytest.mark.parametrize(
    ("header", "rows", "told"),
    [
        (("corpus", "frozen"), [("chat", "1")], "no column 'tuned'"),
        (("corpus", "frozen", "tuned"), [("chat", "1", "good")], "line 2: tuned is 'good'"),
        (("corpus", "frozen", "tuned"), [("chat", "1", "1")] * 2, "line 3: 'chat' has a row"),
    ],
)
def test_scores_that_cannot_be_used_are_told_with_their_place(
    tmp_path: Path, header: tuple[str, ...], rows: list[tuple[str, ...]], told: str
):
    with pytest.raises(DataError, match=told):
        read_scores(write_table(tmp_path / "s.csv", header, rows))


def study(metric: str = "accuracy") -> tuple[StudyInfo, list[RunRecord]]:
    tests = {"feature-extraction": (0.8, 0.82), "fine-tuning": (0.9, 0.94)}
    records = [
        RunRecord(f"{name}-{seed}", name, seed, "finished", {}, {}, "fp32", test={metric: value})
        for name, values in tests.items()
        for seed, value in enumerate(values)
    ]
    names = [*tests, "last-2"]
    return StudyInfo(
        "s", "classification", {}, {}, metric, [metric], names, [0, 1], {}, {}, {}
    ), records


def test_scores_of_studies_are_means_over_seeds():
    metric, scores = scores_of_studies({"chat": study()}, "feature-extraction", "fine-tuning")
    assert metric == "accuracy"
    assert scores == {"chat": {"frozen": pytest.approx(0.81), "tuned": pytest.approx(0.92)}}


def test_studies_that_do_not_answer_are_told():
    with pytest.raises(ConfigError, match=r"study of chat has no strategy 'lora'"):
        scores_of_studies({"chat": study()}, "feature-extraction", "lora")
    with pytest.raises(ConfigError, match="No run of last-2 in the study of chat"):
        scores_of_studies({"chat": study()}, "feature-extraction", "last-2")
    both = {"chat": study(), "wiki": study("f1")}
    with pytest.raises(ConfigError, match="different metrics: chat by accuracy, wiki by f1"):
        scores_of_studies(both, "feature-extraction", "fine-tuning")
