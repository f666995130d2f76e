"""Taggers whose head transformers has a class for: our weights under its names.

`AutoModelForTokenClassification` puts one linear layer on every word piece's top state; read at the
first piece of each word, that is the linear head. A conformance test compares the logits.
"""

from typing import TYPE_CHECKING

import torch

from totune.encoders.transformers import TransformersEncoder
from totune.heads.linear import Linear, LinearModule
from totune.model import Model
from totune.sequence_classifier import HEAD_LAYOUTS
from totune.tasks.tagging import Tagging

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def why_not(model: Model) -> str | None:
    """Why transformers has no class for this tagger, or None if it has."""
    encoder, head = model.encoder, model.head_options
    if encoder.kind not in HEAD_LAYOUTS or not isinstance(encoder, TransformersEncoder):
        return f"transformers has no linear token head for {encoder.kind} that totune knows"
    if model.readout.layers != "top":
        return (
            f"it reads layers={model.readout.layers}; transformers' token heads read the top layer"
        )
    if not isinstance(head, Linear):
        return f"its head is {head.name!r}, not linear"
    if head.layers != 1:
        return f"its head has {head.layers} layers, transformers' token heads have one"
    return None


def to_token_classifier(model: Model, task: Tagging) -> "PreTrainedModel":
    """The model as transformers' class; only where `why_not` gives None."""
    from transformers import AutoModelForTokenClassification

    encoder, head = model.encoder, model.head
    assert isinstance(encoder, TransformersEncoder)
    assert isinstance(head, LinearModule)
    config = type(encoder.model.config).from_dict(encoder.model.config.to_dict())
    config.id2label = dict(enumerate(task.labels))
    config.label2id = {label: index for index, label in enumerate(task.labels)}
    twin: PreTrainedModel = AutoModelForTokenClassification.from_config(  # type: ignore[no-untyped-call]
        config, dtype=torch.float32
    )
    base = getattr(twin, twin.base_model_prefix)
    base.load_state_dict(encoder.model.state_dict(), strict=False)
    twin.get_submodule("classifier").load_state_dict(head.out.state_dict())
    twin.train(False)
    return twin
