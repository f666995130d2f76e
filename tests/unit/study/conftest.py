"""What tests of studies and their runs share."""

import pytest
from tests.recorder import Recorder


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
