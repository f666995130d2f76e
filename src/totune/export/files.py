"""The files of a model's folder: their names, writing them, and refusing damaged ones."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError

from totune._version import __version__
from totune.data.audit import SeenTexts
from totune.data.examples import Columns, Examples
from totune.errors import ConfigError, ModelError
from totune.io import (
    check_files,
    file_hash,
    read_checked_json,
    replacing,
    settle,
    sweep,
    write_checked_json,
    write_json,
)
from totune.outputs import check_output_folder, has_mark
from totune.registry import Member, build, registry_of
from totune.tasks.base import Task, task_from_json

if TYPE_CHECKING:
    from torch import Tensor

DESCRIPTION = "totune.json"
HEAD = "head.safetensors"
ADAPTER_CONFIG = "adapter_config.json"  # PEFT's names
ADAPTER_WEIGHTS = "adapter_model.safetensors"
SEEN = "train_texts.npy"
ENCODER = "encoder"  # the folder of an encoder beside what was trained on top of it
BASELINE = "baseline"
# What a model's folder may hold beside its description.
_PARTS = (
    *(HEAD, ADAPTER_CONFIG, ADAPTER_WEIGHTS, SEEN, ENCODER, BASELINE),
    *("config.json", "model.safetensors", "model-*-of-*.safetensors"),
    *("model.safetensors.index.json", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt"),
    *("spiece.model", "spm.model", "sentencepiece.bpe.model", "word_tokenizer.json"),
)
_UNFINISHED = "model.*.tmp"
PLUG_IN_FOLDERS = ("totune.heads", "totune.baselines", "totune.tasks")

# What reading a folder with a file cut short, swapped or edited by hand can raise.
_DAMAGE = (
    *(ValueError, TypeError, KeyError, AttributeError, RuntimeError, OSError),
    *(SafetensorError, ConfigError),
)


def check_model_folder(folder: Path, setting: str | None = "out") -> None:
    """Makes sure that a model may be written into a folder.

    Args:
        folder: new, empty, or with a model of totune, finished or in training; whatever else lies
            beside that model stays.
        setting: that it was named by; None where it follows from another.

    Raises:
        ConfigError: if the folder is anything else.
    """
    check_output_folder(folder, f"a model ({DESCRIPTION})", _is_ours, setting)


def _is_ours(folder: Path) -> bool:
    in_training = (folder / "training" / "runs").is_dir()
    return has_mark(folder / DESCRIPTION, "totune") or (in_training and not any(_parts(folder)))


def _parts(folder: Path) -> Iterator[Path]:
    for name in _PARTS:
        yield from folder.glob(name)


@contextmanager
def replaced_model(folder: Path) -> Iterator[Path]:
    """An empty folder to write a model into, which then takes the place of the one in `folder`.

    If the block raises, the older model stays. While its files change places, and while there is
    none, a description that says nothing marks `folder` as ours.

    Raises:
        ConfigError: if `folder` holds something that is not a model of totune.
    """
    check_model_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(_UNFINISHED):  # by a process that was killed
        shutil.rmtree(left)
    sweep(folder)
    if not (folder / DESCRIPTION).is_file():
        describe_nothing(folder)
    prefix, suffix = _UNFINISHED.split("*")
    with tempfile.TemporaryDirectory(prefix=prefix, suffix=suffix, dir=folder) as made:
        yield Path(made)
        describe_nothing(folder)
        remove_parts(folder)
        for path in sorted(Path(made).iterdir(), key=lambda path: path.name == DESCRIPTION):
            path.replace(folder / path.name)


def describe_nothing(folder: Path) -> None:
    """Marks a folder as a model's that is not finished."""
    write_json(folder / DESCRIPTION, {"totune": __version__})


def remove_model(folder: Path) -> None:
    """Removes the model of totune in a folder, if there is one, and what else it holds not."""
    if not folder.is_symlink() and has_mark(folder / DESCRIPTION, "totune"):
        remove_parts(folder)
        (folder / DESCRIPTION).unlink()
        if not any(folder.iterdir()):
            folder.rmdir()


