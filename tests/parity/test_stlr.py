"""Against AllenNLP 2.10.1's SlantedTriangular (`oracles/stlr.npz`), with and without unfreezing.

Four groups there are head, two layers and embeddings here; ten updates an epoch.
"""

from pathlib import Path

import numpy as np
import pytest
from tests.encoder_zoo import tiny_config

from totune.encoders.mixing import Readout
from totune.encoders.transformers import TransformersEncoder
from totune.heads.linear import Linear
from totune.model import Model
from totune.strategies.coverage import assign
from totune.strategies.fine_tuning import FineTuning
from totune.strategies.gradual_unfreezing import GradualUnfreezing
from totune.strategies.phases import Phase
from totune.tasks.classification import Classification

ORACLE = dict(np.load(Path(__file__).parent / "oracles" / "stlr.npz"))
PARTS = ("embeddings", "layer.1", "layer.2", "head")  # group 0 is the lowest
UPDATES = 10


@pytest.fixture(scope="module")
def model() -> Model:
    config = tiny_config("bert")
    config.num_hidden_layers = 2
    encoder = TransformersEncoder.from_config(config)
    return Model(encoder, Readout("top", "cls"), Linear(), Classification(("a", "b")))


def rates(model: Model, plan: list[Phase], epochs: int) -> tuple[np.ndarray, np.ndarray]:
    """Rates and whether they apply, [updates, groups], over the first `epochs` epochs."""
    found, trains = [], []
    firsts = {part: model.parts()[part][0][0] for part in PARTS}
    for phase in plan:
        groups = assign(model, phase.train)
        total = phase.stop.num_train_epochs * UPDATES
        for step in range(total):
            factor = phase.schedule.factor(step, total)
            peaks = [groups[n].learning_rate if n in groups else 0.0 for n in firsts.values()]
            found.append([factor * peak for peak in peaks])
            trains.append([name in groups for name in firsts.values()])
    return np.array(found[: epochs * UPDATES]), np.array(trains[: epochs * UPDATES])


@pytest.mark.parametrize("epochs", [3, 6])
@pytest.mark.parametrize("discriminative", [False, True])
@pytest.mark.parametrize("unfreezing", [False, True])
def test_rates(model: Model, epochs: int, discriminative: bool, unfreezing: bool) -> None:
    options = {
        "learning_rate": float(ORACLE["base_lr"]),
        "layer_decay": float(ORACLE["decay_factor"]) if discriminative else 1.0,
        "schedule": "slanted-triangular",
        "warmup_ratio": float(ORACLE["cut_frac"]),
        "ratio": float(ORACLE["ratio"]),
    }
    if unfreezing:  # three epochs end before everything is open
        plan = GradualUnfreezing(**options, num_train_epochs=max(1, epochs - 3)).plan(model)
    else:
        plan = FineTuning(**options, num_train_epochs=epochs).plan(model)
    found, trains = rates(model, plan, epochs)
    key = f"e{epochs}_unfreeze{unfreezing:d}_discr{discriminative:d}"
    np.testing.assert_array_equal(trains, ORACLE[f"trainable_{key}"])
    np.testing.assert_allclose(found, np.where(trains, ORACLE[f"lr_{key}"], 0.0), rtol=1e-12)
