"""What the advice says of the effort that options got."""

from dataclasses import replace

from tests.unit.report.sample_search import search, trial
from tests.unit.runs.samples import record_of
from tests.unit.test_advice import best, runs

from totune.advice.effort import NOT_SEARCHED, describe_effort
from totune.advice.summary import StrategySummary
from totune.search.records import SearchRecord


def summary(strategy: str, count: int = 3) -> StrategySummary:
    records = tuple(record_of(strategy, seed) for seed in range(count))
    return StrategySummary(strategy, records, records)


def searched(strategy: str, count: int = 20, **changes: object) -> SearchRecord:
    """`count` trials of 30 s each."""
    return search([trial(n, 0.8) for n in range(count)], strategy=strategy, **changes)


BOTH = [summary("fine-tuning"), summary("last-2")]


def test_equal_effort_is_one_sentence():
    lines = describe_effort([searched("last-2"), searched("fine-tuning")], BOTH)
    assert lines == [
        "Options were searched on dev with 20 trials per strategy (fine-tuning 10 min, last-2 "
        "10 min); the winners ran over 3 seeds."
    ]


def test_a_budget_of_time_states_the_trials():
    budget = {"seconds": 600.0}
    lines = describe_effort(
        [searched("fine-tuning", 1, budget=budget), searched("last-2", 9, budget=budget)],
        [summary("fine-tuning", 1), summary("last-2", 1)],
    )
    assert lines == [
        "Options were searched on dev for 10 min per strategy (fine-tuning 1 trial, last-2 9 "
        "trials); the winners ran over 1 seed."
    ]


def test_unequal_budgets_are_stated():
    (lines,) = describe_effort([searched("fine-tuning", 4), searched("last-2", 20)], BOTH)
    assert lines == (
        "Options were searched on dev with unequal effort (fine-tuning 4 trials in 2 min, last-2 "
        "20 trials in 10 min); the winners ran over 3 seeds."
    )


def test_a_search_cut_short_is_stated():
    short = searched("fine-tuning", 12, budget={"trials": 20.0})
    lines = describe_effort([short, searched("last-2")], BOTH)
    assert lines[0].startswith("Options were searched on dev with 20 trials per strategy")
    assert lines[1:] == ["The search of fine-tuning was cut short: it had 12 of its 20 trials."]


def test_members_that_were_not_searched_are_named():
    nothing = search([], strategy="majority", ranges={})
    others = [summary("majority"), summary("tf-idf")]
    lines = describe_effort([searched("fine-tuning"), nothing], [summary("fine-tuning"), *others])
    assert lines[1:] == ["Not searched: majority, tf-idf."]


def test_failed_trials_are_stated_with_the_first_message():
    some = [trial(0, 0.8), trial(1, None, error="the loss is not finite."), trial(2, None)]
    lines = describe_effort([search(some)], [summary("fine-tuning")])
    assert lines[1:] == ["2 of 3 trials of fine-tuning failed (the loss is not finite)."]
    every = search([trial(n, None) for n in range(3)])
    assert describe_effort([every], [summary("fine-tuning")])[1:] == [
        "No trial of fine-tuning succeeded, so it ran with its defaults."
    ]


def test_runs_of_strategies_may_differ_in_number():
    found = [summary("fine-tuning", 2), summary("last-2", 3)]
    (lines,) = describe_effort([searched("fine-tuning"), searched("last-2")], found)
    assert lines.endswith("; the winners ran over 2 to 3 seeds.")
    (early,) = describe_effort([searched("fine-tuning")], [])
    assert early.endswith("(fine-tuning 10 min).")


def test_an_advice_states_the_effort():
    study = best() + runs("tf-idf", [900, 901, 902], 1.0)
    unsearched = study.advise()
    assert unsearched.effort == (NOT_SEARCHED,)
    assert "`search_trials=20`" in str(unsearched)
    names = [found.strategy for found in unsearched.standings]
    found = study.advise(searches=[searched(name) for name in names])
    assert len(found.effort) == 1
    assert found.effort[0] in str(found)
    assert found.to_json()["effort"] == list(found.effort)
    assert replace(found, effort=unsearched.effort) == unsearched


def test_an_advice_without_a_usable_run_states_it_too():
    failed = [replace(run, status="failed") for run in best().records]
    found = replace(best(), records=failed).advise()
    assert found.verdict == "none"
    assert found.effort == (NOT_SEARCHED,)
