"""How blocks are named and drawn."""

from xml.etree import ElementTree

import numpy as np
import pytest

from totune.analyses.blocks import (
    describe_block,
    describe_blocks,
    draw_blocks,
    figure_rows,
    spread_over_seeds,
    subject_colors,
    values_by_block,
)
from totune.analyses.inputs.hidden_states import sample_rows
from totune.tasks.classification import Classification


@pytest.mark.parametrize(
    ("blocks", "told"),
    [
        ([0], "the embeddings"),
        ([4], "layer 4"),
        ([7, 3, 4, 5], "layers 3–5, 7"),
        ([0, 1, 2], "the embeddings and layers 1–2"),
    ],
)
def test_blocks_in_a_sentence(blocks: list[int], told: str) -> None:
    assert describe_blocks(blocks) == told


def test_a_block_is_told_by_its_place() -> None:
    told = [describe_block(block, 12) for block in (0, 5, 12)]
    assert told == ["the embedding layer", "layer 5 of 12", "the top layer"]


def test_rows_are_drawn_in_order_among_those_with_a_known_label() -> None:
    targets = np.array([0, -100, 1, 0, 1, -100, 0, 1])
    task = Classification(("a", "b"))
    every, unseen = sample_rows(targets, task, 100, seed=0)
    assert (every.tolist(), unseen) == ([0, 2, 3, 4, 6, 7], 2)
    drawn, _ = sample_rows(targets, task, 3, seed=0)
    assert len(drawn) == 3
    assert drawn.tolist() == sorted({*drawn.tolist()} & {*every.tolist()})


def test_values_stand_by_seed_and_block() -> None:
    rows = [{"seed": seed, "bits": seed + block} for seed in (0, 4) for block in (1, 2)]
    values = values_by_block(rows, "bits")
    assert values.tolist() == [[1, 2], [5, 6]]
    spread = spread_over_seeds(values)
    assert spread is not None
    assert spread.tolist() == pytest.approx([np.sqrt(8)] * 2)
    assert spread_over_seeds(values[:1]) is None


def test_a_picture_names_every_line() -> None:
    rows = [
        *figure_rows("pretrained", np.array([[0.1, 0.2]]), np.array([[0.0, 0.0]])),
        *figure_rows("a<b>", np.array([[0.0, 0.5], [0.2, 0.7]]), np.array([[0.0, 0.1]] * 2)),
    ]
    null = [{"block": block, "mean": 0.0} for block in (0, 1)]

    def draw() -> str:
        return draw_blocks(
            "Information",
            "bits",
            rows,
            subject_colors(rows, ()),
            control="permuted",
            null=("noise", null),
            bound=("entropy", 1.0),
        )

    svg = draw()
    words = ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.text]
    for name in ("pretrained", "a<b>", "permuted", "noise", "entropy", "bits"):
        assert words.count(name) == 1
    assert draw() == svg


def test_rows_of_a_figure_are_means_with_a_deviation_over_seeds() -> None:
    values, controls = np.array([[1.0, 2.0], [3.0, 6.0]]), np.array([[0.0, 1.0], [0.0, 3.0]])
    first, second = figure_rows("lora", values, controls)
    assert (first["block"], first["mean"], first["control"]) == (0, 2.0, 0.0)
    assert (second["block"], second["mean"], second["control"]) == (1, 4.0, 2.0)
    assert second["high"] - second["mean"] == pytest.approx(np.sqrt(8))
    assert second["mean"] - second["low"] == pytest.approx(np.sqrt(8))
    (alone, _) = figure_rows("lora", values[:1], controls[:1])
    assert alone["low"] is alone["high"] is None
