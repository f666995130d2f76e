"""Language models from text: a masked one (BERT) or a bidirectional one (ELMo).

What is named here is imported on first use, so that the settings load without PyTorch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from totune.pretraining.bert import pretrain_bert
    from totune.pretraining.elmo import pretrain_elmo
    from totune.pretraining.presets import BERT_PRESETS, ELMO_PRESETS
    from totune.pretraining.record import Pretrained
    from totune.pretraining.settings import PretrainingSettings

_MODULES = {
    "BERT_PRESETS": "presets",
    "ELMO_PRESETS": "presets",
    "Pretrained": "record",
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
