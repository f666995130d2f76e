import errno
import functools
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.recorder import Recorder
from tests.unit.feature_worker import WIDTH, SmallEncoder, some_pieces, work

from totune.encoders.mixing import View, reduce_tokens
from totune.errors import ConfigError
from totune.features import FeatureCache, prefix_fingerprint
from totune.features import entry_file as entry_file_module
from totune.features import folder as folder_module
from totune.inputs.encodings import Encodings
from totune.text import format_bytes, parse_size

TOKENS = View((1,))
POOLED = View((0, 1, 2), "mean")


@pytest.fixture
def notes() -> Recorder:
    return Recorder()


@pytest.fixture
def feature_cache(tmp_path: Path, notes: Recorder) -> FeatureCache:
    return FeatureCache(tmp_path / "cache", budget_bytes=10**9, progress=notes)


def again(cache: FeatureCache, notes: Recorder | None = None) -> FeatureCache:
    """The same folder, as another process would open it."""
    return FeatureCache(cache.root, cache.budget_bytes, notes or Recorder())


def the_file(cache: FeatureCache) -> Path:
    (path,) = cache.root.glob("*.features")
    return path


def directly(encoder: SmallEncoder, pieces: Encodings, view: View, row: int) -> torch.Tensor:
    """One row alone, without padding: [D, H] or [D, T, H]."""
    batch = pieces.batch(np.array([row]))
    modes = [module.training for module in encoder.modules()]
    encoder.eval()
    with torch.no_grad():
        stack = encoder.encode(batch)
    for module, mode in zip(encoder.modules(), modes, strict=True):
        module.training = mode
    states = [stack[depth] for depth in view.depths]
    if view.reduction is not None:
        states = [reduce_tokens(state, batch.attention_mask, view.reduction) for state in states]
    return torch.stack([state[0] for state in states])


# Rows


@pytest.mark.parametrize(
    "view", [TOKENS, View((0, 2)), POOLED, View((2,), "cls"), View((1,), "max")], ids=str
)
def test_rows_equal_a_direct_computation(feature_cache: FeatureCache, view: View) -> None:
    encoder, pieces = SmallEncoder(), some_pieces()
    feature_cache.features(encoder, pieces, view, "fp32")
    for opened in (feature_cache, again(feature_cache)):
        features = opened.features(encoder, pieces, view, "fp32")
        assert features is not None
        indices = np.array([7, 3, 3, 39, 0])
        rows = features.rows(indices)
        assert rows.dtype == torch.float32
        if view.reduction is not None:
            assert rows.shape == (5, len(view.depths), WIDTH)
        else:
            longest = int(pieces.lengths[indices].max())
            assert rows.shape == (5, len(view.depths), longest, WIDTH)
        for row, index in zip(rows, indices, strict=True):
            expected = directly(encoder, pieces, view, index)
            if view.reduction is None:
                length = pieces.lengths[index]
                assert not row[:, length:].any()
                row = row[:, :length]
            torch.testing.assert_close(row, expected, rtol=0, atol=1e-6)


def test_rows_are_padded_to_the_length_asked_for(feature_cache: FeatureCache) -> None:
    encoder, pieces = SmallEncoder(), some_pieces()
    features = feature_cache.features(encoder, pieces, TOKENS, "fp32")
    assert features is not None
    rows = features.rows(np.array([0, 1]), max_length=15)
    assert rows.shape == (2, 1, 15, WIDTH)
    assert not rows[0, :, pieces.lengths[0] :].any()
    longest = int(pieces.lengths.argmax())
    with pytest.raises(ValueError, match="max_length=3"):
        features.rows(np.array([longest]), max_length=3)


