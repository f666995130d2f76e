"""To tune or not to tune? Finds the best way to adapt a pretrained text encoder to your data.

    import totune

    study = totune.compare("reviews.csv", strategies=["feature-extraction", "fine-tuning"])
    print(study.advice)

What the package offers stands in `__init__.pyi`, which type checkers read too. Each name is
imported from where it is defined on first use, so that `import totune` and the command line's
`--help` do not wait for PyTorch.
"""

import ast
import importlib
from functools import cache
from pathlib import Path
from typing import Any

from totune._version import __version__ as __version__


@cache
def _places() -> dict[str, str]:
    """The module that defines each name."""
    stub = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    lines = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(line.module) for line in lines for alias in line.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(_places())
    if name.startswith("__") or name not in _places():
        raise AttributeError(f"module 'totune' has no attribute {name!r}")
    return getattr(importlib.import_module(_places()[name]), name)


def __dir__() -> list[str]:
    return list(_places())
