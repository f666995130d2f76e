"""How long and at which rate strategies train where the user sets neither."""

import pytest

from totune.registry import options_of
from totune.runs.config import Candidate
from totune.strategies.base import STRATEGIES, Strategy
from totune.strategies.defaults import TrainingFacts, batch_size

TUNED = [name for name in STRATEGIES.names() if STRATEGIES.get(name).rule is not None]
each_tuned = pytest.mark.parametrize("name", TUNED)


def facts(rows: int, width: int | None = 384, task: str = "classification") -> TrainingFacts:
    return TrainingFacts(rows, rows // 8, width, task)


def created(name: str, rows: int, **options: object) -> Strategy:
    made = Candidate(name, options).create(facts(rows))
    assert isinstance(made, Strategy)
    return made


def test_every_strategy_but_feature_extraction_has_a_rule() -> None:
    assert set(STRATEGIES.names()) - set(TUNED) == {"feature-extraction"}


@each_tuned
def test_fewer_rows_train_for_more_epochs_and_for_enough_steps(name: str) -> None:
    epochs = [created(name, rows).num_train_epochs for rows in (60, 100, 600, 3_000, 100_000)]
    assert epochs == sorted(epochs, reverse=True)
    # A batch of pairs teaches more than one of rows.
    least_epochs, least_steps = (8, 40) if name == "contrastive" else (15, 60)
    assert epochs[0] >= epochs[1] >= least_epochs
    assert epochs[-1] == STRATEGIES.get(name).rule.least_epochs
    assert all(
        epoch * -(-rows // batch_size(rows)) >= least_steps
        for epoch, rows in zip(epochs, (60, 100, 600, 3_000, 100_000), strict=True)
    )


@each_tuned
def test_wider_encoders_take_smaller_rates(name: str) -> None:
    rates = [Candidate(name).create(facts(600, width)).learning_rate for width in (128, 384, 1024)]
    assert rates == sorted(rates, reverse=True)
    assert rates[1] == STRATEGIES.get(name).rule.learning_rate
    assert Candidate(name).create(facts(600, None)).learning_rate == rates[1]


@each_tuned
def test_tags_take_larger_rates_than_classes_and_scores_none_larger(name: str) -> None:
    tasks = ("regression", "classification", "tagging")
    scores, classes, tags = (
        Candidate(name).create(facts(600, task=t)).learning_rate for t in tasks
    )
    assert scores <= classes < tags


@each_tuned
def test_what_the_user_sets_is_left_as_it_is(name: str) -> None:
    made = created(name, 100, num_train_epochs=3, learning_rate=7e-5)
    assert (made.num_train_epochs, made.learning_rate) == (3, 7e-5)


@each_tuned
def test_without_data_the_options_are_those_of_1000_rows(name: str) -> None:
    usual, known = (options_of(one) for one in (STRATEGIES.create(name), created(name, 1_000)))
    for option in ("learning_rate", "num_train_epochs"):
        assert usual[option] == known[option]


def test_a_gap_on_few_dev_rows_is_given_room() -> None:
    tolerances = [created("stack-and-finetune", rows).gap_tolerance for rows in (200, 800, 8_000)]
    assert tolerances == [0.2, 0.1, 0.05]
    assert created("stack-and-finetune", 200, gap_tolerance=0.01).gap_tolerance == 0.01


def test_a_small_dev_split_stops_nothing() -> None:
    assert created("feature-extraction", 100, num_train_epochs=30).patience == 30
    assert created("feature-extraction", 4_000, num_train_epochs=30).patience == 8
    assert created("feature-extraction", 100, patience=2).patience == 2
