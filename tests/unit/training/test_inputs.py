"""Sources and predictions: rows come back at their places, from pieces or from the cache."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tiny_runs import TinyTask, short, tiny_model

from totune.features import FeatureCache
from totune.model import Model
from totune.training.devices import Devices
from totune.training.inputs import InputSource, open_source, predict


@pytest.fixture(scope="module")
def fifteen_rows() -> TinyTask:
    return TinyTask.of("classification", rows=15)


@pytest.fixture
def frozen_model() -> Model:
    built, _ = tiny_model(short("feature-extraction"), "bert", 3)
    built.requires_grad_(False)
    built.freeze_prefix()
    return built


def test_every_row_is_predicted_at_its_place(
    fifteen_rows: TinyTask, frozen_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = predict(
        frozen_model, InputSource(fifteen_rows.train, fifteen_rows.train.units), Devices()
    ).values
    assert outputs.shape == (15, 3)
    frozen_model.eval()
    with torch.no_grad():
        for row in range(15):
            alone = frozen_model(fifteen_rows.train.pieces.batch(np.array([row])))[0].numpy()
            np.testing.assert_allclose(outputs[row], alone, atol=1e-5)
    monkeypatch.setattr("totune.training.inputs.EVAL_TOKENS", 12)  # one or two rows a batch
    again = predict(
        frozen_model, InputSource(fifteen_rows.train, fifteen_rows.train.units), Devices()
    ).values
    np.testing.assert_allclose(again, outputs, atol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_predicting_has_no_dropout_and_restores_the_mode(
    fifteen_rows: TinyTask, frozen_model: Model, training: bool
) -> None:
    frozen_model.train(training)
    modes = [module.training for module in frozen_model.modules()]
    first = predict(
        frozen_model, InputSource(fifteen_rows.train, fifteen_rows.train.units), Devices()
    ).values
    assert np.array_equal(
        predict(
            frozen_model, InputSource(fifteen_rows.train, fifteen_rows.train.units), Devices()
        ).values,
        first,
    )
    assert [module.training for module in frozen_model.modules()] == modes


def test_a_source_gives_pieces_targets_and_cached_rows(
    fifteen_rows: TinyTask, frozen_model: Model, tmp_path: Path
) -> None:
    indices, device = np.array([7, 2]), torch.device("cpu")
    assert fifteen_rows.train.targets is not None
    batch, viewed = InputSource(fifteen_rows.train, fifteen_rows.train.units).batch(indices, device)
    assert viewed is None
    assert batch.targets is not None
    assert batch.targets.tolist() == fifteen_rows.train.targets[indices].tolist()
    cached = open_source(fifteen_rows.train, frozen_model, FeatureCache(tmp_path, 10**8), 4)
    batch, viewed = cached.batch(indices, device)
    assert viewed is not None
    assert viewed.rows.shape == (2, 5, frozen_model.encoder.width)
    assert batch.indices.tolist() == [7, 2]


def test_no_cache_is_opened_where_it_would_not_pay(
    fifteen_rows: TinyTask, frozen_model: Model, tmp_path: Path
) -> None:
    cache = FeatureCache(tmp_path, 10**8)
    for frozen in (-1, 0):
        assert open_source(fifteen_rows.train, frozen_model, cache, frozen).features is None
    assert open_source(fifteen_rows.train, frozen_model, None, 4).features is None
    assert cache.entries() == []
