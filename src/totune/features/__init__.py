"""The frozen-prefix cache: what a frozen block says of an example is computed once, then read.

What is named here is imported on first use, so that the command line loads without PyTorch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from totune.features.cache import FeatureCache
    from totune.features.fill import compute
    from totune.features.fingerprint import prefix_fingerprint
    from totune.features.folder import CacheEntry
    from totune.features.rows import ChosenRows, Features, Selection

_MODULES = {
    "CacheEntry": "folder",
    "ChosenRows": "rows",
    "FeatureCache": "cache",
    "Features": "rows",
    "Selection": "rows",
    "compute": "fill",
    "prefix_fingerprint": "fingerprint",
}
__all__ = [
    "CacheEntry",
    "ChosenRows",
    "FeatureCache",
    "Features",
    "Selection",
    "compute",
    "prefix_fingerprint",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
