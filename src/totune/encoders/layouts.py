"""Where each type of model keeps its blocks: one row per `model_type` of transformers.

Names are dotted paths within `AutoModel`. A new type is a new row; the conformance test over tiny
random models shows whether it is right.
"""

from dataclasses import dataclass

from totune.errors import ModelError
from totune.registry import did_you_mean


@dataclass(frozen=True)
class Layout:
    """Where the blocks of one type of model are.

    Attributes:
        embeddings: modules that run one after the other to make block 0's output.
        layers: the list of layers 1..L. Where a model has fewer entries than layers (ALBERT),
            consecutive layers share an entry.
        shared: modules that every layer reads, such as relative position embeddings.
        after_first: a module that runs once, after the first layer, and belongs to block 1.
        after_last: a module that runs once, after the top layer, and belongs to block L.
        pooler: modules that map the first token's state to a sentence vector; () for none.
        positions_after_padding: whether position numbers start above the padding id, which takes
            that many places from the position table.
    """

    embeddings: tuple[str, ...] = ("embeddings",)
    layers: str = "encoder.layer"
    shared: tuple[str, ...] = ()
    after_first: str | None = None
    after_last: str | None = None
    pooler: tuple[str, ...] = ()
    positions_after_padding: bool = False


_BERT_POOLER = ("pooler.dense", "pooler.activation")
_ROBERTA = Layout(pooler=_BERT_POOLER, positions_after_padding=True)

LAYOUTS = {
    "albert": Layout(
        embeddings=("embeddings", "encoder.embedding_hidden_mapping_in"),
        layers="encoder.albert_layer_groups",
        pooler=("pooler", "pooler_activation"),
    ),
    "bert": Layout(pooler=_BERT_POOLER),
    "camembert": _ROBERTA,
    "deberta-v2": Layout(
        shared=("encoder.rel_embeddings", "encoder.LayerNorm"), after_first="encoder.conv"
    ),
    "distilbert": Layout(layers="transformer.layer"),
    "electra": Layout(embeddings=("embeddings", "embeddings_project")),
    "modernbert": Layout(layers="layers", after_last="final_norm"),
    "mpnet": Layout(
        shared=("encoder.relative_attention_bias",),
        pooler=_BERT_POOLER,
        positions_after_padding=True,
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}


def layout_of(kind: str) -> Layout:
    """The layout of a `model_type`; raises `ModelError` with the supported types if unknown."""
    if kind not in LAYOUTS:
        raise ModelError(
            f"totune cannot take a model of type {kind!r} apart into layers. "
            f"{did_you_mean(kind, LAYOUTS)}"
        )
    return LAYOUTS[kind]
