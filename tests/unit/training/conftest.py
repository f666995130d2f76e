"""A task that a tiny model trains on."""

import pytest
from tests.tiny_runs import TinyTask


@pytest.fixture(scope="module")
def tiny() -> TinyTask:
    return TinyTask.of("classification")
