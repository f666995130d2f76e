"""The numbers are those of the cache of frozen features, and shards are made once."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file
from tests.recorder import Recorder
from tests.tiny_data import save_encoder, write_table
from tests.unit.extraction.conftest import Extract, some_texts, write_texts

import totune
from totune.data.examples import Examples
from totune.encoders.loading import load_encoder
from totune.encoders.mixing import View
from totune.errors import ConfigError, DataError, RunError
from totune.extraction import ExtractionSettings, open_features, vectors
from totune.extraction.manifest import Manifest
from totune.features import compute
from totune.inputs.encoded import tokenize

TEXTS = tuple(some_texts(25))
KINDS = ("safetensors", "arrow", "parquet")


def computed(encoder: Path, view: View, texts: tuple[str, ...] = TEXTS, **more: Any) -> np.ndarray:
    """What the cache would hold of all rows, [N, D, H] or [N, D, T, H] with zeros as padding."""
    loaded = load_encoder(str(encoder))
    pieces = tokenize(Examples(texts, **more), loaded.tokenizer, 40)
    found = compute(loaded.encoder, pieces, view, bf16=False)
    return found.rows(np.arange(len(texts))).numpy()


def joined(folder: Path) -> np.ndarray:
    return np.concatenate([shard.vectors for shard in open_features(folder)])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("shard-*"))}


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_the_numbers_are_those_of_the_cache(run: Extract, encoder: Path, pooling: str):
    found = run(pooling=pooling, rows_per_shard=25)
    expected = computed(encoder, View((4,), pooling))[:, 0]
    np.testing.assert_array_equal(joined(found.folder), expected)


def test_the_size_of_shards_changes_nothing_but_rounding(run: Extract, encoder: Path):
    expected = computed(encoder, View((4,), "mean"))[:, 0]
    for rows in (1, 7, 10):
        found = run(f"by-{rows}", rows_per_shard=rows)
        assert [shard.first for shard in found] == list(range(0, 25, rows))
        np.testing.assert_allclose(joined(found.folder), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", ["all", [0, 3]])
def test_several_layers(run: Extract, encoder: Path, kind: str, layers: Any):
    found = run(layers=layers, format=kind, rows_per_shard=25)
    depths = (0, 1, 2, 3, 4) if layers == "all" else (0, 3)
    expected = computed(encoder, View(depths, "mean"))
    assert joined(found.folder).shape == (25, len(depths), 32)
    np.testing.assert_array_equal(joined(found.folder), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", ["top", [1, 4]])
def test_every_token(run: Extract, encoder: Path, kind: str, layers: Any):
    found = run(pooling="none", layers=layers, format=kind)
    depths = (4,) if layers == "top" else (1, 4)
    expected = computed(encoder, View(depths))
    for shard in found:
        assert shard.offsets is not None
        assert len(shard.offsets) == shard.rows + 1
        for row in range(shard.rows):
            own = shard.vectors[shard.offsets[row] : shard.offsets[row + 1]]
            states = expected[shard.first + row, :, : len(own)].swapaxes(0, 1)
            states = states[:, 0] if layers == "top" else states
            np.testing.assert_allclose(own, states, rtol=0, atol=1e-5)
    # Of a text of no words, the two special pieces.
    assert np.diff(next(iter(found)).offsets)[2] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision(run: Extract, encoder: Path, kind: str):
    found = run(dtype="float16", format=kind, rows_per_shard=25)
    expected = computed(encoder, View((4,), "mean"))[:, 0].astype(np.float16)
    assert joined(found.folder).dtype == np.float16
    np.testing.assert_array_equal(joined(found.folder), expected)


def test_a_number_beyond_half_precision_is_no_infinity(run: Extract, monkeypatch: Any):
    numbers = vectors.Computation.numbers
    monkeypatch.setattr(vectors.Computation, "numbers", lambda *given: numbers(*given) * 1e6)
    with pytest.raises(RunError, match="float16 ends at 65,504: use `dtype='float32'`"):
        run(dtype="float16")


@pytest.mark.parametrize("pooling", ["mean", "none"])
def test_batches_of_one_shape_change_nothing_but_rounding(
    run: Extract, encoder: Path, pooling: str
):
    """In bfloat16 copies fill up a shard's last batch; none of them is seen."""
    loaded = load_encoder(str(encoder))
    pieces = tokenize(Examples(TEXTS), loaded.tokenizer, 40)
    filled = vectors.with_full_batches(pieces)
    longest = int(pieces.lengths.max())
    assert len(filled) == 2048 // longest > len(pieces)
    for row in range(len(filled)):
        of = row if row < len(pieces) else int(pieces.lengths.argmin())
        np.testing.assert_array_equal(
            filled.batch(np.array([row])).input_ids, pieces.batch(np.array([of])).input_ids
        )
    told = Recorder()
    found = run(precision="bf16", pooling=pooling, told=told)
    assert sum(told.steps) == 25
    reduction = None if pooling == "none" else "mean"
    expected = compute(loaded.encoder, pieces, View((4,), reduction), bf16=True)
    for shard in found:
        own = expected.rows(np.arange(shard.first, shard.first + shard.rows)).float().numpy()
        if shard.offsets is not None:
            lengths = np.diff(shard.offsets)
            own = np.concatenate([row[0, :end] for row, end in zip(own, lengths, strict=True)])
        np.testing.assert_allclose(shard.vectors, own.reshape(shard.vectors.shape), atol=0.05)


