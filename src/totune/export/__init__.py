"""A trained model as a folder, and back.

The folder holds `totune.json` (what the model is), `head.safetensors` (mixing and head) and
- of a model whose encoder is its own: the tokenizer, and `config.json` + `model.safetensors` in the
  layout of `AutoModelForSequenceClassification` or `AutoModelForTokenClassification` where
  transformers has the very head, else of `AutoModel` (the encoder alone);
- of a model with modules inserted into a pretrained encoder: `adapter_config.json` +
  `adapter_model.safetensors`, and in `head.safetensors` whatever else was trained. The encoder is
  loaded from where it was, or from a folder `encoder/` within, and known by its fingerprint;
or, for a baseline, a `baseline/` folder of JSON and safetensors.

Beside it, `train_texts.npy` holds hashes of the texts that the model was trained on, by which they
are known again when it is evaluated; without that file a model works all the same.
"""

from totune.export.files import write_seen
from totune.export.loading import load_model
from totune.export.merging import Merged, merge
from totune.export.predictor import Predictor, embedder, predictor
from totune.export.saving import save_baseline, save_model

__all__ = [
    "Merged",
    "Predictor",
    "embedder",
    "load_model",
    "merge",
    "predictor",
    "save_baseline",
    "save_model",
    "write_seen",
]
