"""The state of a run at the end of an epoch, on disk, so that a killed run continues from it."""

import os
from pathlib import Path
from typing import Any

import torch

from totune.progress import Progress


def save_atomically(state: dict[str, Any], path: Path) -> None:
    """Writes beside `path` and renames: a reader finds the old file or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load_checkpoint(
    path: Path, identity: str, progress: Progress | None = None
) -> dict[str, Any] | None:
    """The state saved under `identity`, or None if there is none (or that of another plan).

    Args:
        path: of the checkpoint.
        identity: of the plan.
        progress: gets a warning if a checkpoint cannot be used.
    """
    progress = progress or Progress()
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # unpicklers raise many kinds; it costs epochs, not the run
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        progress.warn(f"{path} cannot be read ({reason}), so the run begins anew.")
        return None
    if not isinstance(state, dict) or state.get("identity") != identity:
        progress.warn(f"{path} is not the checkpoint of this plan, so the run begins anew.")
        return None
    return state


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