def test_pairs_are_encoded_together(run: Extract, encoder: Path, tmp_path: Path):
    pairs = tuple(reversed(TEXTS))
    rows = list(zip(TEXTS, pairs, strict=True))
    source = write_table(tmp_path / "pairs.csv", ("first", "second"), rows)
    found = run(source=source, text="first", pair="second", rows_per_shard=25)
    expected = computed(encoder, View((4,), "mean"), pairs=pairs)[:, 0]
    np.testing.assert_array_equal(joined(found.folder), expected)


def test_files_can_be_read_by_others(run: Extract):
    tensors = load_file(run("a", pooling="none").folder / "shard-00001.safetensors")
    assert sorted(tensors) == ["offsets", "vectors"]
    assert tensors["offsets"][-1] == len(tensors["vectors"])
    found = run("b", format="parquet", keep=["label", "number"])
    table = pq.read_table([shard.path for shard in found])
    assert table.column_names == ["row", "label", "number", "vector"]
    assert table.column("row").to_pylist() == list(range(25))
    assert table.column("number").to_pylist() == [str(row) for row in range(25)]
    assert table.schema.field("vector").type.list_size == 32


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_kept_columns_stand_beside_the_vectors(run: Extract, kind: str):
    (first, *_) = run(format=kind, keep=["label"])
    assert first.table().column("label").to_pylist() == list("ababababab")


def test_what_was_done_is_written_down(run: Extract, encoder: Path, data: Path):
    found = run()
    facts = json.loads((found.folder / "features.json").read_text())
    assert facts["complete"]
    assert (facts["rows"], facts["data"]) == (25, str(data))
    assert facts["encoder"]["fingerprint"] == load_encoder(str(encoder)).encoder.fingerprint()
    ranges = [(shard["first"], shard["rows"]) for shard in facts["shards"]]
    assert ranges == [(0, 10), (10, 10), (20, 5)]
    assert facts["configuration"]["layers"] == [4]
    assert facts["versions"]["torch"]
    assert facts["last_command"]["rows"] == 25
    assert sorted(path.name for path in found.folder.iterdir()) == [
        "features.json",
        *(f"shard-0000{shard}.safetensors" for shard in range(3)),
    ]


def test_what_is_there_is_not_computed_again(run: Extract, monkeypatch: pytest.MonkeyPatch):
    before = contents(run().folder)
    monkeypatch.setattr(vectors.Embedder, "embed", None)
    found = run()
    assert found.facts["last_command"]["rows"] == 0
    assert contents(found.folder) == before
    assert len(found) == 25


def test_a_shard_that_is_damaged_is_made_again(run: Extract):
    folder = run().folder
    before = contents(folder)
    short, changed, gone = (folder / name for name in before)
    short.write_bytes(before[short.name][:-4])
    flipped = bytearray(before[changed.name])
    flipped[-1] ^= 1
    changed.write_bytes(flipped)
    gone.unlink()
    told = Recorder()
    assert run(told=told).facts["last_command"]["shards"] == 3
    assert [line.split(" ")[0] for line in told.warned] == list(before)
    assert contents(folder) == before


