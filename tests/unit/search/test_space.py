"""What is searched is what nobody has set, where a search could find the default."""

from typing import Any

import pytest

from totune.ranges import Choices, Floats, Ints
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.search.space import label_of, range_to_json, space_of


def test_options_of_strategy_and_head_are_searched_from_their_defaults(
    search_context: Context,
) -> None:
    space = space_of(Candidate("fine-tuning"), search_context)
    made = Candidate("fine-tuning").create(search_context.facts)
    rate, epochs = made.learning_rate, made.num_train_epochs
    assert space.ranges["learning_rate"] == Floats(rate * 0.2, rate * 5, log=True)
    assert space.ranges["num_train_epochs"] == Ints(epochs // 2, 2 * epochs, log=True)
    assert space.ranges["schedule"] == Choices(("linear", "slanted-triangular"))
    assert space.ranges["head.dropout"] == Floats(0.0, 0.5)
    assert (space.defaults["learning_rate"], space.defaults["num_train_epochs"]) == (rate, epochs)
    assert space.defaults["head.dropout"] == 0.1
    assert space.fixed == {}
    assert set(space.defaults) == set(space.ranges)
    assert "ratio" not in space.ranges


def test_what_is_set_by_hand_is_not_searched(search_context: Context) -> None:
    options = {"learning_rate": 1e-3, "head.dropout": 0.1}
    space = space_of(Candidate("fine-tuning", options), search_context)
    assert space.fixed == options
    assert not {"learning_rate", "head.dropout"} & set(space.ranges)
    assert "num_train_epochs" in space.ranges


def test_the_number_in_a_name_is_set_by_hand(search_context: Context) -> None:
    named, plain = Candidate("last-3"), Candidate("last-k")
    assert space_of(named, search_context).fixed == {"k": 3}
    assert "k" not in space_of(named, search_context).ranges
    assert space_of(plain, search_context).ranges["k"] == Ints(1, 4)
    assert label_of(named, space_of(named, search_context)) == "last-3"
    assert label_of(plain, space_of(plain, search_context)) == "last-k"
    own = Candidate("last-k", label="top")
    assert label_of(own, space_of(own, search_context)) == "top"
    fixed = Candidate("last-k", {"k": 2})
    assert label_of(fixed, space_of(fixed, search_context)) == "last-2"
    peft = Candidate("peft")
    assert label_of(peft, space_of(peft, search_context)) == "peft-ia3"


def test_a_default_that_no_search_could_find_is_left_as_it_is(
    search_context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = Candidate("feature-extraction", {"solver": "gradient"})
    assert "head.dropout" in space_of(member, search_context).ranges
    strategy = type(member.create())
    monkeypatch.setattr(strategy, "head_defaults", lambda *_: {"dropout": 0.75})
    assert "head.dropout" not in space_of(member, search_context).ranges


@pytest.mark.parametrize(
    ("name", "searched"),
    [("tf-idf", {"ngrams", "C"}), ("sentence-embedding", {"normalize", "C"}), ("majority", set())],
)
def test_baselines_have_options_too(search_context: Context, name: str, searched: set[str]) -> None:
    assert set(space_of(Candidate(name), search_context).ranges) == searched


@pytest.mark.parametrize(
    ("range_", "facts"),
    [
        (Floats(0.1, 1.0, log=True), {"kind": "floats", "low": 0.1, "high": 1.0, "log": True}),
        (Ints(1, 4), {"kind": "ints", "low": 1, "high": 4, "log": False}),
        (Choices((True, False)), {"kind": "choices", "values": [True, False]}),
    ],
)
def test_a_range_as_plain_data(range_: Any, facts: dict[str, Any]) -> None:
    assert range_to_json(range_) == facts


def test_a_solved_head_has_no_steps_to_search(search_context: Context) -> None:
    assert space_of(Candidate("feature-extraction"), search_context).ranges == {}
    learned = Candidate("feature-extraction", {"layers": "scalar-mix"})
    assert "learning_rate" in space_of(learned, search_context).ranges
