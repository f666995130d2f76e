"""Faster training on a processor: the model's own arithmetic, with cheaper kernels.

Three things cost far more on a processor than they need to, and are replaced in place while a
model trains; what a model computes in eval mode stays the same, bit for bit:

* Dropout draws one byte per element instead of one float. Its probability is rounded to a 256th
  and what is kept is scaled by the realised probability, so expectations are exact.
* Attention is plain batched products around one softmax in float32. PyTorch's own path with
  dropout copies, checks and rounds more often.
* Under bfloat16 autocast the embeddings are rounded to bfloat16 once, where they enter the first
  layer. Otherwise their float32 makes the sums between all layers float32, and every matrix
  product casts its input again. Weights and their gradients remain float32.

All randomness comes from PyTorch's default processor generator, so restoring its state repeats a
run bit for bit. Shapes: B examples, N heads, T word pieces (queries), S word pieces (keys), D
width of a head.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ATTENTION = "totune"  # the name under which transformers finds `attend`
_LEVELS = 256  # a random byte has so many values
# Without dropout the fused path of PyTorch is faster in float32, and for long keys in bfloat16.
_LONGEST_WITHOUT_DROPOUT = 256
# What some models pass to attention and `attend` does not compute itself.
_FOREIGN = ("position_bias", "softcap", "s_aux", "cache")


def accelerate_encoder(model: "PreTrainedModel", device: torch.device) -> None:
    """Makes training on a processor faster, in place; does nothing for any other device.

    Parameters, buffers, their names and results in eval mode stay as they are; a second call
    changes nothing more. Attention is
    replaced only where transformers would use its "sdpa" implementation, so a model that was
    loaded with another one, or whose type has its own, keeps it.

    Args:
        model: a transformers encoder, or a model with an encoder as its `base_model`.
        device: where the model is going to train.
    """
    if device.type != "cpu":
        return
    replace_dropout(model, device)
    if model.config._attn_implementation == "sdpa":
        _register()
        model.set_attn_implementation(ATTENTION)
    embeddings = getattr(model.base_model, "embeddings", None)
    if isinstance(embeddings, nn.Module) and not _has_hook(embeddings):
        embeddings.register_forward_hook(_rounded_once)


def _register() -> None:
    """Makes `attend` known to transformers; a second call changes nothing."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    AttentionInterface.register(ATTENTION, attend)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)


