"""The optimum of a linear head on frozen vectors, computed."""

import numpy as np
import torch

from totune.linear_model import choose_strength, draw_folds, fit_linear
from totune.model import Model
from totune.training.devices import Devices
from totune.training.inputs import InputSource, linear_inputs

CHOOSING_ROWS = 2_000  # at most so many choose the penalty, which more rows hardly move


def solve_head(model: Model, source: InputSource, devices: Devices, folds: int, seed: int) -> float:
    """Puts the optimum for the rows of `source` into the model's linear head.

    The features are standardised for the penalty; the layer's weights have this folded in, so that
    it reads the vectors as they are.

    Args:
        model: one whose `is_linear_probe` holds, its encoder frozen.
        source: the training split, with targets.
        devices: the processes that share the run; each of them computes the same.
        folds: of the cross-validation that chooses the penalty.
        seed: what the folds are drawn from.

    Returns:
        C, the inverse strength of the L2 penalty: the summed loss has a weight of C against half of
        the squared weights (for scores the squared error, on the 0..1 scale of training).

    Raises:
        DataError: if the rows are of one class.
    """
    layer, task = model.head.linear_layer(), model.task
    targets, flat = source.split.targets, source.split.flat  # a position per row, so alike
    assert layer is not None, "the plan asks for a linear head"
    assert targets is not None, "training needs targets"
    assert flat is not None, "training needs targets"
    known = task.known(flat)
    targets = targets[known]
    from sklearn.preprocessing import StandardScaler  # takes a second to load

    scaler = StandardScaler()
    features = scaler.fit_transform(linear_inputs(model, source, devices)[known].astype(np.float64))
    chosen = np.random.default_rng(seed).permutation(len(targets))[:CHOOSING_ROWS]
    drawn = draw_folds(task, targets[chosen], folds, seed)
    strength = choose_strength(features[chosen], targets[chosen], task, drawn)
    weight, bias = fit_linear(features, targets, task, strength).layer()  # [C, F], [C]
    weight = weight / scaler.scale_
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weight))
        layer.bias.copy_(torch.from_numpy(bias - weight @ scaler.mean_))
    return strength
