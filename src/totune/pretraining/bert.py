"""Pretraining a BERT, or pretraining a masked language model further."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from totune.encoders.kernels import accelerate_encoder
from totune.encoders.layouts import layout_of
from totune.encoders.loading import load_encoder, quiet
from totune.encoders.sources import resolve
from totune.encoders.transformers import TransformersEncoder
from totune.errors import ConfigError, ModelError
from totune.outputs import output_path
from totune.pretraining.course import Course, Stage
from totune.pretraining.masked import MaskedObjective
from totune.pretraining.pairs import pairable
from totune.pretraining.presets import BERT_PRESETS, CONTINUED, BertPreset, find_preset
from totune.pretraining.record import Pretrained
from totune.pretraining.session import Ready, Session, Texts
from totune.pretraining.settings import PretrainingSettings
from totune.pretraining.store import Store, open_store
from totune.pretraining.tokenising import Pieces
from totune.pretraining.vocabulary import check_tokenizer, learn_pieces, read_tokenizer
from totune.progress import Progress


def pretrain_bert(
    corpus: Sequence[str | Path],
    out: str | Path,
    *,
    preset: str = "mini",
    model: str | None = None,
    tokenizer: str | None = None,
    validation: str | Path | None = None,
    next_sentence: bool = False,
    whole_word_mask: bool = False,
    cased: bool = False,
    settings: PretrainingSettings | None = None,
    progress: Progress | None = None,
) -> Pretrained:
    """Trains a masked language model on text, into a folder that loads as an encoder.

    An interrupted call goes on from its last checkpoint. A large corpus is tokenised by several
    processes, so a script that calls this needs the usual `if __name__ == "__main__":`.

    Args:
        corpus: text files with a paragraph per line and blank lines between documents (.xz or .gz
            if packed), or `hub:NAME`.
        out: the folder to write; new, empty, or that of the same call.
        preset: the size, of `BERT_PRESETS`.
        model: goes on from this folder, hub id or alias; its size counts, not the preset's.
        tokenizer: a folder or hub id whose tokenizer is used; learnt from the corpus if None.
        validation: a text that is held out; if None, the last hundredth of the documents.
        next_sentence: whether rows are pairs and the model also learns which belong together.
        whole_word_mask: whether all pieces of a word are masked together.
        cased: whether word pieces that are learnt keep capitals and accents.
        settings: everything else.
        progress: told how it goes.

    Raises:
        ConfigError: if settings contradict each other, or `out` holds something else.
        DataError: if the text cannot be used.
        ModelError: if the model or the tokenizer cannot.
        RunError: if training fails, or a file cannot be written.
    """
    chosen, watcher = settings or PretrainingSettings(), progress or Progress()
    chosen.check()
    size = find_preset(BERT_PRESETS, preset)
    _check_choices(model, tokenizer, cased, chosen)
    complete = chosen.fitted(CONTINUED if model else size.training)
    texts = Texts.of(corpus, validation, chosen, watcher)
    about = {
        "kind": "bert",
        "preset": None if model else preset,
        "continued_from": model,
        "tokenizer": tokenizer,
        "next_sentence": next_sentence,
        "whole_word_mask": whole_word_mask,
        "cased": cased,
        "corpus": texts.facts(),
    }
    session = Session(output_path(out), about, complete, watcher)
    exact = chosen.vocab_size is not None

    def build() -> Ready:
        torch.manual_seed(complete.seed)
        if model is not None:
            network, pieces, notes = _continued(model, next_sentence)
        else:
            pieces = _pieces(tokenizer, cased, exact, texts, complete, watcher)
            network, notes = _new(size, pieces, next_sentence, complete), []
        for note in notes:
            watcher.say(note)
        return _ready(network, pieces, texts, session, next_sentence, whole_word_mask, notes)

    return session.run(build)


def _check_choices(
    model: str | None, tokenizer: str | None, cased: bool, settings: PretrainingSettings
) -> None:
    given = {"--vocab-size": settings.vocab_size, "--cased": cased, "--tokenizer": tokenizer}
    faults = [
        f"{name} cannot go with --model, which brings its tokenizer; leave one out."
        for name, value in given.items()
        if model and value
    ]
    faults += [
        f"{name} cannot go with --tokenizer, whose pieces are fixed; leave one out."
        for name in ("--vocab-size", "--cased")
        if tokenizer and not model and given[name]
    ]
    short, length = settings.short_length, settings.max_length
    if short is not None and length is not None and short >= length:
        faults.append(f"--short-length {short} must be below --max-length {length}.")
    if faults:
        raise ConfigError(faults)


def _pieces(
    reference: str | None,
    cased: bool,
    exact: bool,
    texts: Texts,
    settings: PretrainingSettings,
    progress: Progress,
) -> PreTrainedTokenizerBase:
    if reference is not None:
        return read_tokenizer(reference)
    size, length = int(settings.vocab_size or 0), int(settings.max_length or 0)
    return learn_pieces(
        texts.train, size, cased=cased, exact=exact, max_length=length, progress=progress
    )


def _new(
    size: BertPreset,
    tokenizer: PreTrainedTokenizerBase,
    next_sentence: bool,
    settings: PretrainingSettings,
) -> PreTrainedModel:
    """A BERT with weights of chance."""
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden_size,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=4 * size.hidden_size,
        max_position_embeddings=int(settings.max_length or 0),
        pad_token_id=tokenizer.pad_token_id,
    )
    return BertForPreTraining(config) if next_sentence else BertForMaskedLM(config)


def _continued(
    reference: str, next_sentence: bool
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, list[str]]:
    """A pretrained model with a head for masked pieces, its own if its file has one."""
    loaded = load_encoder(reference)
    encoder: Any = loaded.encoder
    if not isinstance(encoder, TransformersEncoder):
        raise ModelError(f"{reference} is no BERT; totune pretrain elmo goes on with an ELMo.")
    if next_sentence and encoder.kind != "bert":
        raise ConfigError(f"--next-sentence needs a BERT; {reference} is a {encoder.kind}.")
    tokenizer: Any = loaded.tokenizer
    check_tokenizer(tokenizer, reference)
    kind: Any = BertForPreTraining if next_sentence else AutoModelForMaskedLM
    try:
        with quiet():
            network, report = kind.from_pretrained(
                resolve(reference).folder,
                dtype=torch.float32,
                trust_remote_code=False,
                weights_only=True,
                output_loading_info=True,
            )
    except Exception as error:  # a type without such a head, or one whose file does not fit
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(f"{reference} cannot be a masked language model: {reason}") from None
    return network, tokenizer, _completed(network, encoder, report["missing_keys"], reference)


def _completed(network: Any, encoder: Any, missing: Sequence[str], reference: str) -> list[str]:
    """Says which heads are new, and keeps a pooler that nothing trains here."""
    notes = []
    prefix = f"{network.base_model_prefix}."
    fresh = sorted(name for name in missing if not name.startswith(prefix))
    if fresh:
        notes.append(
            f"{reference} comes without {len(fresh)} tensors of the language model's head, such as "
            f"{fresh[0]}: they start with values of chance"
        )
    for name in dict.fromkeys(at.partition(".")[0] for at in layout_of(encoder.kind).pooler):
        kept = getattr(encoder.model, name, None)
        if kept is not None and getattr(network.base_model, name, None) is None:
            setattr(network.base_model, name, kept.requires_grad_(False))
    return notes


def _ready(
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Texts,
    session: Session,
    next_sentence: bool,
    whole_word_mask: bool,
    notes: list[str],
) -> Ready:
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0  # the configuration keeps its own, which tuning uses
    accelerate_encoder(network, session.devices.device)
    base: Any = network.base_model
    objective = MaskedObjective(
        network,
        tokenizer,
        pairs=next_sentence,
        whole_words=whole_word_mask,
        places=None if session.about["continued_from"] else base.embeddings.position_embeddings,
    )
    encoder = TransformersEncoder(base)
    length = min(int(session.settings.max_length or 0), encoder.max_length)
    backend: Any = tokenizer
    how = Pieces(backend.backend_tokenizer.to_str())
    store = open_store(texts.train, texts.validation, how, session.progress, len(tokenizer))
    batch_size, short = int(session.settings.batch_size or 0), session.settings.short_length
    lengths = [(length, batch_size)]
    if short is not None and short < length and session.settings.short_ratio:
        lengths.insert(0, (short, batch_size * (length // short)))
    framed = objective.frame.size(2 if next_sentence else 1)
    stages = [_stage(texts, store, each, framed, next_sentence, rows) for each, rows in lengths]
    course = Course(tuple(stages), session.settings.short_ratio if len(stages) > 1 else 0.0)
    facts = {"vocab_size": len(tokenizer), "rows": len(stages[-1].train), "notes": notes}
    return Ready(objective, encoder, course, facts)


def _stage(
    texts: Texts, store: Store, length: int, framed: int, pairs: bool, batch_size: int
) -> Stage:
    """Rows of up to `length` pieces, of which `framed` are special ones."""
    if length - framed < 2:
        raise ConfigError(
            f"Rows of {length} pieces leave no room for text: choose a --max-length, and a "
            "--short-length, of 8 or more."
        )
    train, validation = texts.rows(store, length - framed)
    if pairs:
        train, validation = pairable(train), pairable(validation)
    return Stage(train, validation, batch_size, length)
