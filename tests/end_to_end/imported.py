"""What a server of commands imports ahead: all that a command would import on its way."""

import importlib
import pkgutil
from contextlib import suppress

import totune

# Imported by totune, or by these libraries themselves, only where they are used.
LATER = (
    "alembic.command",
    "alembic.config",
    "alembic.migration",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "mpl_toolkits.mplot3d",
    "optuna.storages._rdb.models",
    "peft",
    "pydantic.dataclasses",
    "sklearn.feature_extraction.text",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
    "transformers.modeling_utils",
    "transformers.models.bert.modeling_bert",
    "transformers.models.bloom.modeling_bloom",  # peft's
)

for _found in pkgutil.walk_packages(totune.__path__, "totune."):
    if not _found.name.endswith(".__main__"):  # which would run
        importlib.import_module(_found.name)
for _name in LATER:
    with suppress(ImportError):  # of an extra that is not installed
        importlib.import_module(_name)
