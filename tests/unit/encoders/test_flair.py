"""Flair's language models against plain float64 loops, and what every encoder must do.

The reference reads the weights as files hold them and builds its texts as strings.
"""

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from totune.encoders.encoder import Cached
from totune.encoders.flair.characters import CodeTable, Texts
from totune.encoders.flair.encoder import FlairLmEncoder, name_in_file
from totune.encoders.flair.options import FlairOptions
from totune.encoders.flair.weights import holds_flair, load_flair, plan_flair
from totune.encoders.words import EMPTY, END, Vocabulary
from totune.errors import ModelError
from totune.features import prefix_fingerprint
from totune.inputs.batches import Batch

# The directions know different characters, so that neither is read by the other's numbers.
OPTIONS = FlairOptions(
    hidden_size=5,
    embedding_size=3,
    forward=("<unk>", " ", "\n", *"abcdefghijklmnopqrstuvwxyz.'"),
    backward=("<unk>", *"zyxwvutsrqponmlkjihgfedcba", "\n", ",", " ", "é"),
)
DASH = "\n"  # stands for the mark between the texts of a pair
SENTENCES = [
    ["the", "longest", "of", "all", ",", "naïve", "b"],
    ["a"],
    ["it", "'s", "two", DASH, "texts", "."],
    [""],
    ["one", DASH, ""],
]

Arrays = dict[str, np.ndarray]


def random_arrays(options: FlairOptions, seed: int = 0) -> Arrays:
    """Weights by their names in files, float64."""
    random = np.random.default_rng(seed)
    hidden, embedding = options.hidden_size, options.embedding_size
    shapes: dict[str, tuple[int, ...]] = {}
    for way, size in (("forward", len(options.forward)), ("backward", len(options.backward))):
        shapes |= {
            f"{way}.encoder.weight": (size, embedding),
            f"{way}.rnn.weight_ih_l0": (4 * hidden, embedding),
            f"{way}.rnn.weight_hh_l0": (4 * hidden, hidden),
            f"{way}.rnn.bias_ih_l0": (4 * hidden,),
            f"{way}.rnn.bias_hh_l0": (4 * hidden,),
            f"{way}.decoder.weight": (size, hidden),
            f"{way}.decoder.bias": (size,),
        }
    return {name: random.normal(size=shape) for name, shape in shapes.items()}


def encoder_of(options: FlairOptions, arrays: Arrays, vocabulary: Vocabulary) -> FlairLmEncoder:
    encoder = FlairLmEncoder(options, vocabulary).double()
    names = encoder.state_dict()
    encoder.load_state_dict({n: torch.from_numpy(arrays[name_in_file(n)]) for n in names})
    return encoder.eval()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def numbers_of(text: str, alphabet: tuple[str, ...]) -> list[int]:
    return [alphabet.index(item) if item in alphabet else 0 for item in text]


