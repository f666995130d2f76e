"""How a strategy's rows become encoder inputs where nothing was said."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from totune.data.units import Framing
from totune.encoders.encoder import Encoder
from totune.heads.base import Wants
from totune.strategies.fine_tuning import FineTuning


@pytest.mark.parametrize(
    ("options", "reads_words", "wants", "expected"),
    [
        ({}, False, "pair", Framing("joint", True)),
        ({}, False, "pooled-pair", Framing("separate", True)),
        ({}, True, "pair", Framing("separate", False)),
        ({}, True, "pooled", Framing("joint", False)),
        ({"pair_encoding": "joint", "document_context": True}, True, "pair", Framing()),
        ({"pair_encoding": "separate"}, False, "pair", Framing("separate", True)),
        ({"document_context": False}, False, "words", Framing("joint", False)),
    ],
)
def test_framing(
    options: dict[str, Any], reads_words: bool, wants: Wants, expected: Framing
) -> None:
    encoder = cast(Encoder, SimpleNamespace(reads_words=reads_words))
    assert FineTuning(**options).framing(encoder, wants) == expected
