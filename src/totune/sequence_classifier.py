"""Models whose head transformers has a class for: our weights under its names.

`AutoModelForSequenceClassification` puts a fixed head on each type of encoder. Where a model's
readout and head are just that, its folder is written in that class's layout, so transformers loads
it without totune. A conformance test compares the logits.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import nn

from totune.encoders.encoder import Encoder
from totune.encoders.mixing import Pooling
from totune.encoders.transformers import TransformersEncoder
from totune.heads.linear import Linear, LinearModule
from totune.model import Model
from totune.tasks.base import Task
from totune.tasks.classification import Classification
from totune.tasks.multi_label import MultiLabel
from totune.tasks.regression import Regression

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel


@dataclass(frozen=True)
class HeadLayout:
    """The head of one type: on which pooling, and where its layers are.

    Attributes:
        out: path of the last layer.
        dense: path of the layer before it, None where there is one layer alone.
        activation: between the two.
        pooling: what the head reads.
    """

    out: str
    dense: str | None = None
    activation: str = "tanh"
    pooling: Pooling = "cls"


_ProblemType = Literal["single_label_classification", "multi_label_classification", "regression"]
_PROBLEM_TYPES: dict[type[Task], _ProblemType] = {
    Classification: "single_label_classification",
    MultiLabel: "multi_label_classification",
    Regression: "regression",
}
_ROBERTA = HeadLayout("classifier.out_proj", "classifier.dense")

HEAD_LAYOUTS = {
    "bert": HeadLayout("classifier", pooling="pooler"),
    "albert": HeadLayout("classifier", pooling="pooler"),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": _ROBERTA,
    "electra": HeadLayout("classifier.out_proj", "classifier.dense", "gelu"),
    "distilbert": HeadLayout("classifier", "pre_classifier", "relu"),
    "deberta-v2": HeadLayout("classifier", "pooler.dense", "gelu"),
}


def usual_head(encoder: Encoder) -> dict[str, Any]:
    """Options of the linear head that transformers puts on this type of encoder."""
    layout = HEAD_LAYOUTS.get(encoder.kind)
    if layout is None or layout.dense is None:
        return {"layers": 1}
    return {"layers": 2, "activation": layout.activation}


def usual_pooling(encoder: Encoder) -> Pooling:
    """What transformers' sentence head reads of this type of encoder.

    Of a language model over words it is their maximum (Peters et al. 2019, A.1).
    """
    if encoder.reads_words:
        return "max"
    layout = HEAD_LAYOUTS.get(encoder.kind)
    if layout is None or (layout.pooling == "pooler" and encoder.pooler is None):
        return "cls"
    return layout.pooling


def why_not(model: Model) -> str | None:
    """Why transformers has no class for this model, or None if it has."""
    encoder, readout, head = model.encoder, model.readout, model.head_options
    layout = HEAD_LAYOUTS.get(encoder.kind)
    if layout is None or not isinstance(encoder, TransformersEncoder):
        return f"transformers has no linear sentence head for {encoder.kind} that totune knows"
    if not isinstance(head, Linear):
        return f"its head is {head.name!r}, not linear"
    if readout.layers != "top" or readout.pooling != layout.pooling:
        return (
            f"it reads layers={readout.layers}, pooling={readout.pooling}; "
            f"the class for {encoder.kind} layers=top, pooling={layout.pooling}"
        )
    if head.layers != (1 if layout.dense is None else 2):
        return f"its head has {head.layers} layer(s), which the class for {encoder.kind} has not"
    if layout.dense is not None and head.activation != layout.activation:
        return f"its head uses {head.activation}, the class for {encoder.kind} {layout.activation}"
    own = getattr(encoder.model.config, "pooler_hidden_act", layout.activation)
    if encoder.kind == "deberta-v2" and own != layout.activation:
        return f"its configuration puts {own} where the head has {layout.activation}"
    return None


def to_sequence_classifier(model: Model, task: Task) -> "PreTrainedModel":
    """The model as transformers' class; only where `why_not` gives None."""
    from transformers import AutoModelForSequenceClassification

    encoder, head = model.encoder, model.head
    assert isinstance(encoder, TransformersEncoder)
    assert isinstance(head, LinearModule)
    layout = HEAD_LAYOUTS[encoder.kind]
    config = _config(encoder.model.config, task)
    twin: PreTrainedModel = AutoModelForSequenceClassification.from_config(  # type: ignore[no-untyped-call]
        config, dtype=torch.float32
    )
    base = getattr(twin, twin.base_model_prefix)
    base.load_state_dict(encoder.model.state_dict(), strict=False)
    pairs = [(layout.out, head.out), (layout.dense, head.dense)]
    for path, layer in pairs:
        if path is not None and layer is not None:
            twin.get_submodule(path).load_state_dict(layer.state_dict())
    if isinstance(task, Regression):
        _to_label_scale(twin.get_submodule(layout.out), task)
    twin.train(False)
    return twin


def _to_label_scale(out: nn.Module, task: Regression) -> None:
    """Makes the last layer give scores on the labels' own scale; our head gives 0..1."""
    span = task.high - task.low
    with torch.no_grad():
        for parameter in out.parameters():
            parameter.mul_(span)
        out.get_parameter("bias").add_(task.low)


def _config(config: "PretrainedConfig", task: Task) -> "PretrainedConfig":
    """The encoder's configuration with the task's labels."""
    labels = task.labels if isinstance(task, Classification | MultiLabel) else ("score",)
    copy = type(config).from_dict(config.to_dict())
    copy.id2label = dict(enumerate(labels))
    copy.label2id = {label: index for index, label in enumerate(labels)}
    copy.problem_type = _PROBLEM_TYPES[type(task)]
    return copy
