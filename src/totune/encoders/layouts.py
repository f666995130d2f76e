"""Where each type of model keeps its blocks: one row per `model_type` of transformers.

Names are dotted paths within `AutoModel`. A new type is a new row; the conformance test over tiny
random models shows whether it is right.
"""

from dataclasses import dataclass

from totune.errors import ModelError
from totune.registry import did_you_mean


@dataclass(frozen=True)
class Sublayers:
    """Where the two sublayers of a layer are, as paths within the layer.

    Attributes:
        attention: the module that returns the attention sublayer's output, before the residual.
        feed_forward: likewise of the feed-forward sublayer.
        attention_norm: the layer norm over the sum of that output and the residual; None where
            norms stand before the sublayers.
        feed_forward_norm: likewise.
    """

    attention: str = "attention.output.dropout"
    feed_forward: str = "output.dropout"
    attention_norm: str | None = "attention.output.LayerNorm"
    feed_forward_norm: str | None = "output.LayerNorm"


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
        sublayers: where each layer's two sublayers end.
        projections: names of attention's query and value projections, for low-rank updates.
        rescaled: paths within a layer of what IA3 rescales: attention's key and value projections,
            and last the second projection of the feed-forward, by its input.
    """

    embeddings: tuple[str, ...] = ("embeddings",)
    layers: str = "encoder.layer"
    shared: tuple[str, ...] = ()
    after_first: str | None = None
    after_last: str | None = None
    pooler: tuple[str, ...] = ()
    positions_after_padding: bool = False
    sublayers: Sublayers = Sublayers()
    projections: tuple[str, ...] = ("query", "value")
    rescaled: tuple[str, ...] = ("attention.self.key", "attention.self.value", "output.dense")


_BERT_POOLER = ("pooler.dense", "pooler.activation")
_ROBERTA = Layout(pooler=_BERT_POOLER, positions_after_padding=True)

LAYOUTS = {
    "albert": Layout(
        embeddings=("embeddings", "encoder.embedding_hidden_mapping_in"),
        layers="encoder.albert_layer_groups",
        pooler=("pooler", "pooler_activation"),
        sublayers=Sublayers(
            attention="albert_layers.0.attention.output_dropout",
            feed_forward="albert_layers.0.ffn_output",
            attention_norm="albert_layers.0.attention.LayerNorm",
            feed_forward_norm="albert_layers.0.full_layer_layer_norm",
        ),
        rescaled=(
            "albert_layers.0.attention.key",
            "albert_layers.0.attention.value",
            "albert_layers.0.ffn_output",
        ),
    ),
    "bert": Layout(pooler=_BERT_POOLER),
    "camembert": _ROBERTA,
    "deberta-v2": Layout(
        shared=("encoder.rel_embeddings", "encoder.LayerNorm"),
        after_first="encoder.conv",
        projections=("query_proj", "value_proj"),
        rescaled=("attention.self.key_proj", "attention.self.value_proj", "output.dense"),
    ),
    "distilbert": Layout(
        layers="transformer.layer",
        sublayers=Sublayers(
            attention="attention.out_lin",
            feed_forward="ffn.dropout",
            attention_norm="sa_layer_norm",
            feed_forward_norm="output_layer_norm",
        ),
        projections=("q_lin", "v_lin"),
        rescaled=("attention.k_lin", "attention.v_lin", "ffn.lin2"),
    ),
    "electra": Layout(embeddings=("embeddings", "embeddings_project")),
    "modernbert": Layout(
        layers="layers",
        after_last="final_norm",
        sublayers=Sublayers("attn.out_drop", "mlp.Wo", None, None),
        projections=("Wqkv",),
        rescaled=("attn.Wqkv", "mlp.Wo"),
    ),
    "mpnet": Layout(
        shared=("encoder.relative_attention_bias",),
        pooler=_BERT_POOLER,
        positions_after_padding=True,
        sublayers=Sublayers(attention="attention.dropout", attention_norm="attention.LayerNorm"),
        projections=("q", "v"),
        rescaled=("attention.attn.k", "attention.attn.v", "output.dense"),
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
