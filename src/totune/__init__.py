"""To tune or not to tune? Finds the best way to adapt a pretrained text encoder to your data.

    import totune

    study = totune.compare("reviews.csv", strategies=["feature-extraction", "fine-tuning"])
    print(study.advice)

What the package offers is imported from `totune.api` on first use, so that `import totune` and the
command line's `--help` do not wait for PyTorch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from totune._version import __version__

if TYPE_CHECKING:
    from totune.api import (
        Callback,
        Predictor,
        Study,
        compare,
        extract_features,
        load,
        merge,
        train,
    )

__all__ = [
    "Callback",
    "Predictor",
    "Study",
    "__version__",
    "compare",
    "extract_features",
    "load",
    "merge",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'totune' has no attribute {name!r}")
    return getattr(importlib.import_module("totune.api"), name)


def __dir__() -> list[str]:
    return __all__
