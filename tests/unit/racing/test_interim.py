"""Who leaves a race, and why."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.racing.samples import DESIGN, Made, analysed, gone, lost, reasons, runs
from tests.unit.runs.samples import COSTS, record_of

from totune.runs.records import EpochRecord

TUNED = runs("fine-tuning", [200, 202, 204], 50.0)


def test_what_is_credibly_worse_leaves() -> None:
    found = analysed(TUNED + runs("tf-idf", [600, 603, 606]))
    assert found.best == "fine-tuning"
    assert reasons(found) == {"tf-idf": "worse"}
    one = gone("tf-idf", found)
    assert (one.against, one.seeds, one.chance) == ("fine-tuning", 3, None)
    assert one.comparison is not None
    assert one.comparison.low > DESIGN.tolerance
    assert found.open == ()


def brief(made: Made) -> Made:
    """The same runs, whose dev loss was still falling when training ended."""
    history = [
        EpochRecord("all", at, {"loss": own}, {"loss": loss}, 1.0)
        for at, (own, loss) in enumerate([(1.26, 1.0), (0.78, 0.59), (0.51, 0.43)], start=1)
    ]
    return Made([replace(record, epochs=history) for record in made.records], made.arrays)


@pytest.mark.parametrize("part", [False, True])
def test_what_is_possibly_undertrained_stays_although_it_is_worse(part: bool) -> None:
    best = runs("last-2", [200, 202, 204], 5.0)
    far = runs("fine-tuning", [500, 503, 506], 50.0)
    assert reasons(analysed(best + far, part=part)) == {"fine-tuning": "worse"}
    found = analysed(best + brief(far), part=part)
    assert found.eliminated == ()
    assert [(c.strategy, c.verdict) for c in found.open] == [("fine-tuning", "worse as trained")]


def test_what_is_possibly_undertrained_stays_whatever_it_costs() -> None:
    """More expensive than one that keeps up, and unlikely to win."""
    design = replace(DESIGN, tolerance=0.1)
    cheap, dear = runs("last-2", [205, 207, 209], 5.0), elsewhere("lora", [418, 420, 422], 20.0)
    assert reasons(analysed(TUNED + cheap + brief(dear), design)) == {"last-2": "keeps up"}
    first, far = scattered("last-2", [20], 5.0, 1), scattered("lora", [45], 20.0, 2)
    assert analysed(first + brief(far)).eliminated == ()


def test_what_does_not_beat_a_constant_answer_keeps_no_race_open() -> None:
    """A constant answer errs on half of 60 rows; no test can tell the two from the best."""
    best, near = few("lora", [22, 23], 20.0, 1), few("tf-idf", [30, 31], 1.0, 2)
    also = few("last-2", [24, 23], 5.0, 3)
    found = analysed(best + near + also)
    assert reasons(found)["tf-idf"] == "constant answer"
    assert "changes nothing" not in reasons(analysed(best + near)).values()
    assert analysed(few("lora", [22], 20.0, 1) + few("tf-idf", [30], 1.0, 2)).eliminated == ()
    both = analysed(few("lora", [30, 31], 20.0, 1) + near)
    assert "constant answer" not in reasons(both).values()


def test_one_seed_finds_nothing_worse() -> None:
    found = analysed(runs("fine-tuning", [200], 50.0) + runs("tf-idf", [600]))
    assert found.eliminated == ()
    assert [c.strategy for c in found.open] == ["tf-idf"]
    assert math.isnan(found.open[0].low)


def elsewhere(label: str, wrong: list[int], seconds: float) -> Made:
    """Runs that err on rows of their own, each seed on others."""
    made = runs(label, [0] * len(wrong), seconds)
    rng = np.random.default_rng(0)
    for arrays, count in zip(made.arrays.values(), wrong, strict=True):
        at = rng.permutation(len(arrays["targets"]))[:count]
        arrays["predictions"][at] = 1 - arrays["predictions"][at]
    return made


def test_what_is_more_expensive_than_one_that_keeps_up_leaves_but_for_the_best() -> None:
    design = replace(DESIGN, tolerance=0.1)
    cheap, middle = runs("last-2", [205, 207, 209], 5.0), elsewhere("lora", [418, 420, 422], 20.0)
    found = analysed(TUNED + cheap + middle, design)
    assert found.best == "fine-tuning"
    assert reasons(found) == {"last-2": "keeps up", "lora": "more expensive"}


def test_what_kept_up_before_still_counts() -> None:
    design = replace(DESIGN, tolerance=0.1)
    cheap, middle = runs("last-2", [205, 207], 5.0), elsewhere("lora", [418, 420, 422], 20.0)
    found = analysed(TUNED + cheap + middle, design, earlier={"last-2": "keeps up"})
    assert reasons(found) == {"lora": "more expensive"}


def few(label: str, wrong: list[int], seconds: float, salt: int) -> Made:
    return scattered(label, wrong, seconds, salt, n_rows=60)


def scattered(label: str, wrong: list[int], seconds: float, salt: int, n_rows: int = 200) -> Made:
    """Runs on few rows, each strategy erring on rows of its own."""
    made = runs(label, [0] * len(wrong), seconds, rows=n_rows)
    rows = np.random.default_rng(salt).permutation(n_rows)
    for arrays, count in zip(made.arrays.values(), wrong, strict=True):
        arrays["predictions"][rows[:count]] = 1 - arrays["predictions"][rows[:count]]
    return made


def test_what_costs_more_and_is_far_behind_cannot_win_after_one_seed() -> None:
    best, far = scattered("last-2", [20], 5.0, 1), scattered("lora", [45], 20.0, 2)
    near = scattered("adapters", [21], 30.0, 3)
    found = analysed(best + far + near)
    assert reasons(found) == {"lora": "cannot win"}
    assert 0 < (gone("lora", found).chance or 0) < 0.1
    assert [c.strategy for c in found.open] == ["adapters"]


def test_what_all_the_seeds_would_not_settle_leaves_from_the_second_on() -> None:
    dear, cheap = scattered("lora", [20, 21], 20.0, 1), scattered("last-2", [23, 24], 5.0, 2)
    found = analysed(dear + cheap)
    assert (found.best, reasons(found)) == ("lora", {"last-2": "stays open"})
    first = Made([r for r in (dear + cheap).records if r.seed == 0], (dear + cheap).arrays)
    assert analysed(first).eliminated == ()


def test_once_the_verdict_stays_open_only_what_may_keep_up_goes_on() -> None:
    dear, cheap = scattered("lora", [20, 21], 20.0, 1), scattered("last-2", [23, 24], 5.0, 2)
    far = scattered("tf-idf", [41, 43], 1.0, 3)
    found = analysed(dear + cheap + far)
    assert reasons(found) == {"last-2": "stays open", "tf-idf": "changes nothing"}
    alone = analysed(dear + far)
    assert alone.eliminated == ()
    later = analysed(dear + cheap + far, earlier={"last-2": "stays open"})
    assert reasons(later) == {"tf-idf": "changes nothing"}


def test_a_strategy_without_a_usable_run_has_two_rounds() -> None:
    failed = {"status": "failed", "costs": None, "error": "it broke"}
    once = analysed(runs("tf-idf", [600]) + lost("lora", 1, **failed))
    assert once.eliminated == ()
    found = analysed(TUNED + lost("lora", 2, **failed) + lost("last-2", 2, degenerate="only 'a'"))
    assert reasons(found) == {"lora": "no usable run", "last-2": "no usable run"}
    assert gone("lora", found).comparison is None
    assert analysed(lost("lora", 2, **failed)).best is None


def test_identical_strategies_are_settled_for_the_cheaper_one() -> None:
    design = replace(DESIGN, tolerance=0.02)
    found = analysed(runs("a", [200, 210, 205], 5.0) + runs("b", [200, 210, 205], 9.0), design)
    assert found.best == "a"
    assert reasons(found)["b"] in ("keeps up", "cannot win")


def test_baselines_that_never_vary_are_judged_by_rows_alone() -> None:
    found = analysed(runs("majority", [1000] * 2) + runs("tf-idf", [600] * 2, 2.0))
    assert (found.best, reasons(found)) == ("tf-idf", {"majority": "worse"})
    one = gone("majority", found).comparison
    assert one is not None
    assert one.seed_sd == 0.0


def test_a_lower_error_is_better() -> None:
    targets = np.linspace(0, 5, 400)
    made = Made()
    for label, shift, seconds in (("good", 0.1, 9.0), ("bad", 1.0, 1.0)):
        for seed in range(3):
            costs = replace(COSTS, train_seconds=seconds)
            record = record_of(label, seed, costs=costs, epochs=[])
            predictions = targets + shift + seed / 100
            made.records.append(record)
            made.arrays[record.fingerprint] = {"targets": targets, "predictions": predictions}
    found = analysed(made, replace(DESIGN, metric="mse"))
    assert (found.best, reasons(found)) == ("good", {"bad": "worse"})


def test_on_a_part_of_the_rows_only_more_expensive_and_worse_leaves() -> None:
    best = runs("last-2", [200, 202], 5.0)
    others = runs("lora", [500, 503], 20.0) + runs("tf-idf", [500, 503]) + lost("adapters", 2)
    found = analysed(best + others, part=True)
    assert reasons(found) == {"lora": "worse"}
    assert [c.strategy for c in found.open] == ["tf-idf"]


def test_what_has_not_learnt_on_a_part_of_the_rows_stays() -> None:
    """A constant answer is wrong on half of the rows, the best on a tenth."""
    best = runs("last-2", [200, 202], 5.0)
    found = analysed(best + runs("lora", [650, 653], 20.0), part=True)
    assert found.eliminated == ()
    assert reasons(analysed(best + runs("lora", [550, 553], 20.0), part=True)) == {"lora": "worse"}


def test_p_values_are_those_of_all_analyses() -> None:
    made = TUNED + runs("tf-idf", [215, 230, 225])
    one, four = analysed(made, replace(DESIGN, analyses=1)), analysed(made)
    first, second = (
        found.open or [g.comparison for g in found.eliminated] for found in (one, four)
    )
    assert first[0] is not None
    assert second[0] is not None
    assert second[0].p_tolerance == pytest.approx(min(1.0, 4 * first[0].p_tolerance))
    assert (second[0].p_tolerance <= 0.05) == (second[0].verdict != "open")
