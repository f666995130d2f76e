"""Linear heads that are computed: the optimum on frozen vectors, and the nearest class mean."""

import numpy as np
import torch

from totune.linear_model import ABSENT, choose_strength, draw_folds, fit_linear
from totune.model import Model
from totune.training.devices import Devices
from totune.training.inputs import InputSource, Split, linear_inputs

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


def nearest_class_mean(model: Model, vectors: np.ndarray, split: Split) -> np.ndarray:
    """Makes the model's linear head answer with the class whose mean vector is nearest.

    The outputs are -|x - m_c|^2 / 2 for every class c, less what is equal for all: weights m_c and
    biases -|m_c|^2 / 2 (Snell et al. 2017, equation 8).

    Args:
        model: one whose `is_linear_probe` holds, for classes.
        vectors: of the rows of `split`, [P, F].
        split: with targets; a class without a row is never the answer.

    Returns:
        The outputs for `vectors`, [P, C].
    """
    layer, targets = model.head.linear_layer(), split.flat
    assert layer is not None, "the plan asks for a linear head"
    assert targets is not None, "training needs targets"
    weight = np.zeros((model.task.outputs, vectors.shape[1]))
    bias = np.full(model.task.outputs, ABSENT)
    for label in np.unique(targets[model.task.known(targets)]):
        weight[label] = vectors[targets == label].mean(axis=0, dtype=np.float64)
        bias[label] = -(weight[label] ** 2).sum() / 2
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weight))
        layer.bias.copy_(torch.from_numpy(bias))
    return np.asarray(vectors @ weight.T + bias)
