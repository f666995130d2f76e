"""How a race is told in a report."""

from dataclasses import replace

from tests.unit.racing.samples import analysed, runs

from totune.racing.records import Elimination, Race, Round
from totune.report.race_section import race_section

MADE = runs("fine-tuning", [200, 204, 202], 50.0) + runs("tf-idf", [700, 704, 702], 2.0)
SEEN = analysed(MADE)
CHANCE = Elimination("lora", "cannot win", "fine-tuning", 1, 0.034)
ROUNDS = (
    Round(1.0, (0,), ("fine-tuning", "tf-idf", "lora"), 60.0, "fine-tuning", (CHANCE,)),
    Round(1.0, (1,), ("fine-tuning", "tf-idf"), 30.0, SEEN.best, SEEN.eliminated),
)
RACE = Race("accuracy", 0.005, 5, 0.05, ROUNDS, (), "settled", 300.0)


def test_without_a_race_there_is_no_section() -> None:
    assert race_section(None).is_empty()
    assert race_section(replace(RACE, rounds=())).is_empty()


def test_rounds_tell_who_ran_and_what_it_cost() -> None:
    rounds, _ = race_section(RACE).tables
    assert rounds.values("Strategies") == [3, 2]
    assert rounds.values("Cost so far") == [60.0, 90.0]
    assert [row.cells[4].detail for row in rounds.rows] == ["20.0%", "30.0%"]
    assert rounds.values("Left") == ["lora", "tf-idf"]


def test_who_left_is_told_with_the_reason() -> None:
    section = race_section(RACE)
    _, left = section.tables
    assert left.values("Why") == ["more expensive, and unlikely to win (3%)", "credibly worse"]
    assert left.values("After round") == [1, 2]
    assert [row.cells[4].text for row in left.rows] == ["–", "25.0"]
    assert "30.0% of what all strategies over 5 seeds would have cost" in section.paragraphs[1]
    assert section.paragraphs[2].startswith("lora leaves the race: it costs more than fine-tuning")
    assert "95% confidence" in section.paragraphs[0]
    assert "part of the training rows" not in section.paragraphs[0]


def test_the_assumption_of_a_part_is_told() -> None:
    part = replace(ROUNDS[0], fraction=0.25)
    words = race_section(replace(RACE, rounds=(part, *ROUNDS[1:]))).paragraphs[0]
    assert "supposes that more rows do not turn the two around" in words


def test_a_race_that_goes_on_or_whose_costs_are_unknown() -> None:
    going = race_section(replace(RACE, ended="", rounds=ROUNDS[:1], full_seconds=float("nan")))
    assert going.paragraphs[1] == "It is not over yet."
