"""Adapters removed span by span: exact, computed once where shared, told as they are."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.encoder_zoo import LAYERS, tiny_encoder
from tests.tiny_data import save_encoder, write_reviews
from tests.tiny_runs import TinyTask, short, tiny_model
from tests.unit.analyses.small_inputs import adapters_in, trained_on

from totune import api
from totune.adapters.adapters import layer_spans
from totune.analyses.adapter_ablation import AdapterAblation, SpanOutputs
from totune.analyses.adapter_ablation_section import (
    ablation_section,
    heatmap_rows,
    percent,
    spans_of,
    summaries,
)
from totune.analyses.base import ANALYSES, AnalysisResult
from totune.analyses.inputs.studies import AblationModel, open_folder, open_study
from totune.encoders.mixing import Readout
from totune.errors import ConfigError, DataError, ModelError
from totune.machine import Precision
from totune.progress import Progress
from totune.registry import options_of
from totune.study.study import Study
from totune.training.devices import Devices
from totune.training.inputs import Outputs, open_source, predict

SPANS = [(first, last) for first in range(1, LAYERS + 1) for last in range(first, LAYERS + 1)]
CASES: list[tuple[str, str, Readout, Precision]] = [
    ("bert", "classification", Readout("top", "pooler"), "fp32"),
    ("bert", "classification", Readout("scalar-mix", "mean"), "bf16"),
    ("bert", "pairs", Readout("scalar-mix", "cls"), "fp32"),
    ("bert", "tagging", Readout("top", "none"), "fp32"),
    ("roberta", "classification", Readout("top", "last-four"), "bf16"),
    ("distilbert", "regression", Readout("normed-scalar-mix", "mean"), "fp32"),
    ("modernbert", "classification", Readout("top", "mean"), "bf16"),
    ("deberta-v2", "regression", Readout("scalar-mix", "max"), "fp32"),
    ("albert", "regression", Readout("top", "max"), "fp32"),
]


def said(trained: AblationModel, tiny: TinyTask) -> Outputs:
    """What the whole model says, as evaluation runs it."""
    return predict(trained.model, open_source(tiny.dev, trained.model, None, -1), Devices())


def score_of(trained: AblationModel, tiny: TinyTask, outputs: Outputs) -> float:
    found = tiny.task.predictions(outputs.values, tiny.dev.units.counts)
    assert tiny.dev.targets is not None
    return tiny.task.evaluate(tiny.dev.targets, found)[trained.metric]


def ablate(*trained: AblationModel) -> AnalysisResult:
    return AdapterAblation().run(trained, Progress())


def change_by_span(values: AnalysisResult) -> dict[tuple[int, int], float | None]:
    return {(row["first"], row["last"]): row["change"] for row in values.rows}


# What is computed


@pytest.mark.parametrize(("encoder", "kind", "readout", "precision"), CASES)
def test_every_span_is_as_if_the_model_ran_alone(
    encoder: str, kind: str, readout: Readout, precision: Precision
) -> None:
    trained, tiny = trained_on(kind, encoder, readout, precision)
    adapters, model = adapters_in(trained.model), trained.model
    spans = SpanOutputs(model, adapters, layer_spans(model.encoder))  # type: ignore[arg-type]
    source = open_source(tiny.dev, model, None, -1)
    batch, _ = source.batch(np.arange(len(source.units)), torch.device("cpu"))
    with torch.no_grad():
        found = dict(spans.outputs(batch))
        torch.testing.assert_close(found.pop(None), model(batch), atol=1e-6, rtol=0)
        assert list(found) == spans_of(spans.layers)
        for span, outputs in found.items():
            with adapters.removed(*span):
                expected = model(batch)
            torch.testing.assert_close(outputs, expected, atol=1e-6, rtol=0)
            assert torch.equal(outputs.argmax(dim=1), expected.argmax(dim=1))
        assert not torch.allclose(found[spans.layers[0][0], LAYERS], model(batch), atol=1e-3)


def test_rows_say_the_score_of_every_span() -> None:
    trained, tiny = trained_on("regression")
    values = ablate(trained)
    intact = score_of(trained, tiny, said(trained, tiny))
    assert [(row["first"], row["last"]) for row in values.rows] == SPANS
    for row in values.rows:
        with adapters_in(trained.model).removed(row["first"], row["last"]):
            score = score_of(trained, tiny, said(trained, tiny))
        assert row["score"] == pytest.approx(score, abs=1e-6)
        assert row["intact"] == pytest.approx(intact, abs=1e-6)
        assert row["change"] == pytest.approx((score - intact) / abs(intact), abs=1e-5)
    assert values.facts["rows"] == len(tiny.dev)
    assert values.facts["metric"] == "pearson"


def test_without_all_adapters_it_is_the_encoder_alone() -> None:
    trained, tiny = trained_on("classification")
    values = ablate(trained)
    adapters_in(trained.model).remove()
    alone = score_of(trained, tiny, said(trained, tiny))
    whole = next(row for row in values.rows if (row["first"], row["last"]) == (1, LAYERS))
    assert whole["score"] == alone


def test_adapters_that_are_the_identity_are_not_missed() -> None:
    trained, _ = trained_on("regression")
    with torch.no_grad():
        for name, weights in adapters_in(trained.model).state_dict().items():
            if ".up." in name:
                weights.zero_()
    values = ablate(trained)
    assert set(change_by_span(values).values()) == {0.0}
    section = AdapterAblation().section(values, ())
    assert "no harm (0.0%): taken together they do not help" in section.paragraphs[0]


def test_a_layer_without_adapters_changes_nothing() -> None:
    trained, _ = trained_on("regression", sharing=["a", None, "a", "b"])
    changes = change_by_span(ablate(trained))
    assert changes[2, 2] == 0.0
    assert changes[1, 1] == changes[1, 2] != 0.0  # the shared adapter remains in layer 3
    assert changes[1, 3] != changes[1, 1]


@pytest.mark.parametrize(("encoder", "layers"), [("bert", LAYERS), ("albert", 2)])
def test_what_spans_share_is_computed_once(encoder: str, layers: int) -> None:
    trained, _ = trained_on("classification", encoder)
    facts = ablate(trained).facts
    span_count = layers * (layers + 1) // 2
    each = LAYERS // layers  # layers that are one module
    removed = each * span_count
    above = each * sum(last * (layers - last) for last in range(1, layers + 1))
    assert facts["block_evaluations"] == LAYERS + removed + above
    assert facts["naive_block_evaluations"] == LAYERS * (span_count + 1)
    assert len(facts["layers"]) == layers


def test_layers_that_share_their_weights_go_together() -> None:
    assert layer_spans(tiny_encoder("albert")) == [(1, 2), (3, 4)]
    assert layer_spans(tiny_encoder("albert-one-group")) == [(1, 4)]
    trained, _ = trained_on("regression", "albert-one-group", Readout("top", "mean"))
    values = ablate(trained)
    assert [(row["first"], row["last"]) for row in values.rows] == [(1, 4)]
    section = AdapterAblation().section(values, ())
    assert len(section.tables) == 1


def test_equal_models_give_equal_values_and_are_left_as_they_were() -> None:
    trained, tiny = trained_on("pairs")
    before = said(trained, tiny).values
    assert ablate(trained) == ablate(trained)
    np.testing.assert_array_equal(said(trained, tiny).values, before)


# What cannot be answered


def test_a_model_without_bottleneck_adapters_is_refused() -> None:
    tiny = TinyTask.of("classification")
    for name in ("lora", "fine-tuning"):
        model, _ = tiny_model(short(name), "bert", tiny.task)
        trained = AblationModel(name, 3, model.eval(), "accuracy", lambda _: tiny.dev)
        with pytest.raises(ModelError, match=rf"{name} \(seed 3\) has no bottleneck adapters"):
            ablate(trained)


def test_labels_that_the_model_does_not_know_are_refused() -> None:
    trained, tiny = trained_on("classification")
    unknown = tiny.task.targets(["never"] * len(tiny.dev))
    other = type(tiny.dev)("dev", tiny.dev.units, unknown, tiny.task.flat(unknown))
    for split in (other, type(tiny.dev)("dev", tiny.dev.units)):
        asked = AblationModel(
            "adapters", 0, trained.model, "accuracy", lambda _, split=split: split
        )
        with pytest.raises(DataError, match="No row of dev has a label that the model"):
            ablate(asked)


def test_the_split_is_an_option() -> None:
    assert options_of(ANALYSES.create("adapter-ablation")) == {"split": "dev"}
    with pytest.raises(ConfigError, match="split='all'"):
        ANALYSES.create("adapter-ablation", {"split": "all"})


# What is told


def values_of(
    changes: dict[tuple[int, int], float | None], metric: str = "accuracy", **other: Any
) -> AnalysisResult:
    """AnalysisResult as a file holds them; `other` strategies differ by a factor."""
    rows = [
        {
            "strategy": name,
            "seed": seed,
            "first": first,
            "last": last,
            "score": None if change is None else 0.8 * (1 + factor * change),
            "intact": 0.8,
            "change": None if change is None else factor * change,
        }
        for name, factor in {"adapters": 1.0, **other}.items()
        for seed in (0, 1)
        for (first, last), change in changes.items()
    ]
    layers = sorted({span for span in changes if span[0] == span[1]})
    facts = {"metric": metric, "split": "dev", "rows": 90, "layers": layers}
    facts |= {"block_evaluations": 26, "naive_block_evaluations": 44}
    stored: dict[str, Any] = json.loads(json.dumps({"rows": rows, "facts": facts}))
    return AnalysisResult(**stored)


def growing(size: float) -> dict[tuple[int, int], float | None]:
    """Changes that grow with the square of a span's length."""
    return {(first, last): size * (last - first + 1) ** 2 for first, last in SPANS}