def read(text: str, alphabet: tuple[str, ...], arrays: Arrays, way: str) -> np.ndarray:
    """The state after each character, one step at a time, [C, D]."""
    rnn = {name: arrays[f"{way}.rnn.{name}_l0"] for name in ("weight_ih", "weight_hh")}
    bias = arrays[f"{way}.rnn.bias_ih_l0"] + arrays[f"{way}.rnn.bias_hh_l0"]
    h = c = np.zeros(rnn["weight_hh"].shape[1])
    states = []
    for number in numbers_of(text, alphabet):
        x = arrays[f"{way}.encoder.weight"][number]
        i, f, g, o = np.split(rnn["weight_ih"] @ x + rnn["weight_hh"] @ h + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.stack(states)


def text_of(words: list[str]) -> tuple[str, list[int]]:
    """The text without its marker, and where in it each word begins."""
    text, begins = "", []
    for at, word in enumerate(words):
        if at and DASH not in (word, words[at - 1]):
            text += " "
        begins.append(len(text))
        text += word
    return text, begins


def expected_layers(words: list[str], options: FlairOptions, arrays: Arrays) -> list[np.ndarray]:
    """Both blocks' outputs of a row, [T, 2D] each."""
    text, begins = text_of(words)
    ahead = read("\n" + text, options.forward, arrays, "forward")
    back = read("\n" + text[::-1], options.backward, arrays, "backward")
    spellings, contexts = [], []
    for word, begin in zip(words, begins, strict=True):
        halves = []
        for way, alphabet in (("forward", options.forward), ("backward", options.backward)):
            letters = arrays[f"{way}.encoder.weight"][numbers_of(word, alphabet)]
            mean = letters.mean(axis=0) if word else np.zeros(options.embedding_size)
            halves += [mean, np.zeros(options.hidden_size - options.embedding_size)]
        spellings.append(np.concatenate(halves))
        # `ahead[k]` has read the marker and k characters, `back[k]` the marker and the last k.
        contexts.append(np.concatenate([ahead[begin + len(word)], back[len(text) - begin]]))
    return [np.stack(spellings), np.stack(contexts)]


def number_of(word: str, vocabulary: Vocabulary) -> int:
    return END if word == DASH else vocabulary.number(word)


def batch_of(rows: list[list[str]], vocabulary: Vocabulary, padded_to: int | None = None) -> Batch:
    ids = np.zeros((len(rows), padded_to or max(map(len, rows))), dtype=np.int64)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = [number_of(word, vocabulary) for word in row]
    numbers = torch.from_numpy(ids)
    return Batch(np.arange(len(rows)), numbers, (numbers > 0).long())


@pytest.fixture
def flair(vocabulary: Vocabulary) -> FlairLmEncoder:
    return encoder_of(OPTIONS, random_arrays(OPTIONS), vocabulary)


@pytest.fixture
def flair_batch(vocabulary: Vocabulary) -> Batch:
    return batch_of(SENTENCES, vocabulary)


def test_texts_of_rows(vocabulary: Vocabulary, flair_batch: Batch) -> None:
    table = CodeTable(OPTIONS.forward, vocabulary)
    mask = flair_batch.attention_mask.bool().numpy()
    texts = Texts.of(flair_batch.input_ids.numpy(), mask, table)
    codes, turned = texts.codes(table), texts.reversed_codes(table)
    for row, words in enumerate(SENTENCES):
        text = text_of(words)[0]
        length = len(text) + 1
        assert texts.lengths[row] == length
        assert codes[row, :length].tolist() == numbers_of("\n" + text, OPTIONS.forward)
        assert turned[row, :length].tolist() == numbers_of("\n" + text[::-1], OPTIONS.forward)
        assert (codes[row, length:] == table.marker).all()


def test_a_text_is_what_was_tokenised(flair: FlairLmEncoder, tmp_path: Path) -> None:
    flair.save(tmp_path)
    loaded, tokenizer = load_flair(tmp_path)
    pair = tokenizer(["it's two."], ["texts"])["input_ids"]
    table = loaded._ahead_codes
    texts = Texts.of(np.array(pair), np.ones((1, len(pair[0])), dtype=bool), table)
    assert texts.codes(table)[0].tolist() == table.encode("\nit 's two .\ntexts").tolist()


def test_the_table_follows_the_vocabulary(vocabulary: Vocabulary) -> None:
    table = CodeTable(OPTIONS.forward, vocabulary)
    twin = copy.deepcopy(table)
    for letter in "abc":
        found = table.of(np.array([vocabulary.number(letter + "é")]))
        assert found[0].tolist() == [OPTIONS.forward.index(letter), 0]
    assert [codes.tolist() for codes in twin.of(np.array([END, EMPTY]))] == [[2], []]


def test_every_block_is_that_of_plain_loops(flair: FlairLmEncoder, flair_batch: Batch) -> None:
    arrays = random_arrays(OPTIONS)
    with torch.no_grad():
        stack = flair.encode(flair_batch)
    assert (stack.first, stack.last) == (0, 1)
    for row, words in enumerate(SENTENCES):
        for found, expected in zip(
            stack.states, expected_layers(words, OPTIONS, arrays), strict=True
        ):
            own = found[row, : len(words)].numpy()
            np.testing.assert_allclose(own, expected, atol=1e-12)


def test_bits_are_those_of_plain_loops(flair: FlairLmEncoder) -> None:
    arrays, text = random_arrays(OPTIONS), "any text, at all"
    found = flair.bits_per_character(text)
    for bits, way, read_text in zip(
        found, ("forward", "backward"), (text, text[::-1]), strict=True
    ):
        alphabet = getattr(OPTIONS, way)
        states = read("\n" + read_text[:-1], alphabet, arrays, way)
        logits = states @ arrays[f"{way}.decoder.weight"].T + arrays[f"{way}.decoder.bias"]
        chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        own = chances[np.arange(len(text)), numbers_of(read_text, alphabet)]
        assert bits == pytest.approx(-np.log2(own).mean(), abs=1e-5)
    with pytest.raises(ValueError, match="empty"):
        flair.bits_per_character("")


def test_a_model_that_knows_nothing_needs_all_bits(flair: FlairLmEncoder) -> None:
    for model in (flair.ahead, flair.back):
        model.decoder.weight.zero_()
        model.decoder.bias.zero_()
    expected = [math.log2(len(alphabet)) for alphabet in (OPTIONS.forward, OPTIONS.backward)]
    assert flair.bits_per_character("text") == pytest.approx(expected, abs=1e-6)


def test_every_start_and_stop(flair: FlairLmEncoder, flair_batch: Batch) -> None:
    with torch.no_grad():
        states = flair.encode(flair_batch).states
        for stop in (0, 1):
            whole = flair.encode(flair_batch, stop=stop)
            assert (whole.first, whole.last) == (0, stop)
            assert torch.equal(whole.top, states[stop])
            for start in range(stop + 1):
                part = flair.encode(flair_batch, Cached(start, states[start]), stop)
                assert (part.first, part.last) == (start, stop)
                assert torch.equal(part.top, states[stop])


def test_impossible_depths_are_refused(flair: FlairLmEncoder, flair_batch: Batch) -> None:
    states = torch.zeros(5, 7, 10)
    for start, stop in ((Cached(1, states), 0), (None, 2), (None, -1)):
        with pytest.raises(ValueError, match="cannot run"):
            flair.encode(flair_batch, start, stop)


def test_padding_and_company_change_nothing(
    flair: FlairLmEncoder, flair_batch: Batch, vocabulary: Vocabulary
) -> None:
    with torch.no_grad():
        together = flair.encode(flair_batch).states
        padded = flair.encode(batch_of(SENTENCES, vocabulary, padded_to=9)).states
        turned = flair.encode(batch_of(SENTENCES[::-1], vocabulary)).states
        alone = [flair.encode(batch_of([words], vocabulary)).states for words in SENTENCES]
    for depth in (0, 1):
        assert not padded[depth][:, 7:].any()
        for row, words in enumerate(SENTENCES):
            own = together[depth][row, : len(words)]
            assert not together[depth][row, len(words) :].any()
            for other in (padded[depth][row], turned[depth][4 - row], alone[row][depth][0]):
                torch.testing.assert_close(other[: len(words)], own, atol=1e-12, rtol=0)


def test_gradients_reach_every_parameter(flair: FlairLmEncoder, flair_batch: Batch) -> None:
    top = flair.encode(flair_batch).top
    (top * torch.randn_like(top)).sum().backward()
    for name, parameter in flair.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_nothing_below_a_cached_start_gets_a_gradient(
    flair: FlairLmEncoder, flair_batch: Batch
) -> None:
    bottom, top = flair.encode(flair_batch).states
    trained = [parameter for _, parameter in flair.block_parameters(1)]
    weighting = torch.randn_like(top)
    expected = torch.autograd.grad((top * weighting).sum(), trained)
    (flair.encode(flair_batch, Cached(0, bottom.detach())).top * weighting).sum().backward()
    for parameter, gradient in zip(trained, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-12, rtol=0)
    assert all(parameter.grad is None for _, parameter in flair.block_parameters(0))


def test_what_the_bottom_block_gives_trains_its_characters(
    flair: FlairLmEncoder, flair_batch: Batch
) -> None:
    flair.encode(flair_batch, stop=0).top.sum().backward()
    reached = {name for name, p in flair.named_parameters() if p.grad is not None}
    assert reached == {name for name, _ in flair.block_parameters(0)}


def test_blocks_hold_every_parameter_once(flair: FlairLmEncoder) -> None:
    listed = [pair for depth in (0, 1) for pair in flair.block_parameters(depth)]
    own = dict(flair.named_parameters())
    assert sorted(name for name, _ in listed) == sorted(own)
    assert all(own[name] is parameter for name, parameter in listed)
    assert (flair.width, flair.depth, flair.pooler) == (10, 1, None)
    assert flair.reads_words
    for _, parameter in flair.block_parameters(0):
        parameter.requires_grad_(False)
    assert flair.frozen_depth() == 0


@pytest.mark.parametrize("trains", [False, True])
def test_autocast(flair: FlairLmEncoder, flair_batch: Batch, trains: bool) -> None:
    flair.float().train(trains)
    exact = flair.encode(flair_batch).top.detach()
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(trains):
        stack = flair.encode(flair_batch)
    assert {state.dtype for state in stack.states} == {torch.float32}
    real = flair_batch.attention_mask.bool()
    alike = torch.cosine_similarity(stack.top[real], exact[real], dim=-1)
    assert alike.min() > 0.99
    if trains:
        stack.top.sum().backward()
        found = {parameter.grad.dtype for parameter in flair.parameters()}  # type: ignore[union-attr]
        assert found == {torch.float32}


def test_a_start_in_lower_precision_is_converted(flair: FlairLmEncoder, flair_batch: Batch) -> None:
    flair.float()
    with torch.no_grad():
        exact = flair.encode(flair_batch).top
        restarted = flair.encode(flair_batch, Cached(1, exact.bfloat16())).top
    assert restarted.dtype == torch.float32
    torch.testing.assert_close(restarted, exact, atol=0.01, rtol=0.01)


def test_copies_know_later_words(flair: FlairLmEncoder, vocabulary: Vocabulary) -> None:
    twin = copy.deepcopy(flair)
    later = batch_of([["unheard", "of"]], vocabulary)
    with torch.no_grad():
        before = flair.encode(later).top
        assert torch.equal(twin.encode(later).top, before)
        for parameter in twin.parameters():
            parameter.add_(0.5)
        assert not torch.equal(twin.encode(later).top, before)
        assert torch.equal(flair.encode(later).top, before)


def test_fingerprints_follow_weights_and_options(flair: FlairLmEncoder) -> None:
    before, prefix = flair.fingerprint(), prefix_fingerprint(flair, 0)
    assert copy.deepcopy(flair).fingerprint() == before
    other_alphabet = (*OPTIONS.forward[:-2], "'", ".")
    other = FlairLmEncoder(replace(OPTIONS, forward=other_alphabet), Vocabulary()).double()
    other.load_state_dict(flair.state_dict())
    assert other.fingerprint() != before
    assert prefix_fingerprint(other, 0) != prefix
    with torch.no_grad():
        flair.back.rnn.bias_hh_l0[0] += 1e-3
    assert flair.fingerprint() != before
    assert prefix_fingerprint(flair, 0) == prefix


def test_saved_and_loaded(flair: FlairLmEncoder, tmp_path: Path) -> None:
    flair.float().save(tmp_path)
    assert holds_flair(tmp_path)
    again, tokenizer = load_flair(tmp_path)
    assert again.options == OPTIONS
    assert again.fingerprint() == flair.fingerprint()
    assert not again.training
    assert tokenizer.model_max_length == again.max_length == 512
    stored = load_file(tmp_path / "model.safetensors")
    assert {name: tensor.shape for name, tensor in stored.items()} == {
        name: array.shape for name, array in random_arrays(OPTIONS).items()
    }
    other, _ = load_flair(tmp_path, random_weights=True)
    assert other.fingerprint() != again.fingerprint()


def test_half_precision_is_read_as_float32(flair: FlairLmEncoder, tmp_path: Path) -> None:
    flair.half().float().save(tmp_path)
    file = tmp_path / "model.safetensors"
    save_file({name: tensor.half() for name, tensor in load_file(file).items()}, file)
    again, _ = load_flair(tmp_path)
    assert again.fingerprint() == flair.fingerprint()


def test_a_plan_needs_no_memory(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(OPTIONS.to_json()), encoding="utf-8")
    assert holds_flair(tmp_path)
    planned = plan_flair(tmp_path)
    assert planned.device.type == "meta"
    real = FlairLmEncoder(OPTIONS, Vocabulary())
    assert [(n, p.shape) for n, p in planned.named_parameters()] == [
        (n, p.shape) for n, p in real.named_parameters()
    ]
    with pytest.raises(ModelError, match="no weights"):
        load_flair(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "{}", '{"model_type": "bert", "forward": 1, "backward": 1}', '{"forward": 1}'],
)
def test_what_is_no_pair_of_language_models(text: str, tmp_path: Path) -> None:
    assert not holds_flair(tmp_path)
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    assert not holds_flair(tmp_path)


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("hidden_size", 0, "hidden_size is 0; it must be a whole number from 1"),
        ("hidden_size", 7, r"\(7, 3\) .* the backward model \(5, 3\); they must be alike"),
        ("embedding_size", 6, r"is 6; it must be at most hidden_size \(5\)"),
        ("nlayers", 2, "forward.nlayers is 2; it must be 1"),
        ("is_forward_lm", False, "is_forward_lm is False; it must be true"),
        ("item2idx", {"<unk>": 0, "a": 2}, "numbers characters from 0 without gaps"),
        ("item2idx", {"<unk>": 0, "a": "1"}, "numbers characters from 0 without gaps"),
        ("item2idx", ["a"], "numbers characters from 0 without gaps"),
        ("item2idx", {"a": 0}, "is None; it must be 0"),
        ("item2idx", None, "numbers characters from 0 without gaps"),
    ],
)
def test_faults_of_a_configuration(entry: str, value: Any, message: str) -> None:
    facts = OPTIONS.to_json()
    facts["forward"][entry] = value
    with pytest.raises(ModelError, match=message):
        FlairOptions.from_json(facts, "config.json")


