"""Probes find what is there, and nothing where nothing is."""

import json
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
from totune.analyses.layer_probe import LayerProbe, probe_figure
from totune.errors import ConfigError, DataError
from totune.progress import Progress
from totune.report.document import Section
from totune.report.plots import colors_of


def probe(inputs: FakeStates, told: Progress | None = None, **options: Any) -> AnalysisResult:
    return LayerProbe(**options).run(cast(HiddenStates, inputs), told or Progress())


def section_of(values: AnalysisResult) -> Section:
    return LayerProbe().section(values, ())


def column(values: AnalysisResult, key: str, subject: str = "pretrained") -> list[Any]:
    return [row[key] for row in values.rows if row["subject"] == subject]


def test_the_block_that_holds_the_labels_leads() -> None:
    values = probe(classes((0, 1, 3)))
    found = column(values, "score")
    assert abs(found[0] - 0.5) < 0.15
    assert found[2] > 0.95
    assert column(values, "name") == ["embeddings", "layer 1", "layer 2"]
    assert column(values, "selectivity") == [
        score - control for score, control in zip(found, column(values, "control"), strict=True)
    ]
    (lead,) = values.facts["leading"]
    assert (lead["block"], lead["ties"], lead["selective"]) == (2, [], True)
    assert lead["low"] <= lead["score"] <= lead["high"]
    headline = section_of(values).paragraphs[0]
    assert headline.startswith("Pretrained, the top layer tells a linear probe most")


def test_permuted_labels_leave_nothing_to_tell() -> None:
    inputs = classes((3, 3, 3))
    random = np.random.default_rng(0)
    inputs.change = lambda _, __, vectors: random.permutation(vectors)
    values = probe(inputs)
    assert max(abs(value) for value in column(values, "selectivity")) < 0.25
    assert not values.facts["leading"][0]["selective"]
    assert "Pretrained, no layer tells more than chance would" in section_of(values).paragraphs[0]


def test_controls_stay_at_chance_where_probes_do_not() -> None:
    values = probe(classes((3, 3, 3), metric="matthews"))
    assert min(column(values, "score")) > 0.9
    assert np.abs(column(values, "control")).max() < 0.3


def test_equal_blocks_are_ties() -> None:
    (lead,) = probe(classes((0, 2, 2, 2))).facts["leading"]
    assert {lead["block"], *lead["ties"]} == {1, 2, 3}


@pytest.mark.parametrize("width", [1, 5])
def test_constant_features_change_nothing(width: int) -> None:
    def with_constants(_: Any, __: str, vectors: np.ndarray) -> np.ndarray:
        constants = np.full((*vectors.shape[:2], width), 0.1, dtype=np.float32)
        return np.concatenate([vectors, constants], axis=2)

    plain, padded = classes(), classes()
    padded.change = with_constants
    assert column(probe(plain), "score") == column(probe(padded), "score")


def test_several_classes_and_scores_are_probed_too() -> None:
    three = probe(classes((0, 4), count=3, metric="f1"))
    assert column(three, "score")[1] > 0.9
    scored = probe(scores((0, 4)))
    assert scored.facts["model"] == "ridge regression"
    assert column(scored, "score")[1] > 0.8
    assert abs(column(scored, "control")[1]) < 0.3


def test_where_less_is_better_the_lowest_leads_and_selectivity_is_what_is_saved() -> None:
    values = probe(scores((0, 4), metric="mse"))
    assert values.facts["leading"][0]["block"] == 1
    assert column(values, "score")[1] < column(values, "score")[0]
    assert column(values, "selectivity")[1] > 0.05


def test_seeds_of_an_adapted_encoder_are_shown_by_mean_and_deviation() -> None:
    values = probe(classes((0, 1, 1), adapted=[(0, 1, 4), (0, 1, 3)]))
    assert column(values, "seed", "fine-tuning") == [0, 0, 0, 1, 1, 1]
    found = section_of(values)
    assert "after fine-tuning, the top layer does" in found.paragraphs[0]
    cells = found.tables[0].rows[2].cells
    assert cells[1].value == pytest.approx(column(values, "score")[2])
    assert "±" not in cells[1].text
    assert "±" in cells[2].text
    drawn = probe_figure(values)
    colors = subject_colors(drawn, [record_of("lora"), record_of("fine-tuning")])
    assert colors["fine-tuning"] == colors_of(["lora", "fine-tuning"])["fine-tuning"]
    tops = [
        row["score"] for row in values.rows if row["subject"] != "pretrained" and row["block"] == 2
    ]
    (top,) = (row for row in drawn if (row["subject"], row["block"]) == ("fine-tuning", 2))
    assert top["mean"] == pytest.approx(100 * np.mean(tops))
    assert top["high"] - top["mean"] == pytest.approx(100 * np.std(tops, ddof=1))
    assert drawn[0]["low"] is drawn[0]["high"] is None


