"""Against the authors' program, run beforehand (`oracles/edge.npz`: EDGE 4.3.1, float64)."""

from pathlib import Path

import numpy as np
import pytest
from tests.plug_in import plug_in_information

from totune.information import Edge, label_entropy
from totune.information.edge import Projection

ORACLE = dict(np.load(Path(__file__).parent / "oracles" / "edge.npz"))
DATASETS = range(6)
VARIANTS = {
    "default": Edge(),
    "discrete_y": Edge((1, 0.001)),
    "discrete_y_single_pass": Edge((1, 0.001), passes=1),
    "discrete_y_mean": Edge((1, 0.001), ensemble="mean"),
    "discrete_y_u20": Edge((1, 0.001), upper_bound=20),
    "discrete_xy": Edge((0.001, 0.001)),
}


def pair(name: int | str) -> tuple[np.ndarray, np.ndarray]:
    return ORACLE[f"x_int8_{name}"] / 32, ORACLE[f"y_{name}"].astype(float)


def project(dataset: int) -> tuple[Projection, Projection]:
    return Edge().project(*pair(dataset))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_estimate(dataset: int, variant: str):
    found = VARIANTS[variant].estimate(*pair(dataset))
    assert found == pytest.approx(float(ORACLE[f"mi_{variant}_{dataset}"]), rel=0, abs=1e-9)


def test_estimate_of_a_continuous_pair():
    found = Edge().estimate(ORACLE["x_int8_cc"] / 32, ORACLE["y_int8_cc"] / 32)
    assert found == pytest.approx(float(ORACLE["mi_default_cc"]), rel=0, abs=1e-9)


@pytest.mark.parametrize("dataset", DATASETS)
def test_projections(dataset: int):
    for side, name in zip(project(dataset), "xy", strict=True):
        expected = ORACLE[f"projection_{name}_{dataset}"]
        np.testing.assert_allclose(side.weights, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dataset", DATASETS)
def test_neighbour_distances(dataset: int):
    for side, name in zip(project(dataset), "xy", strict=True):
        expected = ORACLE[f"knn_distance_{name}_{dataset}"]
        np.testing.assert_allclose(side.distances, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dataset", DATASETS)
def test_members(dataset: int):
    found = Edge().members(*project(dataset), (1, 0.001))
    np.testing.assert_allclose(found, ORACLE[f"members_{dataset}"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("dataset", DATASETS)
def test_single_precision_and_integers_give_the_same(dataset: int):
    # What is stored is a multiple of 1/32, which float32 holds exactly.
    x, y = pair(dataset)
    narrow = Edge().estimate(x.astype(np.float32), y.astype(np.int32))
    assert narrow == pytest.approx(Edge().estimate(x, y), rel=0, abs=1e-9)


@pytest.mark.parametrize("dataset", DATASETS)
def test_label_entropy(dataset: int):
    found = label_entropy(ORACLE[f"y_{dataset}"])
    expected = float(ORACLE[f"label_entropy_bits_{dataset}"])
    assert found == pytest.approx(expected, rel=0, abs=1e-12)


def test_plug_in_information():
    found = plug_in_information(ORACLE["x_int8_5"], ORACLE["y_5"])
    assert found == pytest.approx(float(ORACLE["plugin_mi_bits_5"]), rel=0, abs=1e-12)
