"""Fixtures shared by all tests."""

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path

# Workers share the cores, and tiny tensors gain nothing from threads. Before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# How long examples take to make says nothing on a machine that others share.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spares what is imported and collected, a million objects that stay, from garbage collection.

    Else a full collection now and then walks them all, and each takes half a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with oracles, data and models; tests that need it skip visibly without it."""
    default = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("TOTUNE_SHARED", default))
    if not (folder / "oracles").is_dir():
        pytest.skip(f"no shared folder at {folder}; set TOTUNE_SHARED to its place")
    return folder


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache away from the user's own, for the tests that ask for it and those after them."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOTUNE_CACHE", str(folder))
        yield folder
