"""ELMo against plain float64 loops, and what every encoder must do.

The reference reads the official matrices and knows nothing of the package's own arrangement.
"""

import copy
import importlib.util
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from totune.cli import main
from totune.encoders.elmo import weights as weights_module
from totune.encoders.elmo.characters import CharacterTable, characters_of
from totune.encoders.elmo.encoder import ElmoEncoder
from totune.encoders.elmo.lstm import ElmoLayer
from totune.encoders.elmo.options import ElmoOptions
from totune.encoders.elmo.recurrence import Rule, State, Weights, clipped_lstm
from totune.encoders.elmo.steps import Steps
from totune.encoders.elmo.weights import (
    convert_elmo,
    holds_elmo,
    load_elmo,
    official_weights,
    plan_elmo,
)
from totune.encoders.encoder import Cached
from totune.encoders.loading import load_encoder
from totune.encoders.words import BEGIN, EMPTY, END, Vocabulary
from totune.errors import ConfigError, ModelError
from totune.features import prefix_fingerprint
from totune.inputs.batches import Batch

# Clips so low that both fire in every sentence.
OPTIONS = ElmoOptions(
    projection_size=3,
    cell_size=5,
    layers=3,
    cell_clip=0.5,
    projection_clip=0.4,
    residual=True,
    character_size=2,
    filters=((1, 2), (3, 4)),
    highway_layers=2,
    word_length=12,
)
SENTENCES = [
    ["The", "longest", "of", "all", ",", "na\u00efve"],
    ["a"],
    ["all", "longest-of-all-words", "of", "the"],
]

Arrays = dict[str, np.ndarray]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def clip(x: np.ndarray, limit: float | None) -> np.ndarray:
    return x if limit is None else np.clip(x, -limit, limit)


def official_arrays(options: ElmoOptions, seed: int = 0) -> Arrays:
    """Random weights in the official layout, float64."""
    random = np.random.default_rng(seed)
    features, size, cells = options.features, options.projection_size, options.cell_size
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, options.character_size)}
    for at, (width, count) in enumerate(options.filters):
        shapes[f"CNN/W_cnn_{at}"] = (1, width, options.character_size, count)
        shapes[f"CNN/b_cnn_{at}"] = (count,)
    for at in range(options.highway_layers):
        for gate in ("carry", "transform"):
            shapes[f"CNN_high_{at}/W_{gate}"] = (features, features)
            shapes[f"CNN_high_{at}/b_{gate}"] = (features,)
    if features != size:
        shapes |= {"CNN_proj/W_proj": (features, size), "CNN_proj/b_proj": (size,)}
    for way in (0, 1):
        for layer in range(options.layers):
            cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes[f"{cell}/W_0"] = (2 * size, 4 * cells)
            shapes[f"{cell}/B"] = (4 * cells,)
            shapes[f"{cell}/W_P_0"] = (cells, size)
    return {name: random.normal(size=shape) for name, shape in shapes.items()}


def encoder_of(options: ElmoOptions, arrays: Arrays, vocabulary: Vocabulary) -> ElmoEncoder:
    def read(name: str, shape: tuple[int, ...]) -> Tensor:
        assert arrays[name].shape == shape
        return torch.from_numpy(arrays[name])

    encoder = ElmoEncoder(options, vocabulary).double()
    encoder.load_state_dict(official_weights(options, read))
    return encoder.eval()


def word_vector(codes: list[int], options: ElmoOptions, arrays: Arrays) -> np.ndarray:
    """A word's vector from codes 0 to 260 without fill."""
    filled = [*codes, *[260] * (options.word_length - len(codes))]
    letters = arrays["char_embed"][filled]
    found = []
    for at, (width, _) in enumerate(options.filters):
        kernel, bias = arrays[f"CNN/W_cnn_{at}"][0], arrays[f"CNN/b_cnn_{at}"]
        windows = [letters[p : p + width] for p in range(len(letters) - width + 1)]
        sums = [np.einsum("kc,kcf->f", window, kernel) + bias for window in windows]
        highest = np.max(sums, axis=0)
        found.append(np.tanh(highest) if options.activation == "tanh" else np.maximum(highest, 0))
    h = np.concatenate(found)
    for at in range(options.highway_layers):
        name = f"CNN_high_{at}"
        g = sigmoid(h @ arrays[f"{name}/W_carry"] + arrays[f"{name}/b_carry"])
        new = np.maximum(h @ arrays[f"{name}/W_transform"] + arrays[f"{name}/b_transform"], 0)
        h = g * new + (1 - g) * h
    if "CNN_proj/W_proj" in arrays:
        h = h @ arrays["CNN_proj/W_proj"] + arrays["CNN_proj/b_proj"]
    return h


