"""Language models from text: a masked one (BERT) or a bidirectional one (ELMo).

What is named here is imported on first use, so that a process that only tokenises does not wait
for PyTorch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from totune.pretraining.bert import pretrain_bert
    from totune.pretraining.elmo import pretrain_elmo
    from totune.pretraining.run import Pretrained
    from totune.pretraining.settings import BERT_PRESETS, ELMO_PRESETS, PretrainingSettings

_MODULES = {
    "BERT_PRESETS": "settings",
    "ELMO_PRESETS": "settings",
    "Pretrained": "run",
    "PretrainingSettings": "settings",
    "pretrain_bert": "bert",
    "pretrain_elmo": "elmo",
}
__all__ = [
    "BERT_PRESETS",
    "ELMO_PRESETS",
    "Pretrained",
    "PretrainingSettings",
    "pretrain_bert",
    "pretrain_elmo",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