def test_more_rows_than_the_most_are_drawn() -> None:
    told = Recorder()
    values = probe(classes(), told, max_train_rows=60)
    assert set(column(values, "n_train")) == {60}
    assert told.said == ["Probes train on 60 rows, drawn from 120."]
    assert column(values, "score")[2] > 0.9


def constant(inputs: FakeStates, split: str) -> None:
    inputs.labels[split] = np.ones_like(inputs.labels[split])


def once(inputs: FakeStates, _: str) -> None:
    inputs.labels["train"] = np.arange(2)


def once_but_one(inputs: FakeStates, _: str) -> None:
    inputs.labels["train"] = np.array([0] * 50 + [1])


def few(inputs: FakeStates, _: str) -> None:
    inputs.labels["train"] = inputs.labels["train"][:5]


@pytest.mark.parametrize(
    ("spoil", "split", "message"),
    [
        (constant, "train", r"120 rows of train .* have one label only: 'b'\. .* Use data"),
        (constant, "dev", r"100 rows of dev .* have one label only: 'b'"),
        (once, "train", r"2 rows of train .* have 2 labels, each once"),
        (once_but_one, "train", r"Only one label of train occurs more than once \('b' has"),
        (few, "train", r"train has 5 rows .* at least 6 are needed"),
    ],
)
def test_labels_that_leave_nothing_to_probe_are_refused(
    spoil: Callable[[FakeStates, str], None], split: str, message: str
) -> None:
    inputs = classes()
    spoil(inputs, split)
    with pytest.raises(DataError, match=message):
        probe(inputs)


def test_constant_scores_are_refused() -> None:
    inputs = scores()
    constant(inputs, "train")
    with pytest.raises(DataError, match=r"120 rows of train .* have one label only: 1\.0"):
        probe(inputs)


def test_a_state_that_is_no_number_is_named() -> None:
    def broken(subject: Any, split: str, vectors: np.ndarray) -> np.ndarray:
        if subject.seed == 0 and split == "dev":
            vectors[[6, 8], 1, 3] = np.nan
        return vectors

    inputs = classes(adapted=[(0, 1, 1)])
    inputs.change = broken
    message = (
        r"block 1 \(layer 1\) of fine-tuning, seed 0 .* in 2 of 100 rows of dev, first in row 7 "
    )
    with pytest.raises(DataError, match=message):
        probe(inputs)


def test_classes_that_a_split_lacks_are_told_and_count_as_wrong() -> None:
    inputs = classes((0, 3), count=3)
    inputs.labels["dev"] = np.array([0, 1] * 45 + [-100] * 10)  # nothing of c, ten never seen
    told = Recorder()
    values = probe(inputs, told)
    assert told.warned[0] == "dev has no row of 'c': how well it is predicted is unknown."
    assert told.warned[1].startswith("10 of 100 rows of dev have a label that no row of train has")
    assert 0.6 < column(values, "score")[1] <= 0.9


def test_a_class_rarer_than_folds_is_no_obstacle() -> None:
    inputs = classes((0, 3), count=3)
    inputs.labels["train"] = np.array([0, 1] * 59 + [2, 2])
    assert column(probe(inputs), "score")[1] > 0.5


@pytest.mark.parametrize("options", [{"folds": 1}, {"max_train_rows": 5}, {"pooling": "sum"}])
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        ANALYSES.create("layer-probe", options)


def test_hidden_states_of_an_encoder_are_probed(tmp_path: Path) -> None:
    """One word of each text decides its class, so a bag of word vectors already tells it."""
    data = write_reviews(tmp_path / "reviews.csv", rows=160)
    encoder = save_encoder(tmp_path / "encoder")
    opened = open_data(data, model=str(encoder), cache_dir=tmp_path / "cache", precision="fp32")
    values = LayerProbe(pooling="max").run(opened.states, Progress())
    assert len(values.rows) == 5
    assert max(row["score"] for row in values.rows) > 0.8
    assert json.loads(json.dumps(values.rows)) == values.rows
    assert section_of(values).paragraphs[0].startswith("Pretrained, ")


def test_without_a_penalty_it_is_plain_regression() -> None:
    inputs = scores((0, 1, 2))
    values = probe(inputs, penalty="none")
    assert column(values, "C") == [None] * 3
    (subject,) = inputs.subjects()
    train, dev = (inputs.vectors(subject, split)[:, 2] for split in ("train", "dev"))
    padded = [np.hstack([part, np.ones((len(part), 1))]) for part in (train, dev)]
    solution = np.linalg.lstsq(padded[0], inputs.labels["train"], rcond=None)[0]
    expected = inputs.task.evaluate(inputs.labels["dev"], padded[1] @ solution)[inputs.metric]
    assert column(values, "score")[2] == pytest.approx(expected, abs=1e-5)
    (note,) = section_of(values).tables[0].notes[1:]
    assert "linear regression without penalty" in note
    assert "cross-validation" not in note
    logistic = probe(classes((0, 3)), penalty="none")
    assert "logistic regression without penalty" in section_of(logistic).tables[0].notes[1]
