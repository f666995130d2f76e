"""Computing of a top layer only what its first token's state needs.

Where nothing but the first token of the top layer is read (pooling by `cls` or `pooler`), the
other tokens matter to that layer only as keys and values. Leaving out their queries, output
projections and feed-forward is exact and saves most of one layer's work: a sixth or twelfth of
an encoder's.
"""

from types import MethodType
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Types whose layers are BERT's: attention.self, attention.output, intermediate, output.
FIRST_TOKEN_TYPES = frozenset({"bert", "camembert", "electra", "roberta", "xlm-roberta"})
_DISPATCHED = frozenset({"sdpa", "totune"})


def only_first_token(model: "PreTrainedModel") -> bool:
    """Makes the top layer return the first token's state alone, [B, 1, H], in place.

    Parameters and their names stay as they are. To be used only where nothing else of the top
    layer is read; lower layers keep every token.

    Args:
        model: a transformers encoder on its own (`AutoModel`) or under a task's head.

    Returns:
        Whether it was done: the model's type and attention implementation allow it.
    """
    config = model.config
    allowed = config.model_type in FIRST_TOKEN_TYPES and not config.is_decoder
    if not allowed or config._attn_implementation not in _DISPATCHED:
        return False
    layers: Any = model.base_model.get_submodule("encoder.layer")
    top = layers[-1]
    top.forward = MethodType(_first_token_forward, top)
    return True


def whole_top_layer(model: "PreTrainedModel") -> None:
    """Undoes `only_first_token`."""
    layers: Any = model.base_model.get_submodule("encoder.layer")
    layers[-1].__dict__.pop("forward", None)


def _first_token_forward(
    self: Any, hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, **__: Any
) -> Tensor:
    """The layer's output for the first token, [B, 1, H], from all states [B, T, H].

    What else a layer is given concerns decoders, which `only_first_token` refuses.
    """
    first = hidden_states[:, :1]
    attended = self.attention.output(_attended(self, first, hidden_states, attention_mask), first)
    output: Tensor = self.output(self.intermediate(attended), attended)
    return output


def _attended(layer: Any, first: Tensor, states: Tensor, mask: Tensor | None) -> Tensor:
    """What the first token [B, 1, H] gathers from all states [B, T, H]: [B, 1, H]."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    attention = layer.attention.self
    size, width = len(states), attention.attention_head_size
    query, key, value = (
        projection(source).view(size, -1, attention.num_attention_heads, width).transpose(1, 2)
        for projection, source in (
            (attention.query, first),
            (attention.key, states),
            (attention.value, states),
        )
    )  # each [B, N, 1 or T, D]
    compute = ALL_ATTENTION_FUNCTIONS[attention.config._attn_implementation]
    gathered: Tensor = compute(
        attention,
        query,
        key,
        value,
        None if mask is None else mask[:, :, :1],
        dropout=attention.dropout.p if attention.training else 0.0,
        scaling=attention.scaling,
    )[0]
    return gathered.flatten(2)