def test_the_finding_compares_one_layer_with_all() -> None:
    small = ablation_section("", values_of(growing(-0.02))).paragraphs[0]
    assert small.startswith(
        "Removing one layer's adapters lowers accuracy by at most 2.0% (layer 1), removing those "
        "of all layers by 32.0%"
    )
    assert "as with BERT-base" in small
    alone = ablation_section("", values_of({**growing(-0.02), (3, 3): -0.3})).paragraphs[0]
    assert alone.startswith("Removing the adapters of layer 3 alone lowers accuracy by 30.0%")
    assert "unlike with BERT-base" in alone
    error = ablation_section("", values_of(growing(0.02), "mse")).paragraphs[0]
    assert "adapters raises mean squared error by at most 2.0%" in error
    gain = ablation_section("", values_of(growing(0.02))).paragraphs[0]
    assert "no harm (+32.0%)" in gain


def test_where_the_score_is_zero_there_is_no_relative_change() -> None:
    section = ablation_section("", values_of(dict.fromkeys(SPANS)))
    assert "of that there is no relative change" in section.paragraphs[0]
    assert section.pictures == ()


def test_tables_name_the_worst_layers_and_the_worst_span_of_each_length() -> None:
    changes = growing(-0.01) | {(3, 3): -0.03, (2, 3): -0.09}
    singles, spans = ablation_section("", values_of(changes)).tables
    ranked = ["none", *(f"layer {depth}" for depth in (3, 1, 2, 4))]
    assert singles.values("Without adapters of") == ranked
    assert singles.values("Change")[:2] == [None, pytest.approx(-0.03)]
    longest = ["none", *(f"layers {span}" for span in ("2–3", "1–3", "1–4"))]
    assert spans.values("Without adapters of") == longest
    assert spans.values("Accuracy")[1] == pytest.approx(0.8 * 0.91)
    assert singles.rows[1].cells[2].detail == "± 0.0"


