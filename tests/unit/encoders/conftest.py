"""What encoders that read words share."""

import pytest

from totune.encoders.words import Vocabulary


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary()
