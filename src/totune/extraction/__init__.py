"""Vectors of large corpora: any number of rows, in shards, with flat memory.

What is named here is imported on first use, so that the settings load without PyTorch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from totune.extraction.reader import Extracted, Shard, open_features
    from totune.extraction.run import extract
    from totune.extraction.settings import ExtractionSettings

_MODULES = {
    "Extracted": "reader",
    "ExtractionSettings": "settings",
    "Shard": "reader",
    "extract": "run",
    "open_features": "reader",
}
__all__ = [
    "Extracted",
    "ExtractionSettings",
    "Shard",
    "extract",
    "open_features",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