def test_bf16_views_are_rounded_as_autocast_rounds(feature_cache: FeatureCache) -> None:
    encoder, pieces = SmallEncoder().eval(), some_pieces()
    tokens = feature_cache.features(encoder, pieces, TOKENS, "bf16")
    pooled = feature_cache.features(encoder, pieces, View((1,), "mean"), "bf16")
    assert tokens is not None
    assert pooled is not None
    row = np.array([int(pieces.lengths.argmax())])
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        states = encoder.encode(pieces.batch(row))[1]  # [1, T, H]
    assert states.dtype == torch.bfloat16
    read = again(feature_cache).features(encoder, pieces, TOKENS, "bf16")
    assert read is not None
    for features in (tokens, read):
        rows = features.rows(row)
        assert rows.dtype == torch.bfloat16
        torch.testing.assert_close(rows[:, 0], states, rtol=0.01, atol=0.01)
    assert tokens.nbytes == pieces.offsets[-1] * WIDTH * 2
    assert pooled.rows(row).dtype == torch.float32
    torch.testing.assert_close(pooled.rows(row)[:, 0], states.float().mean(1), rtol=0, atol=0.01)


def test_no_rows_may_be_asked_for(feature_cache: FeatureCache) -> None:
    for view, shape in ((TOKENS, (0, 1, 0, WIDTH)), (POOLED, (0, 3, WIDTH))):
        features = feature_cache.features(SmallEncoder(), some_pieces(), view, "fp32")
        assert features is not None
        assert features.rows(np.array([], dtype=np.int64)).shape == shape


# What is computed, and when


def test_the_second_call_and_the_second_process_do_not_run_the_encoder(
    feature_cache: FeatureCache,
) -> None:
    encoder, pieces = SmallEncoder(), some_pieces()
    assert feature_cache.seconds == 0
    first = feature_cache.features(encoder, pieces, TOKENS, "fp32")
    calls, seconds = encoder.calls, feature_cache.seconds
    assert calls > 0
    assert seconds > 0
    assert encoder.deepest == 1  # nothing above the view is computed
    assert feature_cache.features(encoder, pieces, TOKENS, "fp32") is first
    other = again(feature_cache)
    assert other.features(encoder, pieces, TOKENS, "fp32") is not None
    assert encoder.calls == calls
    assert (feature_cache.seconds, other.seconds) == (seconds, 0)


@pytest.mark.parametrize("view", [TOKENS, View((1,), "cls")], ids=str)
def test_a_change_above_the_prefix_keeps_the_entry_and_one_below_does_not(
    feature_cache: FeatureCache, view: View
) -> None:
    encoder, pieces = SmallEncoder(), some_pieces()
    before = feature_cache.features(encoder, pieces, view, "fp32")
    calls = encoder.calls
    with torch.no_grad():
        encoder.layers[1][0].weight.add_(1)
    assert feature_cache.features(encoder, pieces, view, "fp32") is before
    assert encoder.calls == calls
    with torch.no_grad():
        encoder.layers[0][0].weight.add_(1)
    after = feature_cache.features(encoder, pieces, view, "fp32")
    assert encoder.calls > calls
    assert after is not None
    row = directly(encoder, pieces, view, 5)
    torch.testing.assert_close(after.rows(np.array([5]))[0], row, rtol=0, atol=1e-6)


def test_every_part_of_the_key_counts(feature_cache: FeatureCache) -> None:
    encoder, pieces = SmallEncoder(), some_pieces()
    feature_cache.features(encoder, pieces, TOKENS, "fp32")
    feature_cache.features(encoder, pieces, TOKENS, "bf16")
    feature_cache.features(encoder, pieces, View((0,)), "fp32")
    feature_cache.features(encoder, pieces, View((1,), "cls"), "fp32")
    feature_cache.features(encoder, pieces, View((1,), "mean"), "fp32")
    feature_cache.features(encoder, some_pieces(seed=1), TOKENS, "fp32")
    feature_cache.features(SmallEncoder(seed=1), pieces, TOKENS, "fp32")
    assert len(feature_cache.entries()) == 7


def test_modes_and_random_state_are_as_before(feature_cache: FeatureCache) -> None:
    encoder = SmallEncoder().train()
    encoder.layers[0].eval()
    modes = [module.training for module in encoder.modules()]
    random = torch.get_rng_state()
    feature_cache.features(encoder, some_pieces(), TOKENS, "fp32")
    assert [module.training for module in encoder.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random)
    assert all(parameter.grad is None for parameter in encoder.parameters())