class Stop(Exception):
    """Stands for the end of the process."""


def stopping(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Ends the process, as it were, when so many shards are there."""
    embed, count = vectors.Embedder.embed, iter(range(after))

    def until(*given: Any) -> vectors.Vectors:
        if next(count, None) is None:
            raise Stop
        return embed(*given)

    monkeypatch.setattr(vectors.Embedder, "embed", until)


def test_an_extraction_goes_on_where_it_was_stopped(
    run: Extract, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    whole = contents(run("whole").folder)
    with monkeypatch.context() as patch:
        stopping(patch, after=1)
        with pytest.raises(Stop):
            run()
    with pytest.raises(ConfigError, match="is not finished: the same totune features command"):
        open_features(tmp_path / "out")
    # A line that the end of the process cut short.
    with (tmp_path / "out" / "shards.jsonl").open("a") as log:
        log.write('\n{"shard": 1, "fi')
    told = Recorder()
    found = run(told=told)
    assert "10 rows are there already, in 1 shard." in told.said
    assert found.facts["last_command"]["rows"] == 15
    assert contents(found.folder) == whole


def test_rows_that_were_appended_are_added(run: Extract, data: Path):
    first = contents(run().folder)
    write_texts(data, [*TEXTS, *some_texts(30, seed=1)])
    found = run()
    assert (len(found), found.facts["last_command"]["shards"]) == (55, 4)
    whole = contents(run("whole").folder)
    assert contents(found.folder) == whole
    assert list(first.items())[:2] == list(whole.items())[:2]


@pytest.mark.parametrize("rows", [TEXTS[:12], TEXTS[:20], ("w1", *TEXTS[1:]), (*TEXTS[:24], "w1")])
def test_other_rows_belong_in_another_folder(run: Extract, data: Path, rows: tuple[str, ...]):
    before = contents(run().folder)
    write_texts(data, rows)
    with pytest.raises(ConfigError, match="Choose another folder"):
        run()
    assert contents(data.parent / "out") == before


def test_another_configuration_belongs_in_another_folder(run: Extract, tmp_path: Path):
    before = contents(run().folder)
    other = save_encoder(tmp_path / "other", seed=1)
    for given, told in [
        ({"pooling": "cls"}, "pooling cls, not mean|pooling mean, not cls"),
        ({"layers": [2]}, r"layers \[4\], not \[2\]"),
        ({"rows_per_shard": 5}, "rows_per_shard 10, not 5"),
        ({"model": str(other)}, "encoder .* not "),
        ({"format": "arrow", "keep": ["label"]}, r"keep \[\], not \[\"label\"\]; format"),
    ]:
        with pytest.raises(ConfigError, match=f"of another configuration: .*{told}"):
            run(**given)
    assert contents(tmp_path / "out") == before


def test_a_folder_with_other_files_is_left_alone(run: Extract, tmp_path: Path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "diary.txt").write_text("Monday")
    with pytest.raises(ConfigError, match=r"holds diary.txt and is not an extraction"):
        run()
    with pytest.raises(ConfigError, match=r"is a file; name a folder"):
        run("texts.csv")
    with pytest.raises(ConfigError, match=r"holds no features"):
        open_features(tmp_path / "out")


def test_a_full_disk_leaves_what_was_finished(
    run: Extract, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    write = Path.write_bytes

    def full(self: Path, content: bytes) -> int:
        if "shard-00001" in self.name:
            write(self, content[:100])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(RunError, match=r"cannot be written \(No space left on device\). Fini"):
            run()
    assert list(contents(tmp_path / "out")) == ["shard-00000.safetensors"]
    assert run().facts["last_command"]["rows"] == 15


def test_a_bad_row_keeps_the_shards_before_it(run: Extract, data: Path):
    lines = data.read_text().splitlines()
    data.write_text("\n".join([*lines[:22], "21,a,b,c", *lines[23:]]) + "\n")
    with pytest.raises(DataError, match=r"texts.csv line 23 has 4 fields, not 3"):
        run()
    assert len(contents(data.parent / "out")) == 2
    data.write_text("\n".join(lines) + "\n")
    assert run().facts["last_command"]["rows"] == 5


def test_texts_that_are_cut_are_counted(run: Extract):
    told = Recorder()
    found = run(told=told, max_length=8)
    long = sum(len(text.split()) > 6 for text in TEXTS)
    assert found.facts["truncated"] == long
    assert told.warned[-1].startswith(f"{long} of 25 rows (")
    assert told.warned[-1].endswith("8 word pieces and were cut; `max_length` raises the limit.")


def test_every_fault_of_the_settings_is_told_at_once():
    wrong = ExtractionSettings(
        layers=[],
        pooling="maen",
        max_length=1,
        rows_per_shard=0,
        format="safetensor",
        dtype="float8",
        precision="fp8",
        keep=["vector"],
        executor="raz",
        address="here",
    )
    with pytest.raises(ConfigError) as caught:
        wrong.check()
    assert len(caught.value.faults) == 10
    assert "Did you mean 'mean'?" in str(caught.value)


def test_a_layer_that_is_not_there_is_named(run: Extract):
    with pytest.raises(ConfigError, match=r"layers=2,5: this encoder has layers 0 .* to 4"):
        run(layers=[2, 5])


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({}, 10_000),
        ({"rows_per_shard": 3}, 3),
        ({"layers": "all"}, 1602),
        ({"pooling": "none"}, 81),
        ({"pooling": "none", "dtype": "float16"}, 162),
    ],
)
def test_shards_are_of_a_size_that_fits_into_memory(given: dict[str, Any], rows: int):
    settings = ExtractionSettings(**given)
    assert settings.shard_rows(len(settings.depths(12)), 768, 256) == rows


def test_the_python_call(encoder: Path, data: Path, tmp_path: Path):
    out = tmp_path / "called"
    found = totune.extract_features(data, out=out, model=str(encoder), layers=[1])
    assert len(found) == 25
    with pytest.raises(ConfigError, match=r"has no option 'layer'. Did you mean 'layers'"):
        totune.extract_features(data, out=out, layer=[1])


BEFORE = Path(__file__).resolve().parents[2] / "fixtures/before_one_house/features"


@pytest.mark.parametrize(
    ("kind", "shapes", "offsets", "total"),
    [
        ("safetensors", [(3, 32), (1, 32)], [None, None], 93.963372),
        ("arrow", [(12, 2, 32), (6, 2, 32)], [[0, 3, 8, 12], [0, 6]], 905.986410),
        ("parquet", [(3, 32), (1, 32)], [None, None], 93.963372),
    ],
)
def test_a_folder_of_the_version_before_opens(
    kind: str, shapes: list[tuple[int, ...]], offsets: list[Any], total: float
):
    """The numbers are sums of what that version read of them."""
    shards = list(open_features(BEFORE / kind))
    assert [(shard.first, shard.rows) for shard in shards] == [(0, 3), (3, 1)]
    assert [shard.vectors.shape for shard in shards] == shapes
    read = [None if shard.offsets is None else shard.offsets.tolist() for shard in shards]
    assert read == offsets
    found = sum(float(np.abs(shard.vectors.astype(np.float64)).sum()) for shard in shards)
    assert found == pytest.approx(total, abs=1e-5)
    if kind != "safetensors":
        assert shards[0].table().column("label").to_pylist() == list("aba")


def test_what_the_version_before_finished_stays_finished(tmp_path: Path):
    folder = shutil.copytree(BEFORE / "unfinished", tmp_path / "out")
    facts = json.loads((folder / "features.json").read_text())
    (folder / "shard-00001.safetensors.part").write_bytes(b"half")
    manifest = Manifest(folder, facts["configuration"])
    told = Recorder()
    manifest.verify(told)
    assert told.warned == []
    assert [info.rows for info in manifest.shards.values()] == [3]
    manifest.begin(facts)
    assert not list(folder.glob("*.part"))
    assert json.loads((folder / "features.json").read_text())["shards"][0]["rows"] == 3


def test_vectors_are_mapped_and_cannot_be_written(run: Extract):
    (first, *_) = run()
    with pytest.raises(ValueError, match="read-only"):
        first.vectors[0] = 0