def test_what_a_configuration_lacks(tmp_path: Path) -> None:
    facts = OPTIONS.to_json()
    del facts["forward"]["nlayers"]
    with pytest.raises(ModelError, match=r"config.json lacks forward.nlayers"):
        FlairOptions.from_json(facts, "config.json")
    for other in ({"forward": facts}, [], None):
        with pytest.raises(ModelError, match=r"has no '(forward|backward)'"):
            FlairOptions.from_json(other, "config.json")
    with pytest.raises(ModelError, match=r"has no config.json"):
        plan_flair(tmp_path)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match="not a JSON object"):
        plan_flair(tmp_path)


def test_faults_of_weights(flair: FlairLmEncoder, tmp_path: Path) -> None:
    flair.save(tmp_path)
    file = tmp_path / "model.safetensors"
    whole = load_file(file)
    name = "backward.rnn.bias_hh_l0"
    save_file({n: tensor for n, tensor in whole.items() if n != name}, file)
    with pytest.raises(ModelError, match=f"lack {name}"):
        load_flair(tmp_path)
    save_file({**whole, "more": torch.zeros(1)}, file)
    with pytest.raises(ModelError, match="hold more than the encoder's tensors: more"):
        load_flair(tmp_path)
    save_file({**whole, name: torch.zeros(3)}, file)
    with pytest.raises(ModelError, match=r"in the shape \(3,\), config.json says \(20,\)"):
        load_flair(tmp_path)
    file.write_bytes(b"cut short")
    with pytest.raises(ModelError, match="cannot be read"):
        load_flair(tmp_path)
