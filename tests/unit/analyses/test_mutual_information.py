"""Information is found where it is, and the checks stand beside it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.recorder import Recorder
from tests.tiny_data import save_encoder, write_reviews
from tests.unit.analyses.fake_states import FakeStates, classes, scores
from tests.unit.runs.samples import record_of

from totune.analyses.base import ANALYSES, AnalysisResult
from totune.analyses.blocks import subject_colors
from totune.analyses.inputs.hidden_states import HiddenStates
from totune.analyses.inputs.studies import open_data
from totune.analyses.mutual_information import MutualInformation
from totune.analyses.mutual_information_section import information_figure
from totune.cli.options import parse_assignments
from totune.errors import ConfigError, DataError
from totune.information import Edge, NearestNeighbours
from totune.progress import Progress
from totune.report.document import Section
from totune.report.plots import colors_of
from totune.tasks.classification import Classification

KINDS = {"labels", "random labels", "random representations"}


def information(inputs: FakeStates, told: Progress | None = None, **options: Any) -> AnalysisResult:
    return MutualInformation(**options).run(cast(HiddenStates, inputs), told or Progress())


def section_of(values: AnalysisResult) -> Section:
    return MutualInformation().section(values, ())


def bits(values: AnalysisResult, what: str = "labels", estimator: str = "edge") -> list[float]:
    return [
        row["bits"]
        for row in values.rows
        if (row["what"], row["estimator"]) == (what, estimator) and row["seed"] is None
    ]


def test_the_block_that_holds_the_labels_is_found_by_both_estimators() -> None:
    values = information(classes((0, 0, 6)))
    for estimator in ("edge", "neighbours"):
        found = bits(values, estimator=estimator)
        assert max(found[:2]) < 0.2
        assert found[2] > 0.5
        assert max(bits(values, "random labels", estimator)) < 0.2
        assert max(bits(values, "random representations", estimator)) < 0.2
    assert values.facts["entropy"] == pytest.approx(1.0)
    headline = section_of(values).paragraphs[0]
    assert headline.startswith("Pretrained, the top layer holds most information about the labels")
    assert headline.endswith(" of 1.00 bits), by EDGE.")


def test_permuted_states_hold_nothing() -> None:
    inputs, random = classes((6, 6, 6)), np.random.default_rng(0)
    inputs.change = lambda _, __, vectors: random.permutation(vectors)
    found = section_of(information(inputs))
    assert "no layer shows more information than permuted labels do" in found.paragraphs[0]


def test_estimates_are_those_of_the_estimators() -> None:
    inputs = classes((0, 2))
    values = information(inputs, draws=1, passes=1)
    states = inputs.vectors(next(inputs.subjects()), "dev")[:, 1]  # type: ignore[arg-type]
    labels = inputs.targets("dev")
    assert bits(values)[1] == pytest.approx(Edge(passes=1).estimate(states, labels))
    near = NearestNeighbours().with_labels(states, labels)
    assert bits(values, estimator="neighbours")[1] == pytest.approx(near, abs=1e-6)
    assert {row["spread"] for row in values.rows} == {None}


def test_several_draws_give_their_mean_and_spread() -> None:
    values = information(classes((0, 2)), draws=3, passes=1, estimators=("edge",))
    inputs = classes((0, 2))
    states = inputs.vectors(next(inputs.subjects()), "dev")[:, 1]  # type: ignore[arg-type]
    first = Edge(passes=1).seed
    drawn = [
        Edge(passes=1, seed=first + draw).estimate(states, inputs.targets("dev"))
        for draw in range(3)
    ]
    (row,) = [row for row in values.rows if row["what"] == "labels" and row["block"] == 1]
    assert row["bits"] == pytest.approx(np.mean(drawn))
    assert row["spread"] == pytest.approx(np.std(drawn, ddof=1))


def test_the_checks_always_run() -> None:
    for names in (["edge", "neighbours"], ["edge"], ["neighbours"]):
        values = information(classes((0, 2)), estimators=tuple(names), draws=1)
        assert values.facts["estimators"] == names
        found = {(row["estimator"], row["what"], row["block"]) for row in values.rows}
        assert found == {(name, kind, at) for name in names for kind in KINDS for at in (0, 1)}


def test_the_first_estimator_decides() -> None:
    first = information(classes((0, 2)), estimators=("neighbours", "edge"), draws=1)
    assert first.facts["estimators"] == ["neighbours", "edge"]
    told = section_of(first).paragraphs
    assert told[0].endswith("by nearest neighbours on 5 principal components.")
    assert any(sentence.startswith("For comparison, by EDGE: ") for sentence in told)


def test_estimators_are_chosen_on_the_command_line() -> None:
    typed = parse_assignments(['estimators=["neighbours"]'])
    assert ANALYSES.create("mutual-information", typed) == MutualInformation(("neighbours",))


def test_a_check_that_is_not_near_zero_is_said() -> None:
    """A single pass counts pairs of cells that meet too seldom as informative."""
    found = section_of(information(classes((0, 0)), passes=1, estimators=("edge",)))
    assert "bits are found where the truth is 0" in found.warnings[0]
    assert "passes=1" not in " ".join(found.paragraphs)
    twice = " ".join(section_of(information(classes((0, 0)), estimators=("edge",))).paragraphs)
    assert "0 means little or none; passes=1 leaves it out" in twice


def test_classes_that_edge_does_not_tell_apart_are_said() -> None:
    """Its cells grow with the spacing of the class numbers, which is wide where each is rare."""
    few, many = classes((0, 1), count=3), classes((0, 1), count=3)
    many.task = Classification(tuple("abcdefghijklmnopqrst"))
    many.labels = {split: np.arange(len(one)) % 20 for split, one in many.labels.items()}
    found = information(many, draws=1)
    assert found.facts["classes"] == 20
    assert found.facts["told_apart"] < 20
    assert "20 classes fall into" in section_of(found).warnings[0]
    apart = information(few, draws=1)
    assert apart.facts["told_apart"] == apart.facts["classes"] == 3
    assert "cells" not in " ".join(section_of(apart).warnings)
    alone = information(many, draws=1, estimators=("neighbours",))
    assert "cells" not in " ".join(section_of(alone).warnings)


def test_labels_bound_the_picture_and_scores_do_not() -> None:
    values = information(classes((0, 2), count=4), estimators=("edge",), draws=2)
    assert values.facts["entropy"] == pytest.approx(2.0)
    assert ">entropy of the labels<" in section_of(values).pictures[0].svg
    scored = information(scores((0, 4)), draws=2)
    assert scored.facts["entropy"] is None
    assert "entropy" not in section_of(scored).pictures[0].svg
    assert bits(scored, estimator="neighbours")[1] > 0.5
    assert section_of(scored).paragraphs[-1].startswith("Labels are scores, which have no entropy")


def test_seeds_of_an_adapted_encoder_are_shown_by_mean_and_deviation() -> None:
    values = information(classes((0, 1), adapted=[(0, 6), (0, 5)]), estimators=("edge",), draws=1)
    rows = [row for row in values.rows if row["what"] == "labels" and row["block"] == 1]
    assert [(row["subject"], row["seed"]) for row in rows] == [
        ("pretrained", None),
        ("fine-tuning", 0),
        ("fine-tuning", 1),
    ]
    found = [row["bits"] for row in rows[1:]]
    drawn = information_figure(values.rows)
    assert [(row["subject"], row["block"]) for row in drawn] == [
        *(("pretrained", 0), ("pretrained", 1), ("fine-tuning", 0), ("fine-tuning", 1))
    ]
    assert drawn[3]["mean"] == pytest.approx(np.mean(found))
    assert drawn[3]["high"] - drawn[3]["mean"] == pytest.approx(np.std(found, ddof=1))
    colors = subject_colors(drawn, [record_of("lora")])
    assert colors["fine-tuning"] == colors_of(["lora", "fine-tuning"])["fine-tuning"]
    table = section_of(values).tables[0]
    heads = [column.name for column in table.columns]
    assert heads == ["Block", "pretrained", "fine-tuning", "random representations"]
    assert "±" in table.rows[1].cells[2].text


def test_another_split_and_fewer_rows() -> None:
    told = Recorder()
    values = information(classes((0, 6)), told, split="train", max_rows=50, draws=1)
    assert (values.facts["split"], values.facts["rows"]) == ("train", 50)
    assert told.said == ["50 rows are looked at, drawn from 120."]


def test_rows_of_labels_that_training_lacks_are_left_out() -> None:
    inputs, told = classes((0, 6)), Recorder()
    inputs.labels["dev"] = np.array([0, 1] * 45 + [-100] * 10)
    values = information(inputs, told, draws=1, estimators=("edge",))
    assert values.facts["rows"] == 90
    assert told.warned[0].startswith("10 of 100 rows of dev have a label that no row of train has")
    assert values.facts["entropy"] == pytest.approx(1.0)


def constant(inputs: FakeStates) -> None:
    inputs.labels["dev"] = np.zeros_like(inputs.labels["dev"])


def few(inputs: FakeStates) -> None:
    inputs.labels["dev"] = inputs.labels["dev"][:12]


def once(inputs: FakeStates) -> None:
    inputs.labels["dev"] = np.arange(25)


def unseen(inputs: FakeStates) -> None:
    inputs.labels["dev"] = np.full(60, -100)


def broken(inputs: FakeStates) -> None:
    def spoil(_: Any, __: str, vectors: np.ndarray) -> np.ndarray:
        vectors[4, 0, 0] = np.inf
        return vectors

    inputs.change = spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (constant, r"100 rows of dev .* have one label only: 'a'"),
        (few, r"dev has 12 rows with known labels; .* at least 20.* Use split=train"),
        (once, r"25 rows of dev .* have 25 labels, each once"),
        (unseen, r"dev has 0 rows with known labels"),
        (broken, r"block 0 \(embeddings\) of pretrained .* of dev, first in row 5 "),
    ],
)
def test_what_allows_no_estimate_is_refused(
    spoil: Callable[[FakeStates], None], message: str
) -> None:
    inputs = classes()
    spoil(inputs)
    with pytest.raises(DataError, match=message):
        information(inputs)


@pytest.mark.parametrize(
    "options", [{"draws": 0}, {"passes": 3}, {"split": "all"}, {"estimators": []}]
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        ANALYSES.create("mutual-information", options)


def test_hidden_states_of_an_encoder_hold_what_decides_their_class(tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "reviews.csv", rows=160)
    encoder = save_encoder(tmp_path / "encoder")
    opened = open_data(data, model=str(encoder), cache_dir=tmp_path / "cache", precision="fp32")
    analysis = MutualInformation(split="train", pooling="max", draws=1)
    values = analysis.run(opened.states, Progress())
    assert len(values.rows) == 2 * 3 * 5
    assert max(bits(values, estimator="neighbours")) > 0.1