def read_way(
    vectors: np.ndarray, options: ElmoOptions, arrays: Arrays, way: int, states: Any
) -> list[np.ndarray]:
    """Each block's output in one direction; `states` are read and replaced, one per layer."""
    found = [vectors]
    for layer in range(options.layers):
        cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        h, c = states[layer]
        outputs = []
        for x in found[-1]:
            sums = np.concatenate([x, h]) @ arrays[f"{cell}/W_0"] + arrays[f"{cell}/B"]
            i, j, f, o = np.split(sums, 4)
            c = clip(sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j), options.cell_clip)
            h = (sigmoid(o) * np.tanh(c)) @ arrays[f"{cell}/W_P_0"]
            h = clip(h, options.projection_clip)
            outputs.append(h)
        states[layer] = h, c
        added = found[-1] if options.residual and layer else 0.0
        found.append(np.stack(outputs) + added)
    return found


def zero_states(options: ElmoOptions) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    zeros = np.zeros(options.projection_size), np.zeros(options.cell_size)
    return [[zeros] * options.layers for _ in (0, 1)]


def expected_layers(
    words: list[str], options: ElmoOptions, arrays: Arrays, states: Any = None
) -> np.ndarray:
    """Every block's output of a sentence's words, [L + 1, T, 2P]."""
    states = zero_states(options) if states is None else states
    texts = [list(word.encode()[: options.word_length - 2]) for word in words]
    codes = [[258, *inner, 259] for inner in [[256], *texts, [257]]]
    vectors = np.stack([word_vector(own, options, arrays) for own in codes])
    ahead = read_way(vectors, options, arrays, 0, states[0])
    back = read_way(vectors[::-1], options, arrays, 1, states[1])
    layers = [np.concatenate([f, b[::-1]], axis=1) for f, b in zip(ahead, back, strict=True)]
    return np.stack(layers)[:, 1:-1]


def batch_of(rows: list[list[str]], vocabulary: Vocabulary, padded_to: int | None = None) -> Batch:
    width = padded_to or max(map(len, rows))
    ids = np.zeros((len(rows), width), dtype=np.int64)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = [vocabulary.number(word) for word in row]
    numbers = torch.from_numpy(ids)
    return Batch(np.arange(len(rows)), numbers, (numbers > 0).long())


@pytest.fixture
def elmo(vocabulary: Vocabulary) -> ElmoEncoder:
    return encoder_of(OPTIONS, official_arrays(OPTIONS), vocabulary)


@pytest.fixture
def elmo_batch(vocabulary: Vocabulary) -> Batch:
    return batch_of(SENTENCES, vocabulary)


def test_characters_of_words() -> None:
    assert characters_of("a\u00e9", 8).tolist() == [259, 98, 196, 170, 260, 261, 261, 261]
    assert characters_of("abcdef", 6).tolist() == [259, 98, 99, 100, 101, 260]
    assert characters_of("\ud800", 4).tolist() == [259, 260, 261, 261]