def test_every_strategy_has_a_heatmap_and_all_share_a_scale() -> None:
    values = values_of(growing(-0.02), other=2.0)
    section = ablation_section("", values)
    assert len(section.pictures) == 2
    assert len(section.tables) == 4
    assert section.paragraphs[0].count("Removing one layer's") == 2
    assert "other: Removing" in section.paragraphs[0]
    assert "(1.7 times as many)" in section.paragraphs[-1]
    assert [found.strategy for found in summaries(values)] == ["adapters", "other"]


def test_the_lower_triangle_is_empty() -> None:
    (found,) = summaries(values_of(growing(-0.02)))
    cells = {(row["first"], row["last"]): row["change"] for row in heatmap_rows(found)}
    assert len(cells) == LAYERS**2
    for (first, last), change in cells.items():
        below = int(last) < int(first)
        expected = None if below else pytest.approx(-2.0 * (int(last) - int(first) + 1) ** 2)
        assert change == expected


@pytest.mark.parametrize(("count", "printed"), [(2, True), (12, True), (13, False)])
def test_values_are_printed_where_there_is_room(count: int, printed: bool) -> None:
    layers = [(depth, depth) for depth in range(1, count + 1)]
    changes = {(a, b): -0.015 * (b - a + 1) for a, b in spans_of(layers)}
    (picture,) = ablation_section("", values_of(changes)).pictures
    assert picture.svg.count("−1.5<") == (count if printed else 0)
    assert "<image" not in picture.svg
    assert ablation_section("", values_of(changes)).pictures == (picture,)


