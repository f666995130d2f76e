"""Loading an encoder and its tokenizer, with a clear message for each thing that can be wrong.

Code that comes with a model is never run: no remote code, no pickled objects.
"""

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from totune.encoders.elmo.weights import holds_elmo, load_elmo, plan_elmo
from totune.encoders.encoder import Encoder
from totune.encoders.flair.weights import holds_flair, load_flair, plan_flair
from totune.encoders.layouts import layout_of
from totune.encoders.sources import DEFAULT_ENCODER, EncoderSource, resolve
from totune.encoders.transformers import ATTENTIONS, Attention, TransformersEncoder
from totune.errors import ModelError
from totune.inputs.encodings import Tokenizer
from totune.io import memory_ran_out
from totune.text import first_line

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_VOCABULARIES = (
    *("tokenizer.json", "vocab.txt", "vocab.json"),
    *("spiece.model", "spm.model", "sentencepiece.bpe.model"),
)


@dataclass(frozen=True)
class Loaded:
    """An encoder ready to use, in eval mode.

    Attributes:
        encoder: its `max_length` also respects the tokenizer's limit.
        tokenizer: belongs to the encoder.
        reference: what was asked for.
        name: what the encoder is called in reports.
        note: one sentence about where it came from.
    """

    encoder: Encoder
    tokenizer: Tokenizer
    reference: str
    name: str
    note: str


def load_encoder(
    reference: str = DEFAULT_ENCODER,
    *,
    random_weights: bool = False,
    attn_implementation: Attention = "sdpa",
) -> Loaded:
    """Loads an encoder in float32 with its tokenizer.

    Args:
        reference: "minilm", a local folder or a hub id.
        random_weights: build the encoder from its configuration and leave any weights unread.
        attn_implementation: "sdpa" (where the type has none: eager) or "eager".

    Raises:
        ModelError: if something is missing, damaged, unsupported or would have to run code.
    """
    source = resolve(reference)
    encoder: Encoder
    tokenizer: Tokenizer
    for holds, load in ((holds_elmo, load_elmo), (holds_flair, load_flair)):
        if holds(source.folder):
            encoder, tokenizer = load(source.folder, random_weights)
            return Loaded(encoder, tokenizer, reference, source.name, source.note)
    config = read_config(source.folder)
    with quiet():
        tokenizer = _read_tokenizer(source.folder, config)
        if random_weights:
            encoder = TransformersEncoder.from_config(config, attn_implementation)
        else:
            encoder = TransformersEncoder(_read_model(source.folder, config, attn_implementation))
    encoder.max_length = min(encoder.max_length, tokenizer.model_max_length)
    encoder.eval()
    _check_finite(encoder, source.folder)
    return Loaded(encoder, tokenizer, reference, source.name, source.note)


def _check_finite(encoder: Encoder, folder: Path) -> None:
    """Refuses weights that no training can mend: every output would be no number."""
    for name, parameter in encoder.named_parameters():
        if not bool(parameter.isfinite().all()):
            raise ModelError(
                f"The weights in {folder} hold values that are not finite (in {name}): the file is "
                "damaged, or its training diverged. Copy or download it again, or name another."
            )


def plan_encoder(reference: str = DEFAULT_ENCODER) -> tuple[Encoder, EncoderSource]:
    """An encoder without memory (meta device), for counting parameters: needs a config.json only.

    Raises:
        ModelError: if the configuration is missing or of an unsupported type.
    """
    source = resolve(reference, weights=False)
    for holds, plan in ((holds_elmo, plan_elmo), (holds_flair, plan_flair)):
        if holds(source.folder):
            return plan(source.folder), source
    config = read_config(source.folder)
    with quiet(), torch.device("meta"):
        return TransformersEncoder.from_config(config), source