def test_modes_are_restored_and_nothing_is_left_when_the_encoder_fails(
    feature_cache: FeatureCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory")

    encoder = SmallEncoder().train()
    monkeypatch.setattr(encoder.layers[0], "forward", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        feature_cache.features(encoder, some_pieces(), TOKENS, "fp32")
    assert all(module.training for module in encoder.modules())
    assert [path.suffix for path in feature_cache.root.iterdir()].count(".tmp") == 0
    assert feature_cache.entries() == []


# The fingerprint of a prefix


def named(value: object) -> str:
    """An id that is the same in every process: a function by its name and what is fixed of it."""
    if isinstance(value, functools.partial):
        return f"{value.func.__name__}-{value.keywords}"
    return getattr(value, "__name__", str(value))


def _in_place(encoder: SmallEncoder) -> None:
    with torch.no_grad():
        encoder.layers[0][0].bias[0] += 1e-3


def _through_data(encoder: SmallEncoder) -> None:
    encoder.layers[0][0].weight.data[3, 3] += 1e-3


def _new_data(encoder: SmallEncoder) -> None:
    encoder.embeddings[0].weight.data = encoder.embeddings[0].weight.data + 1e-3


def _loaded(encoder: SmallEncoder) -> None:
    encoder.load_state_dict(SmallEncoder(seed=1).state_dict())


def _step(encoder: SmallEncoder, **options: bool) -> None:
    weight = encoder.layers[0][0].weight
    weight.grad = torch.ones_like(weight)
    torch.optim.AdamW([weight], lr=1e-5, weight_decay=0, **options).step()


@pytest.mark.parametrize(
    "change",
    [
        _in_place,
        _through_data,
        _new_data,
        _loaded,
        _step,
        functools.partial(_step, foreach=True),
        functools.partial(_step, fused=True),
    ],
    ids=named,
)
def test_the_fingerprint_notices_every_change(change: Callable[[SmallEncoder], None]) -> None:
    encoder = SmallEncoder()
    before = prefix_fingerprint(encoder, 1)
    assert prefix_fingerprint(encoder, 1) == before == prefix_fingerprint(SmallEncoder(), 1)
    change(encoder)
    changed = prefix_fingerprint(encoder, 1)
    assert changed != before
    fresh = SmallEncoder()
    fresh.load_state_dict(encoder.state_dict())
    assert prefix_fingerprint(fresh, 1) == changed


def test_the_fingerprint_is_of_the_prefix_and_is_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = SmallEncoder()
    assert len({prefix_fingerprint(encoder, depth) for depth in range(3)}) == 3
    below = prefix_fingerprint(encoder, 1)
    hashed: list[object] = []
    from totune.features import fingerprint

    original = fingerprint._block_digest
    monkeypatch.setattr(
        fingerprint, "_block_digest", lambda e, b: hashed.append(b) or original(e, b)
    )
    with torch.no_grad():
        encoder.layers[1][0].weight.add_(1)
    assert prefix_fingerprint(encoder, 1) == below
    assert hashed == []
    prefix_fingerprint(encoder, 2)
    assert hashed == [2]


def test_a_configuration_counts_but_not_where_it_came_from() -> None:
    from transformers import BertConfig

    from totune.encoders.transformers import TransformersEncoder

    def made(**options: object) -> TransformersEncoder:
        torch.manual_seed(0)
        sizes = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 8}
        config = BertConfig(**{"num_attention_heads": 2, **sizes, **options})
        return TransformersEncoder.from_config(config)

    plain = prefix_fingerprint(made(), 1)
    assert prefix_fingerprint(made(id2label={0: "a", 1: "b", 2: "c"}), 1) == plain
    assert prefix_fingerprint(made(_name_or_path="elsewhere"), 1) == plain
    assert prefix_fingerprint(made(hidden_act="relu"), 1) != plain
    assert prefix_fingerprint(made(num_attention_heads=4), 1) != plain


# Files that are not what they should be


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 100)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _foreign(path: Path) -> None:
    path.write_text("text,label\nhello,1\n" * 1000)


