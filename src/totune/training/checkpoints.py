"""The state of a run at the end of an epoch, on disk, so that a killed run continues from it.

A file of torch is a zip archive, whose own checksums torch does not check. So a CRC-32 of the whole
stands at its end, taken while it is written: with 24 million numbers that is 0.06 s beside 0.37 s.
"""

import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch

from totune.io import replacing

_MARK = b"totune crc-32 "  # comes before the checksum, after what torch has written
_BLOCK = 1 << 22  # bytes that are read at once


def save_checkpoint(state: dict[str, Any], path: Path) -> None:
    """Writes a state in one rename, after which even a power cut leaves it whole.

    Raises:
        OSError: there is no room, or no right to write.
    """
    # Given a path, torch would raise a RuntimeError where a disk is full.
    with replacing(path) as temporary, temporary.open("wb") as file:
        summed = _Summed(file)
        try:
            torch.save(state, summed)  # type: ignore[arg-type]  # it only writes
        except RuntimeError as error:
            # What is raised while torch writes, an interrupt too, becomes a RuntimeError when it
            # closes what is half written: to a run, a fault like a diverged loss.
            if isinstance(error.__context__, OSError | KeyboardInterrupt):
                raise error.__context__ from None
            raise
        file.write(_MARK + summed.checksum.to_bytes(4, "little"))


def load_checkpoint(
    path: Path, identity: str, on_unusable: Callable[[str], None] = lambda _: None
) -> dict[str, Any] | None:
    """The state saved under `identity`, or None if there is none that can be used.

    Args:
        path: of the file, which need not exist.
        identity: of the plan, settings and seed that the state must belong to.
        on_unusable: called with a sentence that says why an existing file is not used.
    """
    if not path.exists():
        return None
    fault = "is of another plan or other settings"
    try:
        _check_whole(path)
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        if isinstance(state, dict) and state.get("identity") == identity:
            return state
    except Exception as error:  # unpicklers raise many kinds; it costs epochs, not the run
        reason = str(error).partition("\n")[0] or type(error).__name__
        fault = f"cannot be read ({reason})"
    on_unusable(f"The checkpoint {path} {fault}: training begins anew.")
    return None


class _Summed:
    """A file that takes the checksum of what is written to it.

    Attributes:
        checksum: of everything so far.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.checksum = 0

    def write(self, content: bytes) -> int:
        self.checksum = zlib.crc32(content, self.checksum)
        return self._file.write(content)

    def flush(self) -> None:
        self._file.flush()


def _check_whole(path: Path) -> None:
    """Raises `ValueError` if a file is not what was written."""
    with path.open("rb") as file:
        end = file.seek(-len(_MARK) - 4, 2)
        mark, expected = file.read(len(_MARK)), int.from_bytes(file.read(4), "little")
        if mark != _MARK:  # of an earlier version: the checksums of the archive's parts
            if zipfile.ZipFile(file).testzip() is not None:
                raise ValueError("it is damaged")
            return
        found, left = 0, end
        file.seek(0)
        while left:
            content = file.read(min(left, _BLOCK))
            found, left = zlib.crc32(content, found), left - len(content)
    if found != expected:
        raise ValueError("it is damaged: its checksum does not match")


def random_state() -> dict[str, Any]:
    """The state of torch's generators, from which dropout draws."""
    state: dict[str, Any] = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restore_random_state(state: dict[str, Any]) -> None:
    """Puts torch's generators back to where `random_state` found them."""
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
