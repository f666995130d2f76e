"""Language models from text: a masked one (BERT) or one in both directions (ELMo)."""

from totune.pretraining.bert import pretrain_bert
from totune.pretraining.elmo import pretrain_elmo
from totune.pretraining.presets import BERT_PRESETS, ELMO_PRESETS
from totune.pretraining.record import Pretrained
from totune.pretraining.settings import PretrainingSettings

__all__ = [
    "BERT_PRESETS",
    "ELMO_PRESETS",
    "Pretrained",
    "PretrainingSettings",
    "pretrain_bert",
    "pretrain_elmo",
]