def _flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _other_entry(path: Path) -> None:
    """A sound entry of the same size under the wrong name."""
    cache = FeatureCache(path.parent / "elsewhere", 10**9)
    cache.features(SmallEncoder(seed=9), some_pieces(), TOKENS, "fp32")
    path.write_bytes(the_file(cache).read_bytes())


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_cut, "bytes instead of"),
        (_empty, "empty"),
        (_foreign, "not a feature file"),
        (functools.partial(_flip, place=0), "not a feature file"),
        (functools.partial(_flip, place=21), "head is damaged"),
        (functools.partial(_flip, place=5000), "checksum does not match"),
        (functools.partial(_flip, place=-1), "checksums are damaged"),
        (_folder, "is a directory"),
        (_other_entry, "something else"),
    ],
    ids=named,
)
def test_a_damaged_entry_is_reported_once_and_made_again(
    feature_cache: FeatureCache, damage: Callable[[Path], None], reason: str
) -> None:
    encoder, pieces = SmallEncoder(), some_pieces()
    good = feature_cache.features(encoder, pieces, TOKENS, "fp32")
    assert good is not None
    path, indices = the_file(feature_cache), np.arange(40)
    expected, calls = good.rows(indices), encoder.calls
    damage(path)
    notes = Recorder()
    features = again(feature_cache, notes).features(encoder, pieces, TOKENS, "fp32", "reviews")
    assert features is not None
    assert torch.equal(features.rows(indices), expected)
    assert encoder.calls > calls
    (line,) = notes.warned
    assert reason in line
    assert "reviews" in line
    assert "\n" not in line
    calls, notes = encoder.calls, Recorder()
    assert again(feature_cache, notes).features(encoder, pieces, TOKENS, "fp32") is not None
    assert (encoder.calls, notes.warned) == (calls, [])


def test_a_folder_in_the_place_of_an_entry_that_holds_something_is_left_alone(
    feature_cache: FeatureCache,
) -> None:
    encoder, pieces = SmallEncoder(), some_pieces()
    feature_cache.features(encoder, pieces, TOKENS, "fp32")
    path = the_file(feature_cache)
    _folder(path)
    (path / "thesis.txt").write_text("years of work")
    notes = Recorder()
    assert again(feature_cache, notes).features(encoder, pieces, TOKENS, "fp32") is None
    assert (path / "thesis.txt").exists()
    assert "cannot be stored" in notes.warned[-1]