def test_the_table_follows_the_vocabulary() -> None:
    vocabulary = Vocabulary()
    table = CharacterTable(vocabulary, 4)
    twin = copy.deepcopy(table)
    for count in range(40):
        word = chr(ord("0") + count)
        number = vocabulary.number(word)
        assert table.of(np.array([number])).tolist() == [[259, ord(word) + 1, 260, 261]]
    assert twin.of(np.array([0, BEGIN, END, EMPTY])).tolist() == [
        [0, 0, 0, 0],
        [259, 257, 260, 261],
        [259, 258, 260, 261],
        [259, 260, 261, 261],
    ]
    assert twin.of(np.array([number])).tolist() == table.of(np.array([number])).tolist()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(OPTIONS, id="both clips"),
        pytest.param(replace(OPTIONS, cell_clip=None), id="projection clip"),
        pytest.param(replace(OPTIONS, projection_clip=None, residual=False), id="cell clip"),
        pytest.param(replace(OPTIONS, cell_clip=None, projection_clip=None), id="no clips"),
        pytest.param(replace(OPTIONS, activation="tanh", layers=1), id="tanh"),
        pytest.param(replace(OPTIONS, filters=((2, 3),), highway_layers=0), id="no projection"),
        pytest.param(replace(OPTIONS, word_length=7, layers=2), id="short words"),
    ],
)
def test_every_block_is_that_of_plain_loops(options: ElmoOptions, vocabulary: Vocabulary) -> None:
    arrays = official_arrays(options)
    encoder = encoder_of(options, arrays, vocabulary)
    with torch.no_grad():
        stack = encoder.encode(batch_of(SENTENCES, vocabulary))
    assert (stack.first, stack.last) == (0, options.layers)
    for row, words in enumerate(SENTENCES):
        expected = expected_layers(words, options, arrays)
        for depth, states in enumerate(stack.states):
            found = states[row, : len(words)].numpy()
            np.testing.assert_allclose(found, expected[depth], atol=1e-12)


def test_the_clips_of_these_tests_fire(vocabulary: Vocabulary) -> None:
    arrays = official_arrays(OPTIONS)
    states = zero_states(OPTIONS)
    layers = expected_layers(SENTENCES[0], OPTIONS, arrays, states)
    assert np.abs(layers[1]).max() == OPTIONS.projection_clip
    assert max(np.abs(c).max() for way in states for _, c in way) == OPTIONS.cell_clip


def test_state_is_kept_between_calls(elmo: ElmoEncoder, vocabulary: Vocabulary) -> None:
    arrays = official_arrays(OPTIONS)
    streams = [[["a", "b"], ["c"], ["d", "e", "f"]], [["x"], ["y", "a", "b"], ["z", "z"]]]
    elmo.stateful = True
    for _ in range(2):
        states = [zero_states(OPTIONS) for _ in streams]
        for at in range(3):
            rows = [stream[at] for stream in streams]
            with torch.no_grad():
                stack = elmo.encode(batch_of(rows, vocabulary))
            for row, words in enumerate(rows):
                expected = expected_layers(words, OPTIONS, arrays, states[row])
                for depth, found in enumerate(stack.states):
                    own = found[row, : len(words)].numpy()
                    np.testing.assert_allclose(own, expected[depth], atol=1e-12)
        elmo.reset_state()


def test_what_a_stateful_encoder_refuses(elmo: ElmoEncoder, elmo_batch: Batch) -> None:
    elmo.stateful = True
    top = elmo.encode(elmo_batch).top
    with pytest.raises(ValueError, match="same number of rows"):
        elmo.encode(batch_of([["a"]], Vocabulary()))
    with pytest.raises(ValueError, match="cannot start"):
        elmo.encode(elmo_batch, Cached(1, top))


def plain_layer(tokens: Tensor, steps: Steps, state: State, weights: Weights, rule: Rule) -> Tensor:
    """The recurrence with autograd, one direction and one sequence at a time, in steps' order."""
    ways = []
    for way in (0, 1):
        h, c = list(state.output[way]), list(state.memory[way])
        outputs, at = [], 0
        for size in steps.sizes:
            for row in range(size):
                x = tokens[way, at]
                sums = weights.input[way] @ x + weights.hidden[way] @ h[row] + weights.bias[way]
                i, f, g, o = sums.chunk(4)
                c[row] = i.sigmoid() * g.tanh() + f.sigmoid() * c[row]
                c[row] = c[row].clamp(-rule.cell_clip, rule.cell_clip)
                h[row] = weights.projection[way] @ (o.sigmoid() * c[row].tanh())
                h[row] = h[row].clamp(-rule.projection_clip, rule.projection_clip)
                outputs.append(h[row])
                at += 1
        ways.append(torch.cat([torch.stack(outputs), torch.stack(h), torch.stack(c).mT]))
    return torch.stack(ways)


def random_recurrence(clips: tuple[float, float]) -> tuple[list[Tensor], Steps, Rule]:
    torch.manual_seed(0)
    size = 4  # of outputs and memories, so that `plain_layer` can join them
    steps = Steps.of(np.array([2, 4, 1, 4]), 4, torch.device("cpu"))
    shapes = [(2, 11, size), (2, 4, size), (2, 4, size)]
    shapes += [(2, 16, size), (2, 16, size), (2, 16), (2, size, size)]
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    return inputs, steps, Rule(steps.sizes, *clips)


