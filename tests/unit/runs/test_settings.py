"""Everything that can be wrong with settings is found before anything is loaded."""

from typing import Any

import pytest

from totune.errors import ConfigError
from totune.registry import build
from totune.runs.config import Candidate
from totune.runs.settings import (
    DEFAULT_PAIR_STRATEGIES,
    DEFAULT_STRATEGIES,
    DEFAULT_TAGGING_STRATEGIES,
    Settings,
)


def faults(**settings: Any) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        build(Settings, settings, "compare").candidates()
    return raised.value.faults


def test_the_default_settings_are_right() -> None:
    settings = Settings()
    assert [member.strategy for member in settings.candidates()] == list(DEFAULT_STRATEGIES)
    tagging = [member.strategy for member in settings.candidates("tagging")]
    assert tagging == list(DEFAULT_TAGGING_STRATEGIES)
    assert [member.strategy for member in Settings(task="tagging").candidates()] == tagging
    pairs = [member.strategy for member in settings.candidates("regression", pairs=True)]
    assert pairs == list(DEFAULT_PAIR_STRATEGIES)
    assert settings.seed_list == [0, 1, 2]


def test_members_get_their_options_and_head() -> None:
    strategies = ["last-2", {"strategy": "last-2", "label": "slow", "options": {"k": 2}}, "tf-idf"]
    settings = build(
        Settings,
        {"strategies": strategies, "options": {"learning_rate": 0.1, "tf-idf.C": 2.0}},
        "compare",
    )
    assert settings.candidates() == [
        Candidate("last-2", {"learning_rate": 0.1}),
        Candidate("last-2", {"k": 2, "learning_rate": 0.1}, "slow"),
        Candidate("tf-idf", {"C": 2.0}),
    ]


@pytest.mark.parametrize(("seeds", "expected"), [(2, [0, 1]), ([7, 3], [7, 3]), ((5,), [5])])
def test_seeds_are_a_number_or_a_list(seeds: Any, expected: list[int]) -> None:
    assert build(Settings, {"seeds": seeds}, "compare").seed_list == expected


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("fraction", 0.0, "above 0 and at most 1"),
        ("fraction", 1.5, "above 0 and at most 1"),
        ("seeds", 0, "at least one, at most 10,000, none negative, none twice"),
        ("seeds", [1, -1], "at least one, at most 10,000, none negative, none twice"),
        ("seeds", [3, 4, 3], "at least one, at most 10,000, none negative, none twice"),
        ("max_length", 7, "at least 8 word pieces"),
        ("per_device_train_batch_size", 0, "at least 1"),
        ("max_grad_norm", 0.0, "above 0"),
        ("tolerance", -0.1, "at least 0"),
        ("strategies", [], "at least one name"),
        ("search_trials", 0, "at least 1"),
        ("search_seconds", 0.0, "above 0"),
    ],
)
def test_a_value_out_of_range_is_told_with_its_limit(name: str, value: Any, limit: str) -> None:
    assert faults(**{name: value}) == [f"{name}={value!r} is out of range: it must be {limit}."]


def test_a_search_has_one_budget_and_its_storage_belongs_to_one() -> None:
    (both,) = faults(search_trials=3, search_seconds=60.0)
    assert both == "`search_trials` and `search_seconds` are one budget or the other, not both."
    (alone,) = faults(search_storage="sqlite:///x.db")
    assert "without a search: add `search_trials=20`" in alone


def test_a_search_without_optuna_is_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("totune.runs.settings.find_spec", lambda _: None)
    assert faults(search_trials=3) == ["A search needs Optuna: pip install 'totune[search]'."]
    assert Settings().candidates()


def test_an_unknown_precision_is_found_before_anything_is_loaded() -> None:
    assert faults(precision="bf17") == [
        "precision='bf17' is not a precision. Did you mean 'bf16'? Known: auto, bf16, fp32."
    ]


def test_all_faults_are_told_together() -> None:
    found = faults(
        fraction=2.0, precision="fp8", max_length=1, strategies=["tfidf", "last-2", "last-2"]
    )
    assert len(found) == 5
    for number, part in enumerate(
        ("fraction=2.0", "max_length=1", "'fp8'", "'tfidf'. Did you mean 'tf-idf'?", "two members")
    ):
        assert part in found[number]


def test_values_of_a_wrong_type_are_told_together() -> None:
    found = faults(fraction="much", seeds="many", nonsense=1)
    assert any("'nonsense'" in fault for fault in found)
    assert any("fraction='much'" in fault for fault in found)
    assert any("seeds" in fault and "'many'" in fault for fault in found)


def test_an_option_of_a_wrong_type_or_range_is_told_for_every_member() -> None:
    strategies = ["last-2", "fine-tuning"]
    found = faults(strategies=strategies, options={"learning_rate": "fast"})
    assert [fault.partition(":")[0] for fault in found] == [
        "strategy last-k",
        "strategy fine-tuning",
    ]
    assert all("learning_rate='fast'" in fault for fault in found)
    assert "num_train_epochs=0" in faults(strategies=strategies, options={"num_train_epochs": 0})[0]


def test_a_member_that_is_no_member_is_told() -> None:
    told = " ".join(faults(strategies=[{"name": "last-2"}]))
    assert "no option 'name'" in told
    assert "Known: head, label, options, strategy" in told
    (fault,) = faults(strategies=[{"strategy": "tf-idf", "head": "esim", "label": "sparse"}])
    assert "candidate sparse: head='esim' is of no use to 'tf-idf', a baseline" in fault
    (fault,) = faults(strategies=[{"strategy": "last-2", "head": "ezim", "label": "heavy"}])
    assert "candidate heavy: There is no head called 'ezim'. Did you mean 'esim'?" in fault