@pytest.mark.parametrize("opened", ["again", "by another process"])
def test_every_byte_of_an_entry_is_checked(
    feature_cache: FeatureCache, monkeypatch: pytest.MonkeyPatch, opened: str
) -> None:
    monkeypatch.setattr(entry_file_module, "BLOCK", 1 << 10)
    encoder, pieces = SmallEncoder(), some_pieces()
    feature_cache.features(encoder, pieces, TOKENS, "fp32")
    path = the_file(feature_cache)
    size = entry_file_module.HEAD + int(pieces.offsets[-1]) * WIDTH * 4
    for place in (size - 1, size // 2, entry_file_module.HEAD + 1):
        notes = Recorder()
        monkeypatch.setattr(feature_cache, "_progress", notes)
        feature_cache.release()
        _flip(path, place)
        cache = feature_cache if opened == "again" else again(feature_cache, notes)
        assert cache.features(encoder, pieces, TOKENS, "fp32") is not None
        assert len(notes.warned) == 1


def test_an_entry_is_checked_once_in_a_process(
    feature_cache: FeatureCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, pieces = SmallEncoder(), some_pieces()
    feature_cache.features(encoder, pieces, TOKENS, "fp32")
    checked: list[object] = []
    monkeypatch.setattr(entry_file_module, "_verify", lambda *_: checked.append(1))
    for cache in (feature_cache, again(feature_cache)):
        for _ in range(3):
            cache.release()
            assert cache.features(encoder, pieces, TOKENS, "fp32") is not None
    assert len(checked) == 1


def test_an_entry_that_is_pruned_while_it_is_opened_is_used_all_the_same(
    feature_cache: FeatureCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, pieces = SmallEncoder(), some_pieces()
    feature_cache.features(encoder, pieces, TOKENS, "fp32")
    cache = again(feature_cache)
    monkeypatch.setattr(folder_module.Folder, "touch", lambda folder, key: folder.prune(None, 0))
    assert cache.features(encoder, pieces, TOKENS, "fp32") is not None
    assert not list(cache.root.glob("*.features"))


# The budget


def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path, notes: Recorder) -> None:
    cache = FeatureCache(tmp_path, budget_bytes=5000, progress=notes)
    encoder, pieces = SmallEncoder(), some_pieces()
    for _ in range(2):
        assert cache.features(encoder, pieces, TOKENS, "fp32", "reviews") is None
    assert encoder.calls == 0
    (line,) = notes.said
    size = format_bytes(int(pieces.offsets[-1]) * WIDTH * 4)
    for part in ("reviews", size, "5.00 kB", "`cache_budget`"):
        assert part in line
    assert notes.warned == []
    assert list(tmp_path.glob("*.features")) == []


def test_the_least_recently_used_go_first_but_none_that_is_in_use(
    feature_cache: FeatureCache,
) -> None:
    encoder = SmallEncoder()
    splits = [some_pieces(seed=seed) for seed in range(4)]
    for split in splits[:3]:
        again(feature_cache).features(encoder, split, POOLED, "fp32", split.identity)
    oldest, middle, newest = feature_cache.entries()
    for age, entry in ((300, oldest), (200, middle), (100, newest)):
        os.utime(entry.path, (time.time() - age,) * 2)
    small = FeatureCache(feature_cache.root, budget_bytes=3 * oldest.nbytes, progress=Recorder())
    used = next(s for s in splits[:3] if oldest.description.startswith(s.identity))
    calls = encoder.calls
    assert small.features(encoder, used, POOLED, "fp32") is not None  # the oldest, used now
    assert encoder.calls == calls
    assert small.features(encoder, splits[3], POOLED, "fp32") is not None
    left = {entry.key for entry in small.entries()}
    assert middle.key not in left
    assert {oldest.key, newest.key} < left
    assert sum(entry.nbytes for entry in small.entries()) <= small.budget_bytes


def test_nothing_is_evicted_when_that_would_not_make_enough_room(
    feature_cache: FeatureCache,
) -> None:
    encoder = SmallEncoder()
    again(feature_cache).features(encoder, some_pieces(), POOLED, "fp32")
    (entry,) = feature_cache.entries()
    small = FeatureCache(feature_cache.root, budget_bytes=entry.nbytes + 100, progress=Recorder())
    assert small.features(encoder, some_pieces(rows=2000), POOLED, "fp32") is None
    assert small.entries() == [entry]


def test_the_default_budget_is_a_quarter_of_the_free_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "_free_bytes", lambda _: 1000)
    assert FeatureCache(tmp_path / "not" / "yet").budget_bytes == 250


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("20GB", 20 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        ("500m", 5 * 10**8),
        ("2TB", 2 * 10**12),
        ("12kb", 12_000),
        ("0", 0),
        ("123", 123),
        ("7B", 7),
    ],
)
def test_sizes_are_read(text: str, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "much", "-1GB", "5XB", "GB", "1,5GB", "3ib", "1e9"])
def test_what_is_no_size_is_said(text: str) -> None:
    with pytest.raises(ConfigError, match=r"not a size; write one like .*20GB"):
        parse_size(text)


@given(st.integers(0, 10**12))
def test_a_shown_size_reads_back_as_nearly_itself(count: int) -> None:
    assert parse_size(format_bytes(count)) == pytest.approx(count, rel=0.05)


# A disk that fails


def test_a_full_disk_costs_only_time(
    feature_cache: FeatureCache, notes: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "_free_bytes", lambda _: 1000)
    encoder, pieces = SmallEncoder(), some_pieces()
    assert feature_cache.features(encoder, pieces, TOKENS, "fp32") is None
    assert encoder.calls == 0
    pooled = feature_cache.features(encoder, pieces, POOLED, "fp32")
    assert pooled is not None
    expected = directly(encoder, pieces, POOLED, 4)
    torch.testing.assert_close(pooled.rows(np.array([4]))[0], expected, rtol=0, atol=1e-6)
    calls = encoder.calls
    assert feature_cache.features(encoder, pieces, POOLED, "fp32") is pooled
    assert encoder.calls == calls
    assert len(notes.warned) == 2
    assert all(os.strerror(errno.ENOSPC) in line for line in notes.warned)