@pytest.mark.parametrize("clips", [(0.4, 0.3), (math.inf, 0.3), (0.4, math.inf)])
def test_gradients_are_those_of_autograd(clips: tuple[float, float]) -> None:
    inputs, steps, rule = random_recurrence(clips)
    tokens, state, weights = inputs[0], State(*inputs[1:3]), Weights(*inputs[3:])
    outputs, end = clipped_lstm(tokens, state, weights, rule)
    ours = torch.cat([outputs, end.output, end.memory.mT], dim=1)
    plain = plain_layer(tokens, steps, state, weights, rule)
    torch.testing.assert_close(ours, plain, atol=1e-12, rtol=0)
    weighting = torch.randn_like(plain)
    pairs = (torch.autograd.grad((found * weighting).sum(), inputs) for found in (ours, plain))
    for own, expected in zip(*pairs, strict=True):
        torch.testing.assert_close(own, expected, atol=1e-11, rtol=0)


def test_without_clips_it_is_the_frameworks_own_lstm() -> None:
    layer = ElmoLayer(3, 5, None, None, residual=False).double()
    lengths = np.array([4, 1, 3])
    states = torch.randn(3, 4, 6, dtype=torch.float64)
    steps = Steps.of(lengths, 4, torch.device("cpu"))
    found = steps.unpack(layer(steps.pack(states), steps.sizes)[0])
    for way in (0, 1):
        own = nn.LSTM(3, 5, proj_size=3, batch_first=True).double()
        values = (
            *(layer.input_weight[way], layer.hidden_weight[way], layer.bias[way]),
            *(torch.zeros(20), layer.projection_weight[way]),
        )
        with torch.no_grad():
            for parameter, value in zip(own.parameters(), values, strict=True):
                parameter.copy_(value)
        half = slice(3 * way, 3 * way + 3)
        for row, length in enumerate(lengths):
            read = states[row, :length, half]
            expected = own((read.flip(0) if way else read)[None])[0][0]
            expected = expected.flip(0) if way else expected
            torch.testing.assert_close(found[row, :length, half], expected, atol=1e-12, rtol=0)


def test_every_start_and_stop(elmo: ElmoEncoder, elmo_batch: Batch) -> None:
    real = elmo_batch.attention_mask.bool()
    with torch.no_grad():
        states = elmo.encode(elmo_batch).states
        for stop in range(4):
            whole = elmo.encode(elmo_batch, stop=stop)
            assert (whole.first, whole.last) == (0, stop)
            torch.testing.assert_close(whole.top, states[stop], atol=1e-12, rtol=0)
            for start in range(stop + 1):
                noise = torch.randn_like(states[start]).masked_fill(real.unsqueeze(-1), 0.0)
                part = elmo.encode(elmo_batch, Cached(start, states[start] + noise), stop)
                assert (part.first, part.last) == (start, stop)
                torch.testing.assert_close(part.top[real], states[stop][real], atol=1e-12, rtol=0)


def test_impossible_depths_are_refused(elmo: ElmoEncoder, elmo_batch: Batch) -> None:
    states = torch.zeros(3, 6, 6)
    for start, stop in ((Cached(3, states), 2), (None, 4), (None, -1)):
        with pytest.raises(ValueError, match="cannot run"):
            elmo.encode(elmo_batch, start, stop)


def test_padding_and_company_change_nothing(
    elmo: ElmoEncoder, elmo_batch: Batch, vocabulary: Vocabulary
) -> None:
    with torch.no_grad():
        together = elmo.encode(elmo_batch).states
        padded = elmo.encode(batch_of(SENTENCES, vocabulary, padded_to=9)).states
        turned = elmo.encode(batch_of(SENTENCES[::-1], vocabulary)).states
        alone = [elmo.encode(batch_of([words], vocabulary)).states for words in SENTENCES]
    for depth in range(4):
        assert not padded[depth][:, 6:].any()
        for row, words in enumerate(SENTENCES):
            own = together[depth][row, : len(words)]
            for other in (padded[depth][row], turned[depth][2 - row], alone[row][depth][0]):
                torch.testing.assert_close(other[: len(words)], own, atol=1e-12, rtol=0)


