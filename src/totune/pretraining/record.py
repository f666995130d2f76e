"""What a pretraining leaves behind beside weights: its facts as plain data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from totune.errors import ConfigError
from totune.outputs import check_output_folder

FACTS, CHECKPOINT = "pretraining.json", "checkpoint.pt"


@dataclass(frozen=True)
class Pretrained:
    """A finished pretraining.

    Attributes:
        folder: what `--model` loads.
        facts: what was trained on what and how, and what came out, as in `pretraining.json`.
    """

    folder: Path
    facts: Mapping[str, Any]

    @property
    def validation(self) -> dict[str, float]:
        """What the last evaluation found: "perplexity" and others."""
        found: dict[str, float] = self.facts["validation"]
        return found


def claim(folder: Path, identity: str) -> Pretrained | None:
    """Makes a folder this pretraining's; what it left there, if it has been finished.

    A folder that another one claimed and never came to a checkpoint in is free.

    Raises:
        ConfigError: if the folder holds something else.
    """
    file = folder / FACTS
    if not file.is_file():
        check_output_folder(folder, f"a pretraining ({FACTS})", lambda _: False)
        folder.mkdir(parents=True, exist_ok=True)
        write_facts(folder, {"identity": identity, "finished": False})
        return None
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        known, finished = facts["identity"], bool(facts["finished"])
    except (ValueError, KeyError, TypeError):
        known, finished = None, True
    if known != identity and not finished and not (folder / CHECKPOINT).exists():
        write_facts(folder, {"identity": identity, "finished": False})
        return None
    if known != identity:
        raise ConfigError(
            f"--out {folder} holds another pretraining: other text, sizes or settings. Name "
            "another folder, or remove this one."
        )
    return Pretrained(folder, facts) if finished else None


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Writes `pretraining.json` in one rename."""
    temporary = folder / f"{FACTS}.tmp"
    temporary.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    temporary.replace(folder / FACTS)
