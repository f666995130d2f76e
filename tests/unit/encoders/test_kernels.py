"""Fast training on a processor: statistics of dropout, exactness of attention, names kept."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    ModernBertConfig,
    MPNetConfig,
    PretrainedConfig,
    PreTrainedModel,
    RobertaConfig,
)

from totune.encoders.kernels import (
    ATTENTION,
    FastDropout,
    accelerate_encoder,
    attend,
    can_draw,
    draw_kept,
)

CPU = torch.device("cpu")
SIZES = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
BERT = {**SIZES, "intermediate_size": 24, "max_position_embeddings": 40}
CONFIGS: dict[str, Callable[..., PretrainedConfig]] = {
    "bert": lambda **kw: BertConfig(**BERT, **kw),
    "roberta": lambda **kw: RobertaConfig(**BERT, **kw),
    "electra": lambda **kw: ElectraConfig(**BERT, embedding_size=8, **kw),
    "distilbert": lambda **kw: DistilBertConfig(
        vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=24, max_position_embeddings=40
    ),
    "modernbert": lambda **kw: ModernBertConfig(
        **BERT, pad_token_id=1, local_attention=4, global_attn_every_n_layers=2
    ),
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def build(kind: str, implementation: str = "sdpa", **options: float) -> PreTrainedModel:
    torch.manual_seed(0)
    return AutoModel.from_config(CONFIGS[kind](**options), attn_implementation=implementation)


def without_dropout(model: PreTrainedModel) -> PreTrainedModel:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def batch(padded: bool = True) -> dict[str, Tensor]:
    ids = torch.randint(5, 50, (3, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    if padded:
        mask[1, 6:] = 0
        mask[2, 2:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def real_tokens(model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
    """States of what is not padding: attention types differ in what padding positions hold."""
    states: Tensor = model(**inputs).last_hidden_state
    return states[inputs["attention_mask"].bool()]


def uneven(states: Tensor) -> Tensor:
    """A loss that pulls every number differently; layer norm would cancel an even pull."""
    return (states * torch.arange(states.numel()).sin().view_as(states)).sum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_keeps_the_stated_share_and_the_mean(p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    size = 800_000
    dropped = FastDropout(p)(torch.ones(size, dtype=dtype))
    realised = round(p * 256) / 256
    share = (dropped == 0).float().mean().item()
    spread = (realised * (1 - realised) / size) ** 0.5
    assert abs(share - realised) < 4 * spread
    scale = torch.tensor(1 / (1 - realised)).to(dtype)
    assert torch.equal(dropped[dropped != 0].unique(), scale.view(1))
    assert dropped.float().mean().item() == pytest.approx(1, abs=5e-3)


def test_every_byte_of_a_random_word_is_uniform() -> None:
    torch.manual_seed(0)
    size = 800_000
    kept = FastDropout(0.1)(torch.ones(size)).view(-1, 8).ne(0).float().mean(0)
    assert torch.allclose(kept, torch.tensor(230 / 256), atol=4 * (0.1 * 0.9 / (size / 8)) ** 0.5)


def test_neighbours_are_dropped_independently() -> None:
    torch.manual_seed(0)
    lost = FastDropout(0.5)(torch.ones(800_001)).eq(0).float() - 0.5
    for lag in (1, 8, 64):
        correlation = 4 * (lost[lag:] * lost[:-lag]).mean().item()
        assert abs(correlation) < 5 / 800_000**0.5


def test_dropout_gradient_is_what_was_kept() -> None:
    states = torch.randn(7, 5, 3, requires_grad=True)
    dropped = FastDropout(0.5)(states)
    dropped.sum().backward()
    assert states.grad is not None
    assert torch.equal(states.grad, torch.where(dropped == 0, 0.0, 2.0))


def test_dropout_is_identity_in_eval_mode_and_empty_input_passes() -> None:
    states = torch.randn(4, 3)
    assert FastDropout(0.3).eval()(states) is states
    assert FastDropout(0.3)(torch.ones(0, 3)).shape == (0, 3)


def test_same_generator_state_same_mask() -> None:
    dropout, states = FastDropout(0.2), torch.ones(1000)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, second = dropout(states), dropout(states)
    torch.set_rng_state(state)
    assert torch.equal(first, dropout(states))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("p", [0.0, 1.0, 0.001])
def test_probabilities_that_round_away_are_refused(p: float) -> None:
    assert not can_draw(p)
    with pytest.raises(ValueError, match="p must round to"):
        FastDropout(p)


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("padded", [True, False])
def test_eval_is_bit_equal_and_near_eager(kind: str, padded: bool) -> None:
    plain = build(kind).eval()
    fast = copy.deepcopy(plain)
    accelerate_encoder(fast, CPU)
    eager = build(kind, "eager").eval()
    eager.load_state_dict(plain.state_dict())
    inputs = batch(padded)
    with torch.no_grad():
        states = real_tokens(fast, inputs)
        assert torch.equal(states, real_tokens(plain, inputs))
        assert torch.allclose(states, real_tokens(eager, inputs), atol=1e-6)
    assert fast.config._attn_implementation == ATTENTION


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("padded", [True, False])
def test_gradients_without_dropout_equal_eager(kind: str, padded: bool) -> None:
    models = [without_dropout(build(kind, "eager")), without_dropout(build(kind))]
    models[1].load_state_dict(models[0].state_dict())
    accelerate_encoder(models[1], CPU)
    for model in models:
        model.train()
        for module in model.modules():
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.0
        uneven(real_tokens(model, batch(padded))).backward()
    compared = 0
    for (name, expected), found in zip(
        models[0].named_parameters(), models[1].parameters(), strict=True
    ):
        if expected.grad is not None:
            assert found.grad is not None, name
            limit = 1e-5 * max(1.0, expected.grad.abs().max().item())
            assert torch.allclose(found.grad, expected.grad, atol=limit), name
            compared += 1
    assert compared > 10


def eager_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float) -> Tensor:
    """The textbook formula, with dropout drawn as `attend` draws it: [B, T, N, D]."""
    scores = q @ k.transpose(2, 3) * 0.4
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30)
    weights = scores.softmax(-1)
    if p:
        kept, scale = draw_kept(weights.shape, p, weights.dtype)
        weights = weights * kept * scale
    return (weights @ v).transpose(1, 2)


PADDING = torch.tensor([[True] * 5, [True, True, False, False, False]])[:, None, None]


@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize(
    "mask",
    [
        None,
        PADDING.expand(-1, -1, 5, -1),
        torch.ones(2, 1, 5, 5, dtype=torch.bool).tril(),
        PADDING.logical_not() * -1e30,
    ],
    ids=["none", "padding", "window", "additive"],
)
def test_attention_with_dropout_equals_the_formula(mask: Tensor | None, p: float) -> None:
    seen = mask if mask is None or mask.dtype == torch.bool else mask == 0
    caller = nn.Identity()
    caller.is_causal = False
    results = []
    for fast in (True, False):
        torch.manual_seed(0)
        # The layout in which models hand over heads: [B, T, N, D], seen as [B, N, T, D].
        leaves = [torch.randn(2, 5, 3, 4, requires_grad=True) for _ in range(3)]
        q, k, v = (leaf.transpose(1, 2) for leaf in leaves)
        if fast:
            output, _ = attend(caller, q, k, v, mask, dropout=p, scaling=0.4)
        else:
            output = eager_attention(q, k, v, seen, p)
        (output * torch.arange(4)).sum().backward()
        results.append([output, *(leaf.grad for leaf in leaves)])
    for found, expected in zip(*results, strict=True):
        assert found is not None
        assert expected is not None
        assert torch.allclose(found, expected, atol=3e-6)


@pytest.mark.parametrize("length", [5, 300])
def test_attention_in_bfloat16_without_dropout_is_near_float32(length: int) -> None:
    torch.manual_seed(0)
    caller = nn.Identity()
    caller.is_causal = False
    leaves = [torch.randn(2, 3, length, 4).bfloat16().requires_grad_() for _ in range(3)]
    attend(caller, *leaves, None, scaling=0.4)[0].float().square().sum().backward()
    exact = [leaf.detach().float().requires_grad_() for leaf in leaves]
    q, k, v = exact
    eager_attention(q, k, v, None, 0.0).square().sum().backward()
    for leaf, wide in zip(leaves, exact, strict=True):
        assert leaf.grad is not None
        assert wide.grad is not None
        limit = 0.03 * wide.grad.abs().max()
        assert torch.allclose(leaf.grad.float(), wide.grad, atol=limit)


@pytest.mark.parametrize("kind", CONFIGS)
def test_names_and_saved_configuration_stay(kind: str) -> None:
    plain = build(kind)
    fast = copy.deepcopy(plain)
    accelerate_encoder(fast, CPU)
    assert list(fast.state_dict()) == list(plain.state_dict())
    assert fast.config.to_dict() == plain.config.to_dict()


def train_step(model: PreTrainedModel, bf16: bool) -> list[Tensor]:
    torch.manual_seed(3)
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        states = model(**batch()).last_hidden_state
    uneven(states.float()).backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("kind", CONFIGS)
def test_training_repeats_bit_for_bit(kind: str, bf16: bool) -> None:
    model = build(kind).train()
    accelerate_encoder(model, CPU)
    first, second = train_step(model, bf16), train_step(model, bf16)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(gradient.dtype == torch.float32 for gradient in first)
    assert all(gradient.isfinite().all() for gradient in first)


def test_states_between_layers_are_bfloat16_while_training_under_autocast() -> None:
    model = build("bert")
    accelerate_encoder(model, CPU)
    seen = []
    model.encoder.layer[0].register_forward_hook(lambda _, __, output: seen.append(output.dtype))
    with torch.autocast("cpu", torch.bfloat16):
        model.train()(**batch())
        model.eval()(**batch())
    model.train()(**batch())
    assert seen == [torch.bfloat16, torch.float32, torch.float32]


def test_attention_weights_are_dropped_without_bias() -> None:
    model = build("bert", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.5)
    accelerate_encoder(model, CPU)
    module = model.encoder.layer[0].attention.self.train()
    states = torch.randn(1, 6, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = module.eval()(states)[0]
    module.train()
    torch.manual_seed(0)
    drawn = module(states.expand(20_000, -1, -1))[0].detach()
    error = drawn.std(0) / 20_000**0.5
    assert ((drawn.mean(0) - expected[0]).abs() < 5 * error).all()


def test_other_devices_and_other_attention_are_left_alone() -> None:
    model = build("bert")
    accelerate_encoder(model, torch.device("cuda"))
    assert model.config._attn_implementation == "sdpa"
    assert not any(isinstance(module, FastDropout) for module in model.modules())
    eager = build("bert", "eager")
    accelerate_encoder(eager, CPU)
    assert eager.config._attn_implementation == "eager"
    torch.manual_seed(0)
    relative = AutoModel.from_config(MPNetConfig(**BERT))
    accelerate_encoder(relative, CPU)
    assert relative.config._attn_implementation == "eager"
    assert any(isinstance(module, FastDropout) for module in relative.modules())
    assert train_step(relative.train(), bf16=True)


def test_dropout_that_is_off_stays_as_it_is() -> None:
    model = build("bert", **NO_DROPOUT)
    accelerate_encoder(model, CPU)
    assert not any(isinstance(module, FastDropout) for module in model.modules())


def test_a_second_call_changes_nothing_more() -> None:
    model = build("bert")
    accelerate_encoder(model, torch.device("cpu"))
    once = [repr(model), len(model.embeddings._forward_hooks)]
    accelerate_encoder(model, torch.device("cpu"))
    assert [repr(model), len(model.embeddings._forward_hooks)] == once
    assert once[1] == 1
