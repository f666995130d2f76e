"""The state of a run at the end of an epoch, on disk, so that a killed run continues from it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from totune.io import replacing


def save_checkpoint(state: dict[str, Any], path: Path) -> None:
    """Writes a state in one rename, after which even a power cut leaves it whole."""
    # Given a path, torch would raise a RuntimeError where a disk is full.
    with replacing(path, sync=True) as temporary, temporary.open("wb") as file:
        torch.save(state, file)


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
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        if isinstance(state, dict) and state.get("identity") == identity:
            return state
    except Exception as error:  # unpicklers raise many kinds; it costs epochs, not the run
        reason = str(error).partition("\n")[0] or type(error).__name__
        fault = f"cannot be read ({reason})"
    on_unusable(f"The checkpoint {path} {fault}: training begins anew.")
    return None


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
