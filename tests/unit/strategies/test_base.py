"""How a strategy's rows become encoder inputs where nothing was said."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from totune.encoders.encoder import Encoder
from totune.heads.base import InputKind
from totune.inputs.encoded import EncodingOptions
from totune.strategies.fine_tuning import FineTuning


@pytest.mark.parametrize(
    ("options", "reads_words", "wants", "expected"),
    [
        ({}, False, "pair", EncodingOptions("joint", True)),
        ({}, False, "pooled-pair", EncodingOptions("separate", True)),
        ({}, True, "pair", EncodingOptions("separate", False)),
        ({}, True, "pooled", EncodingOptions("joint", False)),
        ({"pair_encoding": "joint", "document_context": True}, True, "pair", EncodingOptions()),
        ({"pair_encoding": "separate"}, False, "pair", EncodingOptions("separate", True)),
        ({"document_context": False}, False, "words", EncodingOptions("joint", False)),
    ],
)
def test_framing(
    options: dict[str, Any], reads_words: bool, wants: InputKind, expected: EncodingOptions
) -> None:
    encoder = cast(Encoder, SimpleNamespace(reads_words=reads_words))
    assert FineTuning(**options).encoding_options(encoder, wants) == expected
