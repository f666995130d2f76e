"""Who can load a model's folder, and how."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from totune.encoders.sources import ALIASES
from totune.export.files import ADAPTER_CONFIG, DESCRIPTION, ENCODER, read_json, refusing_damage

_MOST_NAMED = 5  # labels
_PIPELINES = {
    "AutoModelForSequenceClassification": "text-classification",
    "AutoModelForTokenClassification": "token-classification",
}


def who_loads(folder: Path) -> list[str]:
    """Sentences that say what loads the model in a folder, with the code that does it.

    Raises:
        ModelError: if its description is damaged.
    """
    with refusing_damage(folder):
        about = read_json(folder, DESCRIPTION)
        return [*_loaders(folder, about), *_tuned(about)]


def _loaders(folder: Path, about: Mapping[str, Any]) -> list[str]:
    if about["kind"] == "baseline":
        return _only_totune(folder, "transformers has no class for a baseline")
    if about["kind"] == "adapter":
        return _adapter(folder, about)
    pipeline = _PIPELINES.get(about["transformers_class"])
    if pipeline is None:
        return _head_of_ours(folder, str(about["transformers_note"]))
    call = f'"{pipeline}", {_quoted(folder)}'
    if pipeline == "token-classification":
        return [
            f"transformers loads it too: pipeline({call}); a word's tag is that of its first word "
            "piece."
        ]
    pairs = ', for pairs as {"text": ..., "text_pair": ...}' if about.get("pairs") else ""
    length = f"truncation=True, max_length={about['max_length']}"
    if about["task"]["name"] == "multi-label":
        length += ", top_k=None"
    return [f"transformers loads it too: pipeline({call}, {length}){pairs}"]


def _tuned(about: Mapping[str, Any]) -> list[str]:
    """Where probabilities become decisions, if that was tuned; other libraries do not know it."""
    task = about.get("task", {})
    thresholds = task.get("thresholds")
    if not thresholds:
        return []
    labels = task["labels"][-len(thresholds) :]  # of two classes the second
    each = [
        f"{label!r} from a probability of {threshold:.3g} on"
        for label, threshold in zip(labels, thresholds, strict=True)
    ]
    told = ", ".join(each[:_MOST_NAMED]) + (" and so on" if len(each) > _MOST_NAMED else "")
    return [f"Tuned on dev, it predicts {told}; only totune knows that."]


def _only_totune(folder: Path, reason: str) -> list[str]:
    return [f"Only totune loads it, in Python as totune.load({_quoted(folder)}): {reason}."]


def _head_of_ours(folder: Path, reason: str) -> list[str]:
    found = _only_totune(folder, reason)
    place = folder / ENCODER
    if (place / "tokenizer_config.json").is_file():  # which encoders of other libraries have not
        found.append(f"Its encoder alone: AutoModel.from_pretrained({_quoted(place)})")
    return found


def _adapter(folder: Path, about: Mapping[str, Any]) -> list[str]:
    if about.get("holds_encoder"):
        return _only_totune(folder, "transformers has no class for the modules in its encoder")
    found = _only_totune(folder, "it holds what was trained, not the encoder (see totune merge)")
    if "peft_type" in read_json(folder, ADAPTER_CONFIG):
        encoder = str(about["model"])
        base = f"AutoModel.from_pretrained({_quoted(ALIASES.get(encoder, encoder))})"
        call = f"PeftModel.from_pretrained({base}, {_quoted(folder)})"
        found.append(f"PEFT loads it without the head: {call}")
    return found


def _quoted(name: Path | str) -> str:
    return json.dumps(str(name), ensure_ascii=False)
