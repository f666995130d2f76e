"""How blocks are named and drawn."""

from xml.etree import ElementTree

import numpy as np
import pytest

from totune.analyses.drawing.blocks import BlockFigure, BlockLine, draw_blocks, strategies_of
from totune.analyses.measuring.blocks import (
    sampled_rows,
    spread_over_seeds,
    told_block,
    told_blocks,
    values_by_block,
)
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
    assert told_blocks(blocks) == told


def test_a_block_is_told_by_its_place() -> None:
    told = [told_block(block, 12) for block in (0, 5, 12)]
    assert told == ["the embedding layer", "layer 5 of 12", "the top layer"]


def test_rows_are_drawn_in_order_among_those_with_a_known_label() -> None:
    targets = np.array([0, -100, 1, 0, 1, -100, 0, 1])
    task = Classification(("a", "b"))
    every, unseen = sampled_rows(targets, task, 100, seed=0)
    assert (every.tolist(), unseen) == ([0, 2, 3, 4, 6, 7], 2)
    drawn, _ = sampled_rows(targets, task, 3, seed=0)
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
    lines = (
        BlockLine("pretrained", (0.1, 0.2), None, (0.0, 0.0)),
        BlockLine("a<b>", (0.1, 0.6), (0.1, 0.1), (0.0, 0.1)),
    )
    figure = BlockFigure(
        "Information",
        "bits",
        lines,
        strategies_of(["pretrained", "a<b>"], ()),
        control="permuted",
        null=("noise", (0.0, 0.0)),
        bound=("entropy", 1.0),
    )
    svg = draw_blocks(figure)
    words = {"".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.text}
    assert {"pretrained", "a<b>", "permuted", "noise", "entropy", "bits"} <= words
    assert draw_blocks(figure) == svg