def test_percent_has_a_true_minus_and_no_sign_on_zero() -> None:
    assert [percent(value) for value in (-0.021, 0.5, -0.0001, 0.0, None)] == [
        *("−2.1%", "+50.0%", "0.0%", "0.0%", "–")
    ]


# From a study, or a model's folder


@pytest.fixture(scope="module")
def ablation_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ablation")
    write_reviews(folder / "reviews.csv", rows=60)
    save_encoder(folder / "encoder")
    compare(folder, "study", ["adapters", "last-1"])
    return folder


def compare(folder: Path, name: str, strategies: list[str], **settings: Any) -> Study:
    settings = {"options": {"num_train_epochs": 1}, **settings}
    return api.compare(
        folder / "reviews.csv",
        out=folder / name,
        model=str(folder / "encoder"),
        cache_dir=folder / "cache",
        strategies=strategies,
        folds=1,
        seeds=2,
        precision="fp32",
        metric="f1",
        keep_weights="all",
        **settings,
    )


def test_a_study_gives_every_kept_model_with_adapters(ablation_folder: Path) -> None:
    opened = open_study(
        ablation_folder / "study",
        ablation_folder / "reviews.csv",
        cache_dir=ablation_folder / "cache",
    )
    values = AdapterAblation().run(opened.models, Progress())
    assert {(row["strategy"], row["seed"]) for row in values.rows} == {
        *(("adapters", 0), ("adapters", 1))
    }
    recorded = {r.seed: r.dev["f1"] for r in opened.records if r.strategy == "adapters"}
    assert {row["seed"]: row["intact"] for row in values.rows} == pytest.approx(recorded, abs=1e-6)
    assert values.facts["metric"] == opened.about["metric"] == "f1"


def test_a_study_without_adapters_is_refused(ablation_folder: Path) -> None:
    study, data = ablation_folder / "study", ablation_folder / "reviews.csv"
    named = open_study(study, data, strategies=["last-1"], cache_dir=ablation_folder / "cache")
    with pytest.raises(ModelError, match=r"last-1 .* has no bottleneck adapters"):
        AdapterAblation().run(named.models, Progress())
    compare(ablation_folder, "plain", ["tf-idf"], options={})
    with pytest.raises(ModelError, match=r"strategies tf-idf\) has no bottleneck adapters"):
        open_study(ablation_folder / "plain", data, cache_dir=ablation_folder / "cache")


def test_a_models_folder_gives_its_model(ablation_folder: Path) -> None:
    api.train(
        ablation_folder / "reviews.csv",
        "adapters",
        out=ablation_folder / "model",
        model=str(ablation_folder / "encoder"),
        cache_dir=ablation_folder / "cache",
        options={"num_train_epochs": 1},
        seed=4,
        precision="fp32",
    )
    opened = open_folder(
        ablation_folder / "model", ablation_folder / "reviews.csv", metric="matthews"
    )
    values = AdapterAblation().run(opened.models, Progress())
    about = api.load(ablation_folder / "model").about
    assert values.rows[0]["intact"] == pytest.approx(about["metrics"]["dev"]["matthews"], abs=1e-6)
    assert values.rows[0]["seed"] == 4
    assert opened.about["fingerprint"] == about["fingerprint"]
    with pytest.raises(ConfigError, match="metric 'pearson' is none of"):
        open_folder(ablation_folder / "model", ablation_folder / "reviews.csv", metric="pearson")


def test_a_folder_of_another_kind_is_refused(ablation_folder: Path, tmp_path: Path) -> None:
    about = {"task": {"name": "classification", "labels": ["a", "b"]}, "kind": "model"}
    (tmp_path / "totune.json").write_text(json.dumps(about), encoding="utf-8")
    with pytest.raises(ModelError, match=r"The model in .* has no bottleneck adapters"):
        open_folder(tmp_path, ablation_folder / "reviews.csv")
    with pytest.raises(ModelError, match="holds no model of totune"):
        open_folder(ablation_folder, ablation_folder / "reviews.csv")
