"""The forecast before training: how signals become chances, and what came true."""

import dataclasses
import json
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.tiny_data import save_encoder, write_pairs, write_reviews, write_scores
from tests.unit.analyses.small_inputs import forecast_inputs
from tests.unit.runs.samples import record_of

from totune.analyses.base import ANALYSES, AnalysisResult
from totune.analyses.forecast import (
    TRIED,
    FamilyForecast,
    ForecastInputs,
    headroom,
    passes,
    seconds_per_row,
)
from totune.analyses.forecast_model import (
    FAMILIES,
    FEWEST_ROWS,
    RESULTS,
    Kind,
    Shape,
    Signals,
    brier,
    family_of,
    forecast,
    headroom_weight,
    prior_of,
)
from totune.analyses.forecast_section import forecast_outcome
from totune.errors import ConfigError, DataError
from totune.progress import Progress
from totune.runs.records import RunRecord
from totune.strategies.base import STRATEGIES

EVERY = [(kind, shape) for kind in get_args(Kind) for shape in get_args(Shape)]
SINGLE: tuple[Kind, Shape] = ("transformer", "single texts")


def frozen(signals: Signals) -> float:
    return forecast(signals)["frozen"].probability


@pytest.mark.parametrize(("kind", "shape"), EVERY)
@pytest.mark.parametrize("rows", [50, 100_000])
@pytest.mark.parametrize("left", [None, 0.0, 0.4, 9.0])
def test_chances_sum_to_one_and_are_bounded_by_evidence(
    kind: Kind, shape: Shape, rows: int, left: float | None
) -> None:
    chances = forecast(Signals(kind, shape, rows, left))
    assert sum(chance.probability for chance in chances.values()) == pytest.approx(1)
    results, families = prior_of(kind, shape).results, len(chances)
    for chance in chances.values():
        assert 0 < chance.low < chance.probability < chance.high < 1
        assert chance.probability < (results + 1) / (results + families)
    assert ("inserted modules" in chances) == (kind == "transformer")


def test_the_prior_is_the_papers_guideline() -> None:
    assert leading("language model", "pairs") == "frozen"
    assert leading("language model", "scores") == "frozen"
    assert leading("transformer", "pairs") != "frozen"
    assert leading("transformer", "scores") == "whole encoder"
    alike = forecast(Signals("language model", "single texts", 10_000))
    assert len({round(chance.probability, 6) for chance in alike.values()}) == 1


def leading(kind: Kind, shape: Shape) -> str:
    chances = forecast(Signals(kind, shape, 10_000))
    return max(chances, key=lambda family: chances[family].probability)


def test_more_headroom_means_more_tuning() -> None:
    assert headroom_weight()[0] > 0
    found = [frozen(Signals(*SINGLE, 5_000, left)) for left in (0.0, 0.2, 0.5, 0.9)]
    assert all(before > after for before, after in pairwise(found))
    assert frozen(Signals(*SINGLE, 5_000, 1.5)) == frozen(Signals(*SINGLE, 5_000, 4.0))


def test_headroom_says_nothing_of_language_models() -> None:
    signals = [Signals("language model", "pairs", 5_000, left) for left in (0.1, 0.9)]
    assert frozen(signals[0]) == frozen(signals[1])


def test_few_rows_mean_frozen_and_less_certain() -> None:
    found = [frozen(Signals(*SINGLE, rows, 0.4)) for rows in (1_000, 300, 30)]
    assert found == sorted(found)
    enough, few = (forecast(Signals(*SINGLE, rows, 0.4)) for rows in (FEWEST_ROWS, 1_000))
    assert spread(few) > spread(enough)


def spread(chances: Any) -> float:
    return max(chance.high - chance.low for chance in chances.values())


def test_results_left_out_are_forecast_better_than_by_equal_chances() -> None:
    errors, ignorant = [], []
    for one in RESULTS:
        won = one.beats("frozen")
        if won is None or one.rows is None:
            continue
        rest = [other for other in RESULTS if other is not one]
        chances = forecast(Signals(one.kind, one.shape, one.rows, one.headroom), rest)
        both = [chances[family].probability for family in ("frozen", "whole encoder")]
        errors.append((both[0] / sum(both) - won) ** 2)
        ignorant.append((0.5 - won) ** 2)
    assert len(errors) == 22
    assert sum(errors) / 22 == pytest.approx(0.10, abs=0.005)
    assert sum(ignorant) / 22 == pytest.approx(0.15, abs=0.005)