def test_gradients_reach_every_parameter(elmo: ElmoEncoder, elmo_batch: Batch) -> None:
    top = elmo.encode(elmo_batch).top
    (top * torch.randn_like(top)).sum().backward()
    for name, parameter in elmo.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_gradients_agree_with_and_without_a_cached_start(
    elmo: ElmoEncoder, elmo_batch: Batch
) -> None:
    for depth in (0, 1):
        for _, parameter in elmo.block_parameters(depth):
            parameter.requires_grad_(False)
    assert elmo.frozen_depth() == 1
    trained = [parameter for parameter in elmo.parameters() if parameter.requires_grad]
    with torch.no_grad():
        start = Cached(1, elmo.encode(elmo_batch, stop=1).top)
    weighting = torch.randn_like(start.states)
    gradients = [
        torch.autograd.grad((elmo.encode(elmo_batch, given).top * weighting).sum(), trained)
        for given in (None, start)
    ]
    for whole, cached in zip(*gradients, strict=True):
        torch.testing.assert_close(whole, cached, atol=1e-12, rtol=0)


def test_nothing_below_a_cached_start_gets_a_gradient(elmo: ElmoEncoder, elmo_batch: Batch) -> None:
    with torch.no_grad():
        start = Cached(2, elmo.encode(elmo_batch, stop=2).top)
    elmo.encode(elmo_batch, start).top.sum().backward()
    reached = {name for name, p in elmo.named_parameters() if p.grad is not None}
    assert reached == {name for name, _ in elmo.block_parameters(3)}


def test_blocks_hold_every_parameter_once(elmo: ElmoEncoder) -> None:
    listed = [pair for depth in range(4) for pair in elmo.block_parameters(depth)]
    own = dict(elmo.named_parameters())
    assert sorted(name for name, _ in listed) == sorted(own)
    assert all(own[name] is parameter for name, parameter in listed)
    assert (elmo.width, elmo.depth, elmo.pooler) == (6, 3, None)


def test_autocast_keeps_recurrences_exact(elmo: ElmoEncoder, elmo_batch: Batch) -> None:
    elmo.float()
    with torch.no_grad():
        exact = elmo.encode(elmo_batch)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rough = elmo.encode(elmo_batch)
            top = elmo.encode(elmo_batch, Cached(0, exact[0])).top
    assert rough.top.dtype == torch.float32
    torch.testing.assert_close(top, exact.top, atol=0.02, rtol=0)  # the markers' vectors differ
    real = elmo_batch.attention_mask.bool()
    alike = torch.cosine_similarity(rough.top[real], exact.top[real], dim=-1)
    assert alike.min() > 0.98


def test_training_under_autocast_gives_float32_gradients(
    elmo: ElmoEncoder, elmo_batch: Batch
) -> None:
    elmo.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        elmo.encode(elmo_batch).top.sum().backward()
    for name, parameter in elmo.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.dtype == torch.float32, name


def test_a_start_in_lower_precision_is_converted(elmo: ElmoEncoder, elmo_batch: Batch) -> None:
    elmo.float()
    with torch.no_grad():
        stack = elmo.encode(elmo_batch)
        restarted = elmo.encode(elmo_batch, Cached(2, stack[2].bfloat16()))
    assert restarted[2].dtype == restarted.top.dtype == torch.float32
    torch.testing.assert_close(restarted.top, stack.top, atol=0.05, rtol=0.05)


def test_copies_know_later_words(elmo: ElmoEncoder, vocabulary: Vocabulary) -> None:
    twin = copy.deepcopy(elmo)
    later = batch_of([["unheard-of"]], vocabulary)
    with torch.no_grad():
        assert torch.equal(twin.encode(later).top, elmo.encode(later).top)
        next(iter(twin.parameters())).add_(1.0)
        assert not torch.equal(twin.encode(later).top, elmo.encode(later).top)


def test_fingerprints_follow_weights_and_options(elmo: ElmoEncoder) -> None:
    before, prefix = elmo.fingerprint(), prefix_fingerprint(elmo, 1)
    assert copy.deepcopy(elmo).fingerprint() == before
    other = ElmoEncoder(replace(OPTIONS, cell_clip=0.6), Vocabulary()).double()
    other.load_state_dict(elmo.state_dict())
    assert other.fingerprint() != before
    assert prefix_fingerprint(other, 1) != prefix
    with torch.no_grad():
        elmo.layers[2].bias[0, 0] += 1e-3
    assert elmo.fingerprint() != before
    assert prefix_fingerprint(elmo, 1) == prefix


