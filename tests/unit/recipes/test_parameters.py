"""Counts of a plan-only recipe are exact and need no weights."""

from pathlib import Path

from tests.tiny_data import save_encoder

from totune.recipes.loading import load_recipe
from totune.recipes.parameters import count_parameters

RECIPE = load_recipe("adapters-parameters")


def test_the_counts_are_the_papers() -> None:
    (group,) = count_parameters(RECIPE).groups
    counts = {row.label: row.scores["parameters"] for row in group.outcomes}
    assert counts == {
        "Houlsby": (1_189_632.0,),
        "Ours (not shared)": (3_006_720.0,),
        "Ours (3-shared)": (396_544.0,),
    }
    assert all(row.difference("parameters") == 0 for row in group.outcomes)


def test_another_encoder_can_be_counted(tmp_path: Path) -> None:
    encoder = str(save_encoder(tmp_path / "encoder"))
    rows = RECIPE.rows[:1]
    (group,) = count_parameters(RECIPE.model_copy(update={"rows": rows}), encoder).groups
    assert group.outcomes[0].scores["parameters"][0] < 100_000
