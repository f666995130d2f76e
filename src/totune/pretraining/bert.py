"""Pretraining a BERT, or pretraining a masked language model further."""

from collections.abc import Mapping, Sequence
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
from totune.pretraining.corpus import PretrainingCorpus
from totune.pretraining.curriculum import CurriculumStage, LengthCurriculum
from totune.pretraining.masked import MaskedObjective
from totune.pretraining.rows import pack_splits, select_pairable
from totune.pretraining.run import (
    Built,
    Pretrained,
    PretrainingRun,
    count_parameters,
    describe_texts,
    read_texts,
)
from totune.pretraining.settings import BERT_PRESETS, CONTINUED, PretrainingSettings, find_preset
from totune.pretraining.tokens import open_store
from totune.pretraining.vocabulary import check_tokenizer, learn_pieces, read_tokenizer
from totune.progress import Progress

_LEAST_TOKENS = 2  # of text in a row, beside special tokens


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

    An interrupted call continues from its last checkpoint. A large corpus is tokenised by several
    processes, so a script that calls this needs the usual `if __name__ == "__main__":`.

    Args:
        corpus: text files with a paragraph per line and blank lines between documents (.xz or .gz
            if packed), or `hub:NAME`.
        out: the folder to write; new, empty, or that of the same call.
        preset: a size, one of `BERT_PRESETS`.
        model: folder, hub id or alias of a model to train further; its size counts, not the
            preset's.
        tokenizer: folder or hub id of a tokenizer to use; None learns one from the corpus.
        validation: text to hold out; None for the last hundredth of the documents.
        next_sentence: whether rows are pairs and the model also learns which belong together.
        whole_word_mask: whether all pieces of a word are masked together.
        cased: whether word pieces that are learnt keep capitals and accents.
        settings: everything else.
        progress: receives losses and evaluations.

    Raises:
        ConfigError: if settings contradict each other, or `out` holds something else.
        DataError: if the text cannot be used.
        ModelError: if the model or the tokenizer cannot.
        RunError: if training fails, or a file cannot be written.
    """
    chosen, observer = settings or PretrainingSettings(), progress or Progress()
    chosen.check()
    size = find_preset(BERT_PRESETS, preset)
    _check_choices(model, tokenizer, cased, chosen)
    complete = chosen.completed(CONTINUED if model else size.settings)
    texts = read_texts(corpus, validation, chosen.max_words, observer)
    about = {
        "kind": "bert",
        "preset": None if model else preset,
        "continued_from": model,
        "tokenizer": tokenizer,
        "next_sentence": next_sentence,
        "whole_word_mask": whole_word_mask,
        "cased": cased,
        "corpus": describe_texts(*texts),
    }
    run = PretrainingRun(output_path(out), about, complete, observer)

    def build() -> Built:
        torch.manual_seed(complete.seed)
        if model is not None:
            network, pieces, notes = _load_further(model, next_sentence)
        else:
            exact = chosen.vocab_size is not None
            pieces = _choose_tokenizer(tokenizer, cased, exact, texts[0], complete, observer)
            network, notes = _new_network(size.architecture, pieces, next_sentence, complete), []
        for note in notes:
            observer.say(note)
        objective = _objective(network, pieces, run)
        curriculum = _curriculum(objective, texts, run)
        facts = {
            "vocab_size": len(pieces),
            "rows": len(curriculum.stages[-1].train),
            "notes": notes,
            "parameters": count_parameters(network.base_model, objective),
        }
        return objective, curriculum, facts

    return run.run(build)


def _check_choices(
    model: str | None, tokenizer: str | None, cased: bool, settings: PretrainingSettings
) -> None:
    given = {"vocab_size": settings.vocab_size, "cased": cased, "tokenizer": tokenizer}
    faults = [
        f"`{name}` cannot be combined with `model`, which brings its tokenizer; leave one out."
        for name, value in given.items()
        if model and value
    ]
    faults += [
        f"`{name}` cannot be combined with `tokenizer`, whose word pieces are fixed; leave one out."
        for name in ("vocab_size", "cased")
        if tokenizer and not model and given[name]
    ]
    short, length = settings.short_length, settings.max_length
    if short is not None and length is not None and short >= length:
        faults.append(f"short_length={short} must be below `max_length={length}`.")
    if faults:
        raise ConfigError(faults)


def _choose_tokenizer(
    reference: str | None,
    cased: bool,
    exact: bool,
    corpus: PretrainingCorpus,
    settings: PretrainingSettings,
    progress: Progress,
) -> PreTrainedTokenizerBase:
    if reference is not None:
        return read_tokenizer(reference)
    size, length = int(settings.vocab_size or 0), int(settings.max_length or 0)
    return learn_pieces(
        corpus, size, cased=cased, exact=exact, max_length=length, progress=progress
    )


def _new_network(
    architecture: Mapping[str, Any],
    tokenizer: PreTrainedTokenizerBase,
    next_sentence: bool,
    settings: PretrainingSettings,
) -> PreTrainedModel:
    """A BERT with random weights."""
    config = BertConfig(
        **architecture,
        vocab_size=len(tokenizer),
        max_position_embeddings=int(settings.max_length or 0),
        pad_token_id=tokenizer.pad_token_id,
    )
    return BertForPreTraining(config) if next_sentence else BertForMaskedLM(config)


def _load_further(
    reference: str, next_sentence: bool
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, list[str]]:
    """A pretrained model, its tokenizer, and notes; the head is its own if its file has one."""
    loaded = load_encoder(reference)
    encoder: Any = loaded.encoder
    if not isinstance(encoder, TransformersEncoder):
        raise ModelError(f"{reference} is not a BERT; pretrain_elmo trains an ELMo further.")
    if next_sentence and encoder.kind != "bert":
        raise ConfigError(f"next_sentence needs a BERT; {reference} is a {encoder.kind}.")
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
    _keep_pooler(network, encoder)
    return network, tokenizer, _notes(network, report["missing_keys"], reference)


def _keep_pooler(network: Any, encoder: TransformersEncoder) -> None:
    """Gives the model the encoder's pooler, which nothing trains here, where it lacks one."""
    for name in dict.fromkeys(at.partition(".")[0] for at in layout_of(encoder.kind).pooler):
        pooler = getattr(encoder.model, name, None)
        if pooler is not None and getattr(network.base_model, name, None) is None:
            setattr(network.base_model, name, pooler.requires_grad_(False))