def test_saved_and_loaded(elmo: ElmoEncoder, tmp_path: Path) -> None:
    elmo.float()
    elmo.save(tmp_path)
    assert holds_elmo(tmp_path)
    again, tokenizer = load_elmo(tmp_path)
    assert again.options == OPTIONS
    assert again.fingerprint() == elmo.fingerprint()
    assert not again.training
    with torch.no_grad():
        first = again.encode(batch_of(SENTENCES, tokenizer.vocabulary)).top
        second = elmo.encode(batch_of(SENTENCES, elmo._characters._vocabulary)).top
    assert torch.equal(first, second)
    other, _ = load_elmo(tmp_path, random_weights=True)
    assert other.fingerprint() != again.fingerprint()


def test_a_plan_needs_no_memory(tmp_path: Path) -> None:
    (tmp_path / "tiny_options.json").write_text(json.dumps(OPTIONS.to_json()), encoding="utf-8")
    assert holds_elmo(tmp_path)
    planned = plan_elmo(tmp_path)
    assert planned.device.type == "meta"
    real = ElmoEncoder(OPTIONS, Vocabulary())
    assert [(n, p.shape) for n, p in planned.named_parameters()] == [
        (n, p.shape) for n, p in real.named_parameters()
    ]


def write_official(folder: Path) -> Path:
    """The two official files of a random network."""
    import h5py

    folder.mkdir(exist_ok=True)
    (folder / "tiny_options.json").write_text(json.dumps(OPTIONS.to_json()), encoding="utf-8")
    with h5py.File(folder / "tiny_weights.hdf5", "w") as opened:
        for name, array in official_arrays(OPTIONS).items():
            opened[name] = array.astype(np.float32)
    return folder


@pytest.mark.skipif(importlib.util.find_spec("h5py") is None, reason="h5py is not installed")
def test_converted_it_is_the_same_without_h5py(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    official, out = write_official(tmp_path / "official"), tmp_path / "out"
    with pytest.raises(SystemExit, match="0"):
        main(["convert-elmo", str(official), "--out", str(out)])
    monkeypatch.setitem(sys.modules, "h5py", None)
    converted = load_encoder(str(out))
    monkeypatch.undo()
    assert converted.encoder.fingerprint() == load_elmo(official)[0].fingerprint()
    batch = batch_of(SENTENCES, converted.tokenizer.vocabulary)
    assert converted.encoder.encode(batch).top.shape == (3, 6, 6)
    with pytest.raises(ConfigError, match="so nothing is written to it"):
        convert_elmo(official, out)
    with pytest.raises(ModelError, match="holds no ELMo in the official format"):
        convert_elmo(out, tmp_path / "again")


@pytest.mark.skipif(importlib.util.find_spec("h5py") is None, reason="h5py is not installed")
def test_official_files(tmp_path: Path, vocabulary: Vocabulary) -> None:
    import h5py

    arrays = official_arrays(OPTIONS)
    (tmp_path / "tiny_options.json").write_text(json.dumps(OPTIONS.to_json()), encoding="utf-8")
    with pytest.raises(ModelError, match="0 files named"):
        load_elmo(tmp_path)
    file = tmp_path / "tiny_weights.hdf5"
    with h5py.File(file, "w") as opened:
        for name, array in arrays.items():
            opened[name] = array.astype(np.float32)
    encoder, tokenizer = load_elmo(tmp_path)
    with torch.no_grad():
        top = encoder.encode(batch_of(SENTENCES[:1], tokenizer.vocabulary)).top
    np.testing.assert_allclose(
        top[0].numpy(), expected_layers(SENTENCES[0], OPTIONS, arrays)[-1], atol=1e-5
    )
    with h5py.File(file, "a") as opened:
        del opened["CNN/b_cnn_1"]
        opened["CNN/b_cnn_1"] = np.zeros(3)
    with pytest.raises(ModelError, match=r"b_cnn_1 in the shape \(3,\), the options say \(4,\)"):
        load_elmo(tmp_path)
    with h5py.File(file, "a") as opened:
        del opened["CNN/b_cnn_1"]
    with pytest.raises(ModelError, match="lack CNN/b_cnn_1"):
        load_elmo(tmp_path)
    file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises(ModelError, match="cannot be read"):
        load_elmo(tmp_path)
    (tmp_path / "other_weights.hdf5").touch()
    with pytest.raises(ModelError, match="2 files named"):
        load_elmo(tmp_path)


def test_a_missing_h5py_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny_options.json").write_text(json.dumps(OPTIONS.to_json()), encoding="utf-8")
    (tmp_path / "tiny_weights.hdf5").touch()

    def missing(_: str) -> None:
        raise ImportError

    monkeypatch.setattr(weights_module.importlib, "import_module", missing)
    with pytest.raises(ModelError, match="pip install h5py"):
        load_elmo(tmp_path)


def test_faults_of_our_own_files(elmo: ElmoEncoder, tmp_path: Path) -> None:
    elmo.save(tmp_path)
    config, weights = tmp_path / "config.json", tmp_path / "model.safetensors"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('"n_layers": 3', '"n_layers": 2'), encoding="utf-8")
    with pytest.raises(ModelError, match=r"encoder's tensors: layers\.2"):
        load_elmo(tmp_path)
    config.write_text(text.replace('"dim": 5', '"dim": 6'), encoding="utf-8")
    with pytest.raises(ModelError, match="they do not belong together"):
        load_elmo(tmp_path)
    config.write_text(text, encoding="utf-8")
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(ModelError, match="cannot be read"):
        load_elmo(tmp_path)
    weights.unlink()
    with pytest.raises(ModelError, match="no weights"):
        load_elmo(tmp_path)
    config.write_text("{}", encoding="utf-8")
    assert not holds_elmo(tmp_path)
    config.write_text("{", encoding="utf-8")
    assert not holds_elmo(tmp_path)
    with pytest.raises(ModelError, match="is not a JSON object"):
        plan_elmo(tmp_path)


