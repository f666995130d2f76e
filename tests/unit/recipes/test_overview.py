"""The table across data sets: means and ranks over what all rows have, zeros being scores."""

from tests.unit.recipes.test_several import recipe_of

from totune.recipes.overview import overview_table, signed, three
from totune.recipes.results import Outcome

RECIPE = recipe_of(
    rows=[
        {"label": "a", "strategy": "counts", "paper": {"reviews": {"accuracy": 0.5}}},
        {"label": "b", "strategy": "tf-idf", "paper": {"reviews": {"accuracy": 0.25}}},
        {"label": "c", "strategy": "hashing"},
    ],
    differences=[{"label": "a - b", "first": "a", "second": "b"}],
    analyses=[],
)


def table_of(*scores: tuple[str, str, float]):
    metric = {"reviews": "accuracy", "scores": "pearson"}
    paper = {(row.label, data): row.paper.get(data, {}) for row in RECIPE.rows for data in metric}
    cells = {
        (label, data): Outcome(label, {metric[data]: (value,)}, paper[label, data])
        for label, data, value in scores
    }
    return overview_table(RECIPE, cells)


def test_a_score_of_zero_is_a_score() -> None:
    table = table_of(
        *(("a", "reviews", 0.0), ("b", "reviews", 0.5)),
        *(("a", "scores", 0.3), ("b", "scores", 0.1)),
    )
    assert table.values("Mean") == [0.15, 0.3, None, None]
    assert table.values("Mean rank") == [1.5, 1.5, None, None]
    assert "(Reviews, Scores)" in table.notes[1]


def test_means_leave_out_data_that_some_row_lacks() -> None:
    table = table_of(
        *(("a", "reviews", 0.25), ("b", "reviews", 0.5), ("c", "reviews", 0.5)),
        ("a", "scores", 0.3),
    )
    assert table.values("Mean") == [0.25, 0.5, 0.5, None]
    assert table.values("Mean rank") == [3.0, 1.5, 1.5, None]
    (difference,) = [row for row in table.rows if row.cells[0].text == "a - b"]
    assert (difference.cells[1].text, difference.cells[1].detail) == ("−0.250", "paper +0.250")


def test_counts_are_written_in_full() -> None:
    assert [three(1_189_632.0), three(0.5), three(None)] == ["1,189,632", "0.500", "–"]
    assert [signed(0.0), signed(-1_000.0), signed(-0.0014)] == ["0", "−1,000", "−0.001"]