def _notes(network: Any, missing: Sequence[str], reference: str) -> list[str]:
    """Says whether the head is new."""
    prefix = f"{network.base_model_prefix}."
    fresh = sorted(name for name in missing if not name.startswith(prefix))
    if not fresh:
        return []
    return [
        f"{reference} comes without {len(fresh)} tensors of the language model's head, such as "
        f"{fresh[0]}: they start with random weights"
    ]


def _objective(
    network: Any, tokenizer: PreTrainedTokenizerBase, run: PretrainingRun
) -> MaskedObjective:
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0  # the configuration keeps its own, which tuning uses
    accelerate_encoder(network, run.devices.device)
    is_new = not run.about["continued_from"]
    return MaskedObjective(
        network,
        tokenizer,
        pairs=run.about["next_sentence"],
        whole_words=run.about["whole_word_mask"],
        positions=network.base_model.embeddings.position_embeddings if is_new else None,
    )


def _curriculum(
    objective: MaskedObjective,
    texts: tuple[PretrainingCorpus, PretrainingCorpus],
    run: PretrainingRun,
) -> LengthCurriculum:
    """Rows of full length, and short ones before them unless the settings say otherwise."""
    settings = run.settings
    store = open_store(*texts, objective.tokenizer, run.progress)
    base: Any = objective.model.base_model
    longest = TransformersEncoder(base).max_length
    length, batch_size = min(int(settings.max_length or 0), longest), int(settings.batch_size or 0)
    short = settings.short_length
    sizes = [(length, batch_size)]
    if short is not None and short < length and settings.short_ratio:
        sizes.insert(0, (short, batch_size * (length // short)))
    special = objective.special_tokens.number(2 if objective.pairs else 1)
    stages = []
    for row_length, rows in sizes:
        if row_length - special < _LEAST_TOKENS:
            raise ConfigError(
                f"Rows of {row_length} tokens leave no room for text: choose a max_length, and a "
                "short_length, of 8 or more."
            )
        train, validation = pack_splits(store, *texts, row_length - special)
        if objective.pairs:
            train, validation = select_pairable(train), select_pairable(validation)
        stages.append(CurriculumStage(train, validation, rows, row_length))
    return LengthCurriculum(stages, settings.short_ratio)