def test_every_strategy_is_of_a_family() -> None:
    assert {family_of(name) for name in STRATEGIES.names()} == set(FAMILIES)
    for family, name in TRIED.items():
        assert family_of(STRATEGIES.create(name).name) == family
    assert family_of("tf-idf") is None


def test_headroom_is_the_share_of_errors_that_are_left() -> None:
    assert headroom("accuracy", 0.8, 0.5) == pytest.approx(0.4)
    assert headroom("accuracy", 0.4, 0.5) == pytest.approx(1.2)
    assert headroom("mse", 1.0, 4.0) == 0.25
    assert headroom("accuracy", 1.0, 1.0) == headroom("mse", 0.0, 0.0) == 1.0


def test_the_brier_score() -> None:
    assert brier({"a": 1.0, "b": 0.0}, "a") == 0
    assert brier({"a": 1.0, "b": 0.0}, "b") == 2
    assert brier({"a": 0.5, "b": 0.5}, "b") == 0.5


ROWS = [
    {"family": "frozen", "probability": 0.2, "low": 0.1, "high": 0.3, "prior": 0.2},
    {"family": "top layers", "probability": 0.2, "low": 0.1, "high": 0.3, "prior": 0.2},
    {"family": "whole encoder", "probability": 0.6, "low": 0.4, "high": 0.7, "prior": 0.6},
]
ROWS = [{**row, "strategy": "lora", "seconds": 60.0} for row in ROWS]


def run_of(name: str, test: float, label: str = "", **facts: Any) -> RunRecord:
    record = record_of(label or name, config_only(facts), test={"accuracy": test, "mse": test})
    config = {**record.config, "strategy": {"name": name, "options": {}}}
    return dataclasses.replace(record, config=config, **facts)


def config_only(facts: dict[str, Any]) -> int:
    return int(facts.pop("seed", 0))


def test_what_came_true_is_the_family_of_the_best_strategy() -> None:
    runs = [
        run_of("feature-extraction", 0.8, seed=0),
        run_of("feature-extraction", 0.7, seed=1),
        run_of("fine-tuning", 0.76),
        run_of("gradual-unfreezing", 0.74),
        run_of("tf-idf", 0.99),
        run_of("last-k", 0.98, "last-2", status="failed"),
    ]
    found = forecast_outcome(ROWS, runs, "accuracy")
    assert found is not None
    assert found.best == {
        "frozen": ("feature-extraction", 0.75),
        "whole encoder": ("fine-tuning", 0.76),
    }
    assert found.winner == "whole encoder"
    assert found.lead == pytest.approx(0.01)
    assert found.chances == pytest.approx({"frozen": 0.25, "whole encoder": 0.75})
    assert found.brier == pytest.approx(2 * 0.25**2)
    assert found.uninformed == 0.5
    worse = forecast_outcome(ROWS, runs, "mse")
    assert worse is not None
    assert worse.winner == "whole encoder"  # of errors 0.74 is the least
    assert worse.best["whole encoder"] == ("gradual-unfreezing", 0.74)


def test_one_family_is_nothing_to_compare() -> None:
    assert (
        forecast_outcome(ROWS, [run_of("fine-tuning", 0.8), run_of("tf-idf", 0.7)], "accuracy")
        is None
    )
    assert forecast_outcome(ROWS, [], "accuracy") is None


@pytest.fixture(scope="module")
def forecast_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forecast")
    save_encoder(folder / "encoder")
    write_reviews(folder / "reviews.csv", rows=120)
    write_pairs(folder / "pairs.csv")
    write_scores(folder / "scores.csv")
    return folder


def measured(values: AnalysisResult) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """All but times."""
    rows = [{name: row[name] for name in row if name != "seconds"} for row in values.rows]
    return rows, {name: fact for name, fact in values.facts.items() if name != "seconds_per_row"}


