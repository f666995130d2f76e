"""The loop: phases, the best epoch, checkpoints, rates, and faults that are told clearly."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.encoder_zoo import LAYERS, tiny_encoder
from tests.recorder import Recorder
from tests.tiny_runs import (
    Killed,
    TinyTask,
    assert_same_training,
    fit,
    kill_after,
    metrics_of,
    short,
    tiny_model,
    weights,
)

from totune.encoders.mixing import Readout
from totune.errors import RunError
from totune.features import FeatureCache
from totune.heads.base import HEADS
from totune.inputs.batches import Batch
from totune.metrics import METRICS
from totune.model import Model, Viewed
from totune.strategies.phases import (
    Constant,
    Epochs,
    EpochScores,
    Gap,
    Group,
    LinearDecay,
    Phase,
    Plateau,
    Stop,
)
from totune.tasks.base import UNKNOWN
from totune.training import trainer as trainer_module
from totune.training.history import EpochRecord
from totune.training.inputs import open_source
from totune.training.trainer import Trainer, TrainingSettings

HEAD = Phase("head", (Group("head", 3e-3),), LinearDecay(0.1), Epochs(2))
TOP = Phase("top", (Group("head", 1e-4), Group("layer.4", 1e-4)), Constant(), Epochs(2))
ALL = Phase("all", (Group("*", 1e-4),), LinearDecay(0.1), Epochs(2))
PLAN = [HEAD, TOP, ALL]


def fresh() -> Model:
    return tiny_model(short("fine-tuning"), "bert", 3)[0]


@pytest.fixture(scope="module")
def undisturbed(tiny: TinyTask) -> tuple[Model, Trainer]:
    """A model after the whole plan, and its trainer."""
    model = fresh()
    return model, fit(model, PLAN, tiny)


def test_phases_follow_each_other(tiny: TinyTask) -> None:
    notes = Recorder()
    history = fit(fresh(), PLAN, tiny, progress=notes).history
    told = [(e.phase, e.epoch, e.frozen_depth, e.cached) for e in history.epochs]
    assert told == [
        *[("head", 1, 4, False), ("head", 2, 4, False)],
        *[("top", 3, 3, False), ("top", 4, 3, False)],
        *[("all", 5, -1, False), ("all", 6, -1, False)],
    ]
    assert notes.bars[0] == ("epoch 1 (head)", 20)
    assert len(notes.bars) == 6
    assert history.examples == 6 * 20
    assert 0 < history.step_seconds <= history.train_seconds


def test_each_phase_reads_what_is_frozen_from_the_cache(
    tiny: TinyTask, undisturbed: tuple[Model, Trainer], tmp_path: Path
) -> None:
    cache = FeatureCache(tmp_path, budget_bytes=10**8)
    cached, (whole, _) = fresh(), undisturbed
    history = fit(cached, PLAN, tiny, cache=cache).history
    assert [e.cached for e in history.epochs] == [True] * 4 + [False] * 2
    assert len(cache.entries()) == 4  # of train and dev: the top pooled, the third layer
    assert_same_training(cached, whole)


def test_without_room_in_the_cache_results_are_the_same(tiny: TinyTask, tmp_path: Path) -> None:
    refused, whole = fresh(), fresh()
    history = fit(refused, [TOP], tiny, cache=FeatureCache(tmp_path, budget_bytes=1)).history
    assert not any(epoch.cached for epoch in history.epochs)
    fit(whole, [TOP], tiny)
    assert all(torch.equal(p, whole.get_parameter(n)) for n, p in refused.named_parameters())


@pytest.mark.parametrize("step", [2, 5, 8, 11, 16, 18])
def test_killed_in_the_middle_of_any_epoch_it_continues(
    tiny: TinyTask, undisturbed: tuple[Model, Trainer], tmp_path: Path, step: int
) -> None:
    (whole, expected), resumed, path = undisturbed, fresh(), tmp_path / "checkpoint.pt"
    with pytest.raises(Killed):
        fit(fresh(), PLAN, tiny, checkpoint=path, progress=Recorder(step))
    notes, told = Recorder(), list[EpochRecord]()
    trainer = fit(resumed, PLAN, tiny, checkpoint=path, progress=notes, on_epoch=told.append)
    finished = (step - 1) // 3
    assert notes.said == ([f"continuing after epoch {finished}"] if finished else [])
    assert len(notes.steps) == 18 - 3 * finished
    assert [record.epoch for record in told] == [1, 2, 3, 4, 5, 6]
    assert metrics_of(trainer) == metrics_of(expected)
    assert trainer.history.best == expected.history.best
    assert trainer.history.examples == expected.history.examples
    assert all(torch.equal(p, whole.get_parameter(n)) for n, p in resumed.named_parameters())


def test_killed_twice_it_still_ends_the_same(
    tiny: TinyTask, undisturbed: tuple[Model, Trainer], tmp_path: Path
) -> None:
    (whole, _), resumed, path = undisturbed, fresh(), tmp_path / "checkpoint.pt"
    for steps in (7, 5):
        with pytest.raises(Killed):
            fit(fresh(), PLAN, tiny, checkpoint=path, progress=Recorder(steps))
    fit(resumed, PLAN, tiny, checkpoint=path)
    assert all(torch.equal(p, whole.get_parameter(n)) for n, p in resumed.named_parameters())


def test_a_finished_run_trains_no_more(tiny: TinyTask, tmp_path: Path) -> None:
    first, second, path = fresh(), fresh(), tmp_path / "checkpoint.pt"
    fit(first, PLAN, tiny, checkpoint=path)
    notes = Recorder()
    fit(second, PLAN, tiny, checkpoint=path, progress=notes)
    assert notes.steps == []
    assert all(torch.equal(p, first.get_parameter(n)) for n, p in second.named_parameters())


@pytest.mark.parametrize("change", ["plan", "settings", "order"])
def test_the_checkpoint_of_another_run_is_not_used(
    tiny: TinyTask, tmp_path: Path, change: str
) -> None:
    path, notes = tmp_path / "checkpoint.pt", Recorder()
    fit(fresh(), [HEAD], tiny, checkpoint=path)
    plan = [dataclasses.replace(HEAD, stop=Epochs(1))] if change == "plan" else [HEAD]
    settings = TrainingSettings("accuracy", 8, 2.0 if change == "settings" else 1.0)
    seed = int(change == "order")
    options: dict[str, Any] = {"settings": settings, "order_seed": seed}
    fit(fresh(), plan, tiny, checkpoint=path, progress=notes, **options)
    assert notes.said == []
    assert len(notes.steps) == (3 if change == "plan" else 6)


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([0.1, 0.9, 0.9, 0.3], 2),  # far better than the last, and the later of two equals
        ([0.1, 0.6, 0.2, 0.5], 3),  # no more than chance above the last: that one is kept
        ([0.1, 0.2, 0.4, 0.4], 3),
    ],
)
def test_the_last_epoch_is_kept_unless_dev_tells_a_better_one(
    tiny: TinyTask, monkeypatch: pytest.MonkeyPatch, scores: list[float], kept: int
) -> None:
    told = iter(scores)
    model, seen = fresh(), []
    plan = [dataclasses.replace(ALL, stop=Epochs(4))]
    evaluate = trainer_module.Trainer._evaluate
    monkeypatch.setattr(
        trainer_module.Trainer,
        "_evaluate",
        lambda self, source: {**evaluate(self, source), "accuracy": next(told)},
    )
    trainer = fit(model, plan, tiny, on_epoch=lambda _: seen.append(weights(model)))
    assert trainer.history.best == kept
    assert all(torch.equal(p, seen[kept][n]) for n, p in model.named_parameters())
    assert not all(torch.equal(seen[kept - 1][n], seen[kept][n]) for n in seen[kept])
    assert not any(module.training for module in model.modules())


def test_a_run_that_was_stopped_ends_with_its_best_epoch(
    tiny: TinyTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter([0.1, 0.52, 0.5, 0.5])
    plan = [dataclasses.replace(ALL, stop=Plateau(9, patience=2))]
    evaluate = trainer_module.Trainer._evaluate
    monkeypatch.setattr(
        trainer_module.Trainer,
        "_evaluate",
        lambda self, source: {**evaluate(self, source), "accuracy": next(told)},
    )
    history = fit(fresh(), plan, tiny).history
    assert (len(history.epochs), history.best) == (4, 1)


def test_an_error_is_better_when_lower() -> None:
    tiny = TinyTask.of("regression")
    model, _ = tiny_model(short("fine-tuning"), "bert", tiny.task)
    settings = TrainingSettings("mse", 8)
    plan = [dataclasses.replace(ALL, train=(Group("*", 1e-3),), stop=Epochs(4))]
    history = fit(model, plan, tiny, settings=settings).history
    errors = [epoch.dev["mse"] for epoch in history.epochs]
    lead = errors[-1] - min(errors)
    certain = lead > METRICS["mse"].standard_error(errors[-1], len(tiny.dev))
    assert history.best == (int(np.argmin(errors)) if certain else 3)
    assert len(set(errors)) == 4


def test_early_stopping_ends_a_phase(tiny: TinyTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer_module, "_score", lambda *_: 0.5)
    plan = [dataclasses.replace(HEAD, stop=Plateau(9, patience=3)), TOP]
    history = fit(fresh(), plan, tiny).history
    assert [epoch.phase for epoch in history.epochs] == ["head"] * 4 + ["top"] * 2


@pytest.mark.parametrize("stop", [Epochs(3), Plateau(3, patience=1), Gap(3, tolerance=0.0)])
def test_without_dev_rows_a_phase_runs_all_its_epochs_and_the_last_is_kept(
    tiny: TinyTask, stop: Stop
) -> None:
    model = fresh()
    trainer = Trainer(model, tiny.train, None, tiny.settings, 0)
    history = trainer.fit([dataclasses.replace(HEAD, stop=stop), TOP])
    assert [epoch.phase for epoch in history.epochs] == ["head"] * 3 + ["top"] * 2
    assert history.best == 4
    assert all(epoch.dev == {} for epoch in history.epochs)


@dataclasses.dataclass(frozen=True)
class SecondIsBest(Epochs):
    def best(self, scores: EpochScores) -> int:
        return min(1, len(scores.dev) - 1)


@pytest.mark.parametrize("killed_after", [1, 2, 3, 4])
def test_the_next_phase_starts_from_what_the_stop_restores(
    tiny: TinyTask, tmp_path: Path, killed_after: int
) -> None:
    first = dataclasses.replace(HEAD, stop=SecondIsBest(4), restore="best")
    still = dataclasses.replace(ALL, train=(Group("*", 0.0),), stop=Epochs(1))
    plan, path, stop = [first, still], tmp_path / "checkpoint.pt", kill_after(killed_after)
    whole, resumed, states = fresh(), fresh(), list[dict[str, torch.Tensor]]()
    expected = fit(whole, plan, tiny, on_epoch=lambda _: states.append(weights(whole)))
    assert all(torch.equal(states[4][name], restored) for name, restored in states[1].items())
    assert not all(torch.equal(states[3][name], restored) for name, restored in states[1].items())
    with pytest.raises(Killed):
        fit(fresh(), plan, tiny, checkpoint=path, on_epoch=stop)
    again = fit(
        resumed, plan, tiny, checkpoint=path, on_epoch=lambda _: states.append(weights(resumed))
    )
    assert metrics_of(again) == metrics_of(expected)
    assert all(torch.equal(states[-1][name], restored) for name, restored in states[1].items())


def test_the_rate_follows_the_schedule_at_every_step(
    tiny: TinyTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []
    step = torch.optim.AdamW.step

    def spy(self: torch.optim.AdamW, *arguments: Any) -> Any:
        rates.append(self.param_groups[0]["lr"])
        return step(self, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    fit(fresh(), [HEAD, TOP], tiny)
    falling = [LinearDecay(0.1).factor(at, 6) * 3e-3 for at in range(6)]
    assert rates == pytest.approx([*falling, *[1e-4] * 6])


def test_gradients_are_clipped(tiny: TinyTask, monkeypatch: pytest.MonkeyPatch) -> None:
    norms: list[float] = []
    step = torch.optim.AdamW.step

    def spy(self: torch.optim.AdamW, *arguments: Any) -> Any:
        gradients = [p.grad.norm() for g in self.param_groups for p in g["params"]]
        norms.append(float(torch.stack(gradients).norm()))
        return step(self, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    fit(fresh(), [ALL], tiny, settings=TrainingSettings("accuracy", 8, max_grad_norm=1e-3))
    assert norms == pytest.approx([1e-3] * 6, rel=1e-2)


def test_training_metrics_are_those_of_the_steps(tiny: TinyTask) -> None:
    still = dataclasses.replace(HEAD, train=(Group("head", 0.0),), stop=Epochs(1))
    model, _ = tiny_model(short("fine-tuning"), "bert", 3, dropout=0.0)
    same = dataclasses.replace(tiny, dev=tiny.train)
    (epoch,) = fit(model, [still], same).history.epochs
    assert epoch.train == pytest.approx(epoch.dev, abs=1e-6)


@pytest.mark.parametrize("where", ["train", "dev"])
def test_a_loss_that_is_no_number_is_told(tiny: TinyTask, where: str) -> None:
    class Broken(Model):
        def forward(self, batch: Batch, viewed: Viewed | None = None) -> torch.Tensor:
            outputs = super().forward(batch, viewed)
            return outputs * float("nan") if self.training == (where == "train") else outputs

    model = fresh()
    model.__class__ = Broken
    with pytest.raises(RunError, match=rf"loss on {where} became nan in epoch 1: use a smaller"):
        fit(model, [ALL], tiny)


def test_labels_that_training_never_saw_count_as_errors_without_loss(tiny: TinyTask) -> None:
    assert tiny.dev.targets is not None
    targets = tiny.dev.targets.copy()
    targets[:4] = UNKNOWN
    strange = dataclasses.replace(
        tiny, dev=dataclasses.replace(tiny.dev, targets=targets, flat=targets)
    )
    (epoch, _) = fit(fresh(), [HEAD], strange).history.epochs
    assert np.isfinite(epoch.dev["loss"])
    assert epoch.dev["accuracy"] <= 0.6
    nothing = np.full_like(targets, UNKNOWN)
    strange = dataclasses.replace(
        tiny, dev=dataclasses.replace(tiny.dev, targets=nothing, flat=nothing)
    )
    with pytest.raises(RunError, match="no row of dev has a label"):
        fit(fresh(), [HEAD], strange)


@pytest.mark.parametrize("size", [1, 19, 500])
def test_batches_of_any_size(tiny: TinyTask, size: int) -> None:
    notes = Recorder()
    settings = TrainingSettings("accuracy", size)
    history = fit(fresh(), [HEAD], tiny, settings=settings, progress=notes).history
    assert history.examples == 40
    assert len(notes.steps) == 2 * -(-20 // size)


def test_batches_by_word_pieces(tiny: TinyTask) -> None:
    notes = Recorder()
    longest = int(tiny.train.pieces.lengths.max())
    settings = TrainingSettings("accuracy", tokens_per_batch=3 * longest)
    history = fit(fresh(), [HEAD], tiny, settings=settings, progress=notes).history
    assert history.examples == 40
    # At least 3 rows fit in each batch, not all in one.
    assert 2 < len(notes.steps) <= 2 * -(-20 // 3)


def test_a_checkpoint_holds_only_what_trains(tiny: TinyTask, tmp_path: Path) -> None:
    fit(fresh(), [HEAD], tiny, checkpoint=tmp_path / "head.pt")
    fit(fresh(), [ALL], tiny, checkpoint=tmp_path / "all.pt")
    small, large = ((tmp_path / f"{name}.pt").stat().st_size for name in ("head", "all"))
    assert 5 * small < large


def test_a_run_that_is_killed_before_its_first_epoch_leaves_nothing(
    tiny: TinyTask, tmp_path: Path
) -> None:
    with pytest.raises(Killed):
        fit(fresh(), [HEAD], tiny, checkpoint=tmp_path / "c.pt", progress=Recorder(kill_at=0))
    assert list(tmp_path.iterdir()) == []


def test_an_epoch_is_written_before_it_is_told(tiny: TinyTask, tmp_path: Path) -> None:
    """Who looks on may carry the checkpoint elsewhere, or end the run."""
    path = tmp_path / "c.pt"
    with pytest.raises(Killed):
        fit(fresh(), [HEAD], tiny, checkpoint=path, on_epoch=kill_after(1))
    assert torch.load(path)["epochs_in_phase"] == 1


@pytest.mark.parametrize("strategy", ["feature-extraction", "last-k"])
def test_words_are_tagged_the_same_with_and_without_a_cache(strategy: str, tmp_path: Path) -> None:
    """Sentences of one document share an input, and over a frozen encoder not a batch."""
    tiny = TinyTask.of("tagging")
    results = []
    for cache in (None, FeatureCache(tmp_path)):
        model, plan = tiny_model(short(strategy), "bert", tiny.task)
        trainer = fit(model, plan, tiny, cache=cache)
        assert trainer.history.epochs[0].cached == (cache is not None)
        assert trainer.history.examples == 2 * 20
        results.append(model)
    assert_same_training(*results)


def test_a_crf_trains_with_its_own_loss() -> None:
    tiny = TinyTask.of("tagging")
    head = HEADS.create("crf")
    torch.manual_seed(0)
    model = Model(tiny_encoder("bert"), Readout("top", "none"), head, tiny.task)
    plan = [dataclasses.replace(ALL, train=(Group("*", 1e-2),), stop=Epochs(6))]
    before = {name: p.clone() for name, p in model.head.named_parameters()}
    history = fit(model, plan, tiny).history
    assert any("transitions" in name for name in before)
    for name, parameter in model.head.named_parameters():
        assert not torch.equal(parameter, before[name]), name
    assert history.epochs[-1].train["loss"] < history.epochs[0].train["loss"]
    # The loss is per word, the path's: above zero, and unlike the words' own cross-entropies.
    source = open_source(tiny.dev, model, None, -1)
    batch, _ = source.batch(np.arange(len(source.units)), torch.device("cpu"))
    with torch.no_grad():
        outputs = model.eval()(batch)
        own, words = model.losses(outputs, batch), tiny.task.losses(outputs, batch.targets)
    assert own.shape == words.shape
    assert not torch.allclose(own, words)


def gradual() -> tuple[Model, list[Phase]]:
    return tiny_model(short("gradual-unfreezing", num_train_epochs=1), "bert", 3)


def test_features_are_charged_to_a_run_that_was_interrupted(tiny: TinyTask, tmp_path: Path) -> None:
    """Also those of phases that were over when it was killed; each costs what computing it took."""
    model, plan = gradual()
    fit(model, plan, tiny, cache=FeatureCache(tmp_path / "cache", budget_bytes=10**8))
    whole = FeatureCache(tmp_path / "cache", budget_bytes=10**8)
    fit(gradual()[0], plan, tiny, cache=whole)
    checkpoint = tmp_path / "checkpoint.pt"
    cache = FeatureCache(tmp_path / "cache", budget_bytes=10**8)
    with pytest.raises(Killed):
        fit(gradual()[0], plan, tiny, cache=cache, checkpoint=checkpoint, on_epoch=kill_after(4))
    resumed = FeatureCache(tmp_path / "cache", budget_bytes=10**8)
    fit(gradual()[0], plan, tiny, cache=resumed, checkpoint=checkpoint)
    assert len(whole.charges) == 2 * LAYERS  # train and dev, as deep as 4, 3, 2 and 1 layers
    assert resumed.charges == whole.charges
    assert resumed.account == whole.account > 0


def test_what_an_earlier_phase_read_makes_room_for_a_later_one(
    tiny: TinyTask, tmp_path: Path
) -> None:
    probe = FeatureCache(tmp_path / "probe", budget_bytes=10**8)
    model, plan = gradual()
    fit(model, plan, tiny, cache=probe)
    sizes = sorted(entry.nbytes for entry in probe.entries())
    budget = 2 * sizes[-1] + sizes[-2]  # the largest phase, with little to spare
    assert budget < sum(sizes)
    cache = FeatureCache(tmp_path / "cache", budget_bytes=budget)
    trainer = fit(gradual()[0], plan, tiny, cache=cache)
    epochs = trainer.history.epochs
    assert [e.cached for e in epochs] == [e.frozen_depth >= 1 for e in epochs]