def changed(name: str, value: object) -> dict[str, Any]:
    facts = OPTIONS.to_json()
    *path, last = name.split(".")
    owner = facts
    for step in path:
        owner = owner[step]
    owner[last] = value
    return facts


def test_options_are_read_back() -> None:
    assert ElmoOptions.from_json(OPTIONS.to_json(), "here") == OPTIONS
    for unlimited in (0, None):
        read = ElmoOptions.from_json(changed("lstm.cell_clip", unlimited), "here")
        assert read == replace(OPTIONS, cell_clip=None)
    plain = changed("char_cnn.n_highway", None)
    del plain["lstm"]["use_skip_connections"]
    expected = replace(OPTIONS, highway_layers=0, residual=False)
    assert ElmoOptions.from_json(plain, "here") == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("lstm.dim", "5", "lstm.dim is '5'; it must be a whole number from 1"),
        ("lstm.n_layers", 0, "lstm.n_layers is 0; it must be a whole number from 1"),
        ("lstm.dim", None, "lacks lstm.dim"),
        ("lstm", None, "lacks lstm.projection_dim"),
        ("lstm", [1], "it has no lstm.projection_dim"),
        ("lstm.proj_clip", -1, "proj_clip is -1; it must be a positive number, or null"),
        ("lstm.cell_clip", True, "cell_clip is True"),
        ("lstm.use_skip_connections", 1, "must be true or false"),
        ("lstm.projection_dim", 5, r"must be smaller than lstm.dim \(5\)"),
        ("char_cnn.filters", [[1, 2], [3]], "must be a list of"),
        ("char_cnn.filters", [], "must be a list of"),
        ("char_cnn.n_characters", 261, "must be 262 .261 is what the training"),
        ("char_cnn.n_characters", 100, r"must be 262\.$"),
        ("char_cnn.activation", "gelu", "must be 'relu' or 'tanh'"),
        ("char_cnn.max_characters_per_token", 2, "must be 3 or more"),
    ],
)
def test_faults_of_options(name: str, value: object, message: str) -> None:
    with pytest.raises(ModelError, match=f"here.*{message}"):
        ElmoOptions.from_json(changed(name, value), "here")


def test_options_that_are_no_object() -> None:
    with pytest.raises(ModelError, match="does not describe an ELMo"):
        ElmoOptions.from_json([], "here")