def test_a_forecast_is_plain_data_and_the_same_again(forecast_folder: Path) -> None:
    command = ("totune", "compare", "my reviews.csv")
    case = forecast_inputs(forecast_folder, corpus=["w1 w2 w3", "w4"], command=command)
    values = FamilyForecast(rows=60).run(case, Progress())
    assert measured(FamilyForecast(rows=60).run(case, Progress())) == measured(values)
    facts = json.loads(json.dumps(values.facts))
    assert (facts["kind"], facts["shape"], facts["rows"]) == ("transformer", "single texts", 96)
    assert facts["classes"] == 2
    assert facts["probe_rows"] == 60
    assert facts["headroom"] == headroom("accuracy", facts["probe"], facts["floor"])
    assert facts["tf_idf"] > 0.9  # one word decides
    assert 0 < facts["divergence"] <= 1
    assert facts["command"].startswith("totune compare 'my reviews.csv' --strategies tf-idf,")
    assert [row["family"] for row in values.rows] == list(FAMILIES)


def test_the_test_split_is_not_looked_at(forecast_folder: Path) -> None:
    case = forecast_inputs(forecast_folder)
    test = case.context.dataset.test
    labels = tuple(reversed(test.labels or ()))
    other = case.context.with_splits({"test": dataclasses.replace(test, labels=labels)})
    found = (
        FamilyForecast(rows=60).run(ForecastInputs(one), Progress())
        for one in (case.context, other)
    )
    assert measured(next(found)) == measured(next(found))


@pytest.mark.parametrize(("name", "shape"), [("pairs.csv", "pairs"), ("scores.csv", "scores")])
def test_pairs_and_scores_are_told_apart(forecast_folder: Path, name: str, shape: str) -> None:
    facts = FamilyForecast(rows=60).run(forecast_inputs(forecast_folder, name), Progress()).facts
    assert facts["shape"] == shape
    assert facts["classes"] == (2 if shape == "pairs" else None)


def test_one_label_cannot_be_probed(forecast_folder: Path) -> None:
    case = forecast_inputs(forecast_folder)
    train = case.context.dataset.train
    constant = dataclasses.replace(train, labels=("praise",) * len(train))
    with pytest.raises(DataError):
        FamilyForecast(rows=60).run(
            ForecastInputs(case.context.with_splits({"train": constant})), Progress()
        )


def test_a_probe_at_chance_is_not_said_to_tell_more_than_words(forecast_folder: Path) -> None:
    analysis = FamilyForecast(rows=60)
    values = analysis.run(forecast_inputs(forecast_folder), Progress())
    facts = {**values.facts, "probe": 0.6, "tf_idf": 0.5, "control": 0.7}
    chance = analysis.section(AnalysisResult(values.rows, {**facts, "selective": False}), ())
    told = " ".join(chance.paragraphs)
    assert "cannot be distinguished from chance: with permuted labels" in told
    assert "the best of all blocks has 70.0" in told
    assert "than words" not in told
    clear = analysis.section(AnalysisResult(values.rows, {**facts, "selective": True}), ())
    assert "frozen features tell more than words" in " ".join(clear.paragraphs)


def test_seeds_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="seed"):
        ANALYSES.create("forecast", {"seed": 2**32})


def test_what_trains_more_costs_more(forecast_folder: Path) -> None:
    context = forecast_inputs(forecast_folder).context
    found = [passes(family, context) for family in FAMILIES]
    assert found == sorted(found)
    assert found[0] == 120
    assert seconds_per_row(context) > 0


def test_the_section_says_what_is_likely_why_and_what_came_true(forecast_folder: Path) -> None:
    analysis = FamilyForecast(rows=60)
    values = analysis.run(forecast_inputs(forecast_folder, corpus=["w1 w2"]), Progress())
    section = analysis.section(values, ())
    assert section.paragraphs[0].startswith("Likeliest to win: ")
    told = " ".join(section.paragraphs)
    for part in (
        "results with a transformer on single texts",
        "fewer than in the smallest",
        "diverge",
    ):
        assert part in told
    assert section.code == values.facts["command"]
    assert section.tables[0].values("Family")[0] == "frozen features"
    assert section.pictures[0].svg.startswith("<svg")
    runs = [run_of("feature-extraction", 0.8), run_of("fine-tuning", 0.7)]
    after = analysis.section(values, runs)
    assert "feature-extraction has 80.0 on test, 10.0 points ahead" in after.paragraphs[1]
    assert "The Brier score is" in after.paragraphs[1]
    assert "alike" not in after.paragraphs[1]
    near = [run_of("feature-extraction", 0.8), run_of("fine-tuning", 0.793)]
    assert (
        "0.7 points ahead of the next family (so near"
        in analysis.section(values, near).paragraphs[1]
    )
    assert after.tables[0].rows[0].mark.endswith("won")
