"""What tests of runs share."""

import pytest
from tests.recorder import Recorder


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