def read_config(folder: Path) -> "PretrainedConfig":
    """The configuration in a folder; raises `ModelError` if totune cannot use such a model."""
    from transformers import AutoConfig

    file = folder / "config.json"
    if not file.is_file():
        within = folder / "encoder"  # where a trained model keeps it
        hint = f" Its folder {within} does." if (within / "config.json").is_file() else ""
        raise ModelError(f"The folder {folder} has no config.json, so it holds no encoder.{hint}")
    try:
        facts: Any = json.loads(file.read_text(encoding="utf-8"))
        kind = facts.get("model_type")
    except (ValueError, AttributeError) as error:
        raise ModelError(f"{file} is not a JSON object: {first_line(error)}.") from None
    if not isinstance(kind, str):
        raise ModelError(f"{file} does not say which model_type it configures, such as 'bert'.")
    _check_type(kind, own_code="auto_map" in facts)
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # transformers' checks raise many kinds, all faults of the file
        raise ModelError(f"{file} is not a valid configuration: {first_line(error)}.") from None
    return config


def _check_type(kind: str, own_code: bool) -> None:
    try:
        layout_of(kind)
    except ModelError as error:
        code = " This model brings its own code, which totune never runs." if own_code else ""
        raise ModelError(f"{error}{code}") from None


def _read_tokenizer(folder: Path, config: "PretrainedConfig") -> "PreTrainedTokenizerBase":
    from transformers import AutoTokenizer

    if not any((folder / name).is_file() for name in _VOCABULARIES):
        raise ModelError(
            f"The folder {folder} has no tokenizer ({', '.join(_VOCABULARIES)}); save the one "
            "the encoder was trained with beside it: tokenizer.save_pretrained(folder)."
        )
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # parsers of several formats raise many kinds
        raise ModelError(f"The tokenizer in {folder} cannot be read: {first_line(error)}") from None
    fault = _tokenizer_fault(tokenizer, config)
    if fault:
        raise ModelError(f"The tokenizer in {folder} {fault}.")
    checked: PreTrainedTokenizerBase = tokenizer
    return checked


def _tokenizer_fault(tokenizer: Any, config: "PretrainedConfig") -> str | None:
    if not tokenizer.is_fast:
        return "exists in slow Python only; totune needs a fast one (tokenizer.json)"
    if tokenizer.pad_token_id is None:
        return "has no padding token; set pad_token and save it again"
    if len(tokenizer) > config.vocab_size:
        return (
            f"has {len(tokenizer)} pieces, the encoder only {config.vocab_size} embeddings: "
            "they do not belong together"
        )
    return None


def _read_model(
    folder: Path, config: "PretrainedConfig", attn_implementation: Attention
) -> "PreTrainedModel":
    from transformers import AutoModel

    if not any((folder / name).is_file() for name in _WEIGHTS + _PICKLED):
        raise ModelError(
            f"The folder {folder} has a config.json but no weights ({_WEIGHTS[0]} or "
            f"{_PICKLED[0]}). A configuration alone is enough for plans, not for training."
        )
    try:
        model, report = AutoModel.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            attn_implementation=ATTENTIONS[attn_implementation],
            trust_remote_code=False,
            weights_only=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except pickle.UnpicklingError:
        raise ModelError(
            f"The pickled weights in {folder} are damaged or hold objects that could run code, "
            "so they were not read. Ask for a safetensors file."
        ) from None
    except Exception as error:  # readers of damaged files raise many kinds
        if memory_ran_out(error):
            raise MemoryError(f"while the weights in {folder} were read") from None
        raise ModelError(
            f"The weights in {folder} cannot be read: {first_line(error)}. The file may be cut "
            "short; copy or download it again."
        ) from None
    _check_report(folder, model, report)
    checked: PreTrainedModel = model
    return checked


def _check_report(folder: Path, model: Any, report: dict[str, Any]) -> None:
    """Refuses partial weights; a pooler that was not in the file is taken off."""
    mismatched = sorted(str(key) for key in report["mismatched_keys"])
    missing = sorted(report["missing_keys"])
    encoder_missing = [name for name in missing if not name.startswith("pooler.")]
    if mismatched:
        raise ModelError(
            f"{len(mismatched)} weights in {folder} have another shape than config.json says, "
            f"such as {mismatched[0]}: they do not belong together."
        )
    if encoder_missing:
        raise ModelError(
            f"The weights in {folder} lack {len(encoder_missing)} of the encoder's tensors, such "
            f"as {encoder_missing[0]}: the file is not a whole checkpoint of this configuration."
        )
    if missing:
        model.pooler = None


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps transformers' reports and bars off the screen: what matters becomes our messages."""
    from transformers.utils import logging as transformers_logging

    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
