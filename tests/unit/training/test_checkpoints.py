"""Checkpoints: whole or not at all, and only one's own."""

import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from totune.training.checkpoints import (
    load_checkpoint,
    random_state,
    restore_random_state,
    save_checkpoint,
)

STATE = {"identity": "mine", "weights": {"a": torch.arange(200.0)}, "history": {"best": 1}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "checkpoint.pt"


def test_a_state_comes_back(path: Path) -> None:
    save_checkpoint(STATE, path)
    loaded = load_checkpoint(path, "mine")
    assert loaded is not None
    assert torch.equal(loaded["weights"]["a"], STATE["weights"]["a"])  # type: ignore[index]
    assert loaded["history"] == {"best": 1}
    assert [p.name for p in path.parent.iterdir()] == ["checkpoint.pt"]


def test_that_of_another_plan_is_ignored(path: Path) -> None:
    said: list[str] = []
    assert load_checkpoint(path, "mine", said.append) is None
    assert not said
    save_checkpoint(STATE, path)
    assert load_checkpoint(path, "other", said.append) is None
    assert "is of another plan" in said[0]


@pytest.mark.parametrize("damage", ["empty", "half", "text", "one byte", "changed", "folder"])
def test_an_unreadable_one_is_ignored(path: Path, damage: str) -> None:
    save_checkpoint(STATE, path)
    whole = path.read_bytes()
    contents = {
        "empty": b"",
        "half": whole[: len(whole) // 2],
        "text": b"hello world" * 20,
        "one byte": b"\x80",
        "changed": whole[:200] + b"XXXX" + whole[204:],
    }
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(contents[damage])
    said: list[str] = []
    assert load_checkpoint(path, "mine", said.append) is None
    [sentence] = said
    assert str(path) in sentence
    assert sentence.endswith(": training begins anew.")


def test_no_flipped_bit_is_believed(path: Path) -> None:
    """A bit anywhere in the file, of 200: the state is refused, or what was saved."""
    save_checkpoint(STATE, path)
    whole, refused = path.read_bytes(), 0
    random = np.random.default_rng(0)
    for place in random.integers(0, len(whole), 200):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        loaded = load_checkpoint(path, "mine")
        refused += loaded is None
        if loaded is not None:  # in the mark of the checksum alone
            assert torch.equal(loaded["weights"]["a"], STATE["weights"]["a"])  # type: ignore[index]
    assert refused > 190


def test_one_of_an_earlier_version_has_checksums_of_its_parts(path: Path) -> None:
    path.parent.mkdir()
    torch.save(STATE, path)
    assert load_checkpoint(path, "mine") is not None
    whole = path.read_bytes()
    number = np.float32(123.0).tobytes()
    path.write_bytes(whole.replace(number, np.float32(124.0).tobytes(), 1))
    said: list[str] = []
    assert load_checkpoint(path, "mine", said.append) is None
    assert "it is damaged" in said[0]


def test_what_is_no_state_is_ignored(path: Path) -> None:
    path.parent.mkdir()
    torch.save([1, 2], path)
    assert load_checkpoint(path, "mine") is None


def test_code_in_a_checkpoint_does_not_run(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    torch.save({"identity": "mine", "evil": _Evil(tmp_path / "ran")}, path)
    assert load_checkpoint(path, "mine") is None
    assert not (tmp_path / "ran").exists()


class _Evil:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.file,))


def test_a_write_that_fails_leaves_the_old_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(STATE, path)

    def full(state: object, file: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("torch.save", full)
    with pytest.raises(OSError, match="no space"):
        save_checkpoint({**STATE, "history": {}}, path)
    loaded = load_checkpoint(path, "mine")
    assert loaded is not None
    assert loaded["history"] == {"best": 1}
    assert [p.name for p in path.parent.iterdir()] == ["checkpoint.pt"]


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("writes", range(1, 40, 4))
def test_what_ends_a_write_is_no_fault_of_the_run(
    path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException, writes: int
) -> None:
    """A signal that arrives while a file is written used to become a run that failed."""
    left = [writes]

    def crc32(content: bytes, value: int) -> int:
        left[0] -= 1
        if not left[0]:
            raise fault
        return zlib.crc32(content, value)

    monkeypatch.setattr("totune.training.checkpoints.zlib", SimpleNamespace(crc32=crc32))
    with pytest.raises(type(fault)):
        save_checkpoint(STATE, path)
    assert not list(path.parent.iterdir())


def test_the_random_state_comes_back() -> None:
    state = random_state()
    first = torch.rand(5)
    restore_random_state(state)
    assert torch.equal(torch.rand(5), first)
