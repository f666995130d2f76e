"""A trained model as a folder, and back.

The folder holds `totune.json` (what the model is), `head.safetensors` (mixing and head) and
- of a model that transformers has a class for, head included: the tokenizer, and `config.json` +
  `model.safetensors` in the layout of `AutoModelForSequenceClassification` or
  `AutoModelForTokenClassification`;
- of any other model whose encoder is its own: a folder `encoder/` with tokenizer and encoder, so
  that transformers does not load it with a random head;
- of a model with modules inserted into a pretrained encoder: `adapter_config.json` +
  `adapter_model.safetensors` (which PEFT loads where they are its own, given the encoder), and in
  `head.safetensors` whatever else was trained. The encoder is loaded from where it was, or from a
  folder `encoder/` within, and known by its fingerprint;
or, for a baseline, a `baseline/` folder of JSON and safetensors.

Beside it, `train_texts.npy` holds hashes of the texts that the model was trained on, by which they
are known again when it is evaluated; without that file a model works all the same.

What writes models is imported on first use, so that a baseline answers without PyTorch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from totune.export.files import check_model_folder, is_model, remove_model, write_seen
from totune.export.loading import load_model
from totune.export.predictor import Predictor, embedder, predictor
from totune.export.usage import who_loads

if TYPE_CHECKING:
    from totune.export.merging import Merged, merge
    from totune.export.saving import save_baseline, save_model

_MODULES = {
    "Merged": "merging",
    "merge": "merging",
    "save_baseline": "saving",
    "save_model": "saving",
}
__all__ = [
    "Merged",
    "Predictor",
    "check_model_folder",
    "embedder",
    "is_model",
    "load_model",
    "merge",
    "predictor",
    "remove_model",
    "save_baseline",
    "save_model",
    "who_loads",
    "write_seen",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
