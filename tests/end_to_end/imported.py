"""What a server of commands imports ahead: every module of totune, and what takes them longest."""

import importlib
import pkgutil

import totune

for _found in pkgutil.walk_packages(totune.__path__, "totune."):
    if not _found.name.endswith(".__main__"):  # which would run
        importlib.import_module(_found.name)

for _used in ("transformers.modeling_utils", "transformers.models.bert.modeling_bert"):
    importlib.import_module(_used)