def remove_parts(folder: Path) -> None:
    """Removes a model's files but for its description; of a link the link alone."""
    for path in list(_parts(folder)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def is_model(folder: Path) -> bool:
    """Whether a folder holds a finished model of totune."""
    return has_mark(folder / DESCRIPTION, "totune", "kind")


def describe(folder: Path, task: Task, facts: Mapping[str, Any], *members: Member) -> None:
    """Writes `totune.json`, which stands for a whole folder and so is written last.

    Its `files` are the hashes of all others, by which damage is found when they are read.

    Args:
        folder: the model's.
        task: its label space.
        facts: all else.
        members: the head or baseline that loading it needs; those of plug-ins are written down.
    """
    every: list[Task | Member] = [task, *members]
    needed = [plug_in for one in every if (plug_in := plug_in_of(one))]
    about = {"totune": __version__, "task": task.to_json(), **facts}
    if needed:
        about["plug_ins"] = needed
    write_checked_json(folder / DESCRIPTION, {**about, "files": settle(folder)})


def plug_in_of(member: Task | Member) -> dict[str, str] | None:
    """Where a member that is not totune's own was defined; None for our own."""
    kind = type(member)
    place = kind.__module__
    if place.startswith("totune."):
        return None
    if place == "__main__":
        place = Path(getattr(sys.modules["__main__"], "__file__", "a notebook")).stem
    package = packages_distributions().get(place.partition(".")[0], [""])[0]
    bases = {base.__module__ for base in kind.__mro__}
    folder = next(name for name in PLUG_IN_FOLDERS if f"{name}.base" in bases)
    return {"folder": folder, "name": member.name, "module": place, "package": package}


def _check_plug_ins(folder: Path, about: Mapping[str, Any]) -> None:
    """Makes sure that what a model needs of plug-ins is there; imports nothing that it names."""
    for needed in about.get("plug_ins", ()):
        if needed["folder"] not in PLUG_IN_FOLDERS:
            raise ValueError(f"plug_ins in {DESCRIPTION} names the folder {needed['folder']!r}")
        registry = registry_of(needed["folder"])
        if needed["name"] in registry.names():
            continue
        package, module = needed["package"], needed["module"]
        install = f"pip install {package}, or import" if package else "import"
        raise ModelError(
            f"{folder} needs the {registry.noun} {needed['name']!r} of the plug-in {module}, which "
            f"is not imported; a model's folder runs no code by itself. Remedy: {install} "
            f"{module} before the model is loaded (totune --import {module})."
        )


def read_description(folder: Path) -> tuple[Task, dict[str, Any]]:
    """What `describe` wrote.

    Raises:
        ModelError: if the folder is no model's, or a file of it is not what was written.
    """
    if not (folder / DESCRIPTION).is_file():
        raise ModelError(
            f"{folder} holds no model of totune (there is no {DESCRIPTION} in it). Name the folder "
            "that 'totune train' made, or the 'best' folder of a study."
        )
    with refusing_damage(folder):
        try:
            about = read_checked_json(folder / DESCRIPTION)
        except ValueError as error:
            raise ValueError(f"{DESCRIPTION}: {error}") from None
        for name in ("task", "files", "columns", "framing"):
            if not isinstance(about.get(name, {}), dict):
                raise ValueError(f"{name} in {DESCRIPTION} is no JSON object")
        check_files(folder, about.get("files", {}))
        if "columns" in about:
            build(Columns, about["columns"], "columns")
        _check_plug_ins(folder, about)
        return task_from_json(about["task"]), about


def write_adapter_config(config: Mapping[str, Any], folder: Path) -> None:
    """Writes the configuration of inserted modules, in PEFT's layout without the encoder's name.

    By that name transformers would load the folder alone, and put a random head on it.
    """
    named = {name: fact for name, fact in config.items() if name != "base_model_name_or_path"}
    write_json(folder / ADAPTER_CONFIG, named)


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object; raises ValueError, which names the file, if it is none."""
    try:
        facts = json.loads((folder / name).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{name} is damaged ({error})") from None
    if not isinstance(facts, dict):
        raise ValueError(f"{name} is damaged (it holds no JSON object)")
    return facts


def write_weights(weights: Mapping[str, "Tensor"], folder: Path, name: str) -> None:
    """Writes tensors from any device; none may share memory with another."""
    from safetensors.torch import save_file

    save_file({n: w.detach().contiguous().cpu() for n, w in weights.items()}, folder / name)


def read_weights(folder: Path, name: str) -> dict[str, "Tensor"]:
    """Tensors on the processor; raises ValueError, which names the file, if it is damaged."""
    from safetensors.torch import load_file

    if not (folder / name).is_file():
        raise ValueError(f"{name} is missing")
    try:
        return load_file(folder / name)
    except SafetensorError as error:
        raise ValueError(f"{name} is damaged ({error})") from None


def write_seen(train: Examples, folder: Path) -> None:
    """Writes hashes of the texts that a model was trained on, beside it."""
    with replacing(folder / SEEN) as temporary, temporary.open("wb") as file:
        np.save(file, SeenTexts.of(train).hashes)
    about = read_checked_json(folder / DESCRIPTION)
    about["files"] = {**about["files"], SEEN: file_hash(folder / SEEN)}
    write_checked_json(folder / DESCRIPTION, about)


def read_seen(folder: Path) -> SeenTexts | None:
    """What `write_seen` wrote; None where it is not there. Raises ValueError if it is damaged."""
    if not (folder / SEEN).is_file():
        return None
    try:
        hashes = np.load(folder / SEEN, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{SEEN} is damaged ({error})") from None
    if hashes.dtype != np.uint64 or hashes.ndim != 1:
        raise ValueError(f"{SEEN} is damaged (it holds no list of hashes)")
    return SeenTexts(hashes)


@contextmanager
def refusing_damage(folder: Path, *also: type[Exception]) -> Iterator[None]:
    """Turns what damaged files raise, and what is named beside, into one `ModelError`."""
    kinds: tuple[type[Exception], ...] = (*_DAMAGE, *also)
    try:
        yield
    except kinds as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else f"{error}"
        raise ModelError(f"{folder} cannot be read as a model: {reason}") from None