@pytest.mark.parametrize(("view", "kept"), [(TOKENS, False), (POOLED, True)], ids=str)
def test_a_write_that_fails_at_the_end_leaves_nothing(
    feature_cache: FeatureCache,
    notes: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    view: View,
    kept: bool,
) -> None:
    monkeypatch.setattr(entry_file_module.os, "fsync", _refuse_to_sync)
    encoder, pieces = SmallEncoder(), some_pieces()
    features = feature_cache.features(encoder, pieces, view, "fp32", "reviews")
    assert (features is not None) == kept
    assert {path.suffix for path in feature_cache.root.iterdir()} == {".lock"}
    (line,) = notes.warned
    assert "No space left" in line


def _refuse_to_sync(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_real_write_error_leaves_nothing(feature_cache: FeatureCache, notes: Recorder) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    encoder, pieces = SmallEncoder(), some_pieces()
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, limits[1]))
    try:
        assert feature_cache.features(encoder, pieces, TOKENS, "fp32") is None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.suffix for path in feature_cache.root.iterdir()} == {".lock"}
    assert len(notes.warned) == 1


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_said_once(
    tmp_path: Path, notes: Recorder, place: str
) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = FeatureCache(tmp_path / place, progress=notes)
    encoder, pieces = SmallEncoder(), some_pieces()
    pooled = cache.features(encoder, pieces, POOLED, "fp32")
    assert pooled is not None
    assert cache.features(encoder, pieces, POOLED, "fp32") is pooled
    assert cache.features(encoder, pieces, TOKENS, "fp32") is None
    assert len(notes.warned) == 1
    assert "TOTUNE_CACHE" in notes.warned[0]
    assert cache.entries() == []
    assert cache.prune() == []


def test_the_folder_is_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOTUNE_CACHE", str(tmp_path / "here"))
    assert FeatureCache().root == tmp_path / "here"
    monkeypatch.delenv("TOTUNE_CACHE")
    assert FeatureCache().root.parts[-2:] == ("totune", "features")


# Several processes

processes = multiprocessing.get_context("forkserver")


@pytest.fixture(scope="module", autouse=True)
def _worker_imported() -> None:
    """Said when these tests run: a module that is only imported leaves the server to others."""
    processes.set_forkserver_preload(["tests.unit.feature_worker"])


def _answers(
    root: Path, rows: int, count: int, delay: float
) -> Callable[[], list[np.lib.npyio.NpzFile]]:
    """Starts `count` processes that ask for the same entry; the result waits for their answers."""
    paths = [root.parent / f"{number}.npz" for number in range(count)]
    started = [
        processes.Process(target=work, args=(root, TOKENS, rows, delay, path)) for path in paths
    ]
    for process in started:
        process.start()

    def wait() -> list[np.lib.npyio.NpzFile]:
        for process in started:
            process.join(120)
        assert [process.exitcode for process in started] == [0] * count
        return [np.load(path) for path in paths]

    return wait


def _check_answers(answers: list[np.lib.npyio.NpzFile], rows: int) -> None:
    """They are right, and one process has computed them for all."""
    assert sorted(int(answer["calls"]) > 0 for answer in answers)[-2:] == [False, True]
    encoder, pieces = SmallEncoder(), some_pieces(rows)
    for row in (0, 17, rows - 1):
        expected = directly(encoder, pieces, TOKENS, row).numpy()
        for answer in answers:
            read = answer["rows"][row][:, : pieces.lengths[row]]
            np.testing.assert_allclose(read, expected, rtol=0, atol=1e-6)