class FastDropout(nn.Module):
    """Dropout with a probability in steps of 1/256.

    Args:
        p: the probability of dropping an element, at least 1/512 and less than 511/512.

    Raises:
        ValueError: if `p` rounds to never or to always.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not can_draw(p):
            raise ValueError(f"p must round to 1/{_LEVELS} .. {_LEVELS - 1}/{_LEVELS}, not {p}")
        self.p = p

    def forward(self, states: Tensor) -> Tensor:
        """The states, each element dropped or scaled if training."""
        if not self.training:
            return states
        dropped: Tensor = _Dropout.apply(states, self.p)  # type: ignore[no-untyped-call]
        return dropped

    def extra_repr(self) -> str:
        return f"p={self.p}"


def can_draw(p: float) -> bool:
    """Whether a probability, rounded to steps of 1/256, is neither 0 nor 1."""
    return 0 < round(p * _LEVELS) < _LEVELS


def draw_kept(shape: torch.Size, p: float, dtype: torch.dtype) -> tuple[Tensor, float]:
    """Draws what dropout keeps.

    Returns:
        Ones (kept) and zeros (dropped), and the scale that makes up for what is dropped.
    """
    size = shape.numel()
    words = torch.empty((size + 7) // 8, dtype=torch.int64)
    # The full range: `random_()` alone would leave the sign, one bit in 64, always 0.
    draws = words.random_(-(2**63), None).view(torch.uint8)[:size].view(shape)
    dropped = round(p * _LEVELS)
    kept = torch.ge(draws, dropped, out=torch.empty(shape, dtype=dtype))
    return kept, _LEVELS / (_LEVELS - dropped)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, p: float) -> Tensor:
        kept, ctx.scale = draw_kept(states.shape, p, states.dtype)
        ctx.save_for_backward(kept)
        return (states * kept).mul_(ctx.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return (gradient * kept).mul_(ctx.scale), None


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Scaled dot-product attention as transformers calls it.

    Outside training, where PyTorch's fused path is faster, and for anything that plain encoder
    attention does not have, transformers' "sdpa" implementation is called instead.

    Args:
        module: the calling layer; only whether it trains and whether it is causal is read.
        query: [B, N, T, D].
        key: [B, N, S, D].
        value: [B, N, S, D].
        attention_mask: [B or 1, N or 1, T or 1, S], boolean (True is seen) or added to scores.
        dropout: the probability of dropping an attention weight.
        scaling: what scores are multiplied by; D ** -0.5 if None.
        **kwargs: whatever else transformers passes.

    Returns:
        The result [B, T, N, D], and None in place of the weights.
    """
    if torch.is_autocast_enabled(query.device.type):
        # A custom function's backward pass runs without autocast, so the types must agree here.
        narrow = torch.get_autocast_dtype(query.device.type)
        query, key, value = query.to(narrow), key.to(narrow), value.to(narrow)
    if not (_is_plain_training(module, query, key, kwargs) and _pays(key, dropout)):
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        outcome: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout, scaling, **kwargs
        )
        return outcome
    bias = None if attention_mask is None else _additive(attention_mask)
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    attended: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
        query, key, value, bias, scaling, dropout
    )
    return attended, None


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        scaling: float,
        dropout: float,
    ) -> Tensor:
        size, heads = query.shape[:2]
        q, k, v = (x.flatten(0, 1) for x in (query, key, value))  # [BN, T or S, D]
        scores = _by_head(torch.bmm(q, k.transpose(1, 2)), size, heads)  # [B, N, T, S]
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32)).mul_(scaling)
        if bias is not None:
            scores.add_(bias)
        weights = torch.softmax(scores, -1).to(q.dtype)
        kept, scale = None, 1.0
        if dropout:
            kept, scale = draw_kept(weights.shape, dropout, weights.dtype)
        ctx.save_for_backward(q, k, v, weights, kept)
        ctx.scaling, ctx.scale = scaling, scale
        seen = (weights if kept is None else weights * kept).flatten(0, 1)
        attended = torch.bmm(seen, v).mul_(scale)  # [BN, T, D]
        return _by_head(attended, size, heads).transpose(1, 2).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, kept = ctx.saved_tensors
        size, heads = weights.shape[:2]
        upper = gradient.transpose(1, 2).flatten(0, 1) * ctx.scale  # [BN, T, D]
        seen = (weights if kept is None else weights * kept).flatten(0, 1)
        of_value = torch.bmm(seen.transpose(1, 2), upper)
        of_weights = torch.bmm(upper, v.transpose(1, 2)).view_as(weights)
        if kept is not None:
            of_weights.mul_(kept)
        of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        of_scores = of_scores.flatten(0, 1)  # [BN, T, S]
        of_query = torch.bmm(of_scores, k).mul_(ctx.scaling)
        of_key = torch.bmm(of_scores.transpose(1, 2), q).mul_(ctx.scaling)
        found = (_by_head(x, size, heads) for x in (of_query, of_key, of_value))
        return (*found, None, None, None)


def _by_head(flat: Tensor, size: int, heads: int) -> Tensor:
    """[BN, ...] as [B, N, ...]."""
    return flat.view(size, heads, *flat.shape[1:])


def _is_plain_training(
    module: nn.Module, query: Tensor, key: Tensor, kwargs: dict[str, Any]
) -> bool:
    """Whether this is encoder attention that trains on a processor, and nothing else."""
    if not (module.training and torch.is_grad_enabled() and query.device.type == "cpu"):
        return False
    causal = kwargs.get("is_causal")
    if causal if causal is not None else getattr(module, "is_causal", True):
        return False
    foreign = any(kwargs.get(name) is not None for name in _FOREIGN)
    return not foreign and query.shape[1] == key.shape[1]


def _pays(key: Tensor, dropout: float) -> bool:
    """Whether plain products are faster than PyTorch's own path, as measured."""
    if dropout:
        return can_draw(dropout)
    return key.dtype == torch.bfloat16 and key.shape[2] <= _LONGEST_WITHOUT_DROPOUT


def _additive(mask: Tensor) -> Tensor:
    """A mask as numbers to add to scores; boolean True becomes 0, False the least number."""
    if mask.dtype != torch.bool:
        return mask
    if mask.stride(2) == 0:
        mask = mask[:, :, :1]  # padding is the same for every query
    lowest = torch.finfo(torch.float32).min
    return torch.zeros(mask.shape).masked_fill_(~mask, lowest)


def replace_dropout(model: nn.Module, device: torch.device) -> None:
    """Makes dropout on a processor cheap, in place; does nothing for any other device."""
    if device.type != "cpu":
        return
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is nn.Dropout and can_draw(child.p):
                setattr(module, name, FastDropout(child.p).train(child.training))


def _has_hook(embeddings: nn.Module) -> bool:
    return _rounded_once in embeddings._forward_hooks.values()


def _rounded_once(embeddings: nn.Module, _: Any, output: Any) -> Any:
    """A forward hook: the embeddings in autocast's type, while training under autocast."""
    if embeddings.training and isinstance(output, Tensor) and torch.is_autocast_enabled("cpu"):
        return output.to(torch.get_autocast_dtype("cpu"))
    return None