def test_an_entry_is_computed_once_for_all_processes_though_its_writer_is_killed(
    tmp_path: Path,
) -> None:
    root, rows = tmp_path / "cache", 400
    doomed = processes.Process(target=work, args=(root, TOKENS, rows, 60.0, tmp_path / "never"))
    doomed.start()
    _wait_until(lambda: bool(list(root.glob("*.tmp"))))
    answers = _answers(root, rows, count=3, delay=0.2)
    time.sleep(0.5)
    doomed.kill()
    doomed.join()
    _check_answers(answers(), rows)
    assert list(root.glob("*.tmp")) == []
    assert len(list(root.glob("*.features"))) == 1


def test_processes_that_meet_a_damaged_entry_repair_it_once(tmp_path: Path) -> None:
    cache, rows = FeatureCache(tmp_path / "cache", 10**9), 400
    cache.features(SmallEncoder(), some_pieces(rows), TOKENS, "fp32")
    _flip(the_file(cache), 20_000)
    answers = _answers(cache.root, rows, count=6, delay=0.0)()
    _check_answers(answers, rows)
    assert sum(int(answer["warned"]) for answer in answers) == 1


def _wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_what_a_killed_writer_left_is_swept_and_a_living_one_is_not(
    feature_cache: FeatureCache,
) -> None:
    feature_cache.root.mkdir(parents=True)
    left = feature_cache.root / f"{'a' * 64}.{'0' * 32}.tmp"
    held = feature_cache.root / f"{'b' * 64}.{'0' * 32}.tmp"
    ancient = feature_cache.root / f"{'b' * 64}.{'1' * 32}.tmp"
    theirs = feature_cache.root / "draft.tmp"
    for path in (left, held, ancient, theirs):
        path.write_text("half")
    os.utime(ancient, (time.time() - 90_000,) * 2)
    with folder_module.FileLock(feature_cache.root / f"{'b' * 64}.lock"):
        feature_cache.features(SmallEncoder(), some_pieces(), TOKENS, "fp32")
    assert [path.exists() for path in (left, held, ancient, theirs)] == [False, True, False, True]


# Listing and pruning


def test_entries_say_what_they_are(feature_cache: FeatureCache) -> None:
    encoder = SmallEncoder()
    feature_cache.features(encoder, some_pieces(), POOLED, "fp32", "reviews.csv train")
    (entry,) = again(feature_cache).entries()
    assert entry.encoder == "small"
    assert entry.description == "reviews.csv train: mean of layer 0, 1, 2"
    assert entry.nbytes == entry.path.stat().st_size
    assert entry.created.startswith("20")
    _foreign(entry.path)
    (entry,) = again(feature_cache).entries()
    assert entry.encoder == "?"
    assert "not a feature file" in entry.description


def test_a_long_description_is_shortened(feature_cache: FeatureCache) -> None:
    encoder, pieces = SmallEncoder(), some_pieces()
    assert feature_cache.features(encoder, pieces, POOLED, "fp32", "\N{SNOWMAN}" * 5000) is not None
    (entry,) = feature_cache.entries()
    assert len(entry.description) < 300


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, 3),
        ({"older_than": timedelta(days=2)}, 2),
        ({"older_than": timedelta(0)}, 0),
        ({"max_bytes": 15_000}, 2),
        ({"max_bytes": 0}, 0),
    ],
    ids=str,
)
def test_prune(feature_cache: FeatureCache, options: dict[str, object], left: int) -> None:
    encoder = SmallEncoder()
    for seed in range(3):
        feature_cache.features(encoder, some_pieces(rows=20, seed=seed), POOLED, "fp32")
    (feature_cache.root / "notes.txt").write_text("not ours")
    entries = feature_cache.entries()
    assert [4096 < entry.nbytes < 7500 for entry in entries] == [True] * 3
    for days, entry in zip((3, 1, 0), entries, strict=True):
        os.utime(entry.path, (time.time() - days * 86_400 - 1,) * 2)
    removed = again(feature_cache).prune(**options)
    assert [entry.key for entry in removed] == [entry.key for entry in entries][: 3 - left]
    assert len(feature_cache.entries()) == left
    assert len(list(feature_cache.root.glob(f"{'?' * 64}.lock"))) == left
    assert (feature_cache.root / "notes.txt").exists()
