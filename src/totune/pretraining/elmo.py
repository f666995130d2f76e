"""Pretraining an ELMo: a bidirectional language model over the characters of words."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from totune.encoders.elmo.encoder import MAX_WORDS, ElmoEncoder
from totune.encoders.elmo.options import ElmoOptions
from totune.encoders.loading import load_encoder
from totune.encoders.sources import resolve
from totune.encoders.words import Vocabulary, WordTokenizer
from totune.errors import ConfigError, ModelError
from totune.outputs import output_path
from totune.pretraining.bilm import BilmObjective, WordSoftmax, read_softmax
from totune.pretraining.curriculum import CurriculumStage, LengthCurriculum
from totune.pretraining.rows import pack_splits
from totune.pretraining.run import (
    Built,
    Pretrained,
    PretrainingRun,
    count_parameters,
    describe_texts,
    read_texts,
)
from totune.pretraining.settings import CONTINUED, ELMO_PRESETS, PretrainingSettings, find_preset
from totune.pretraining.tokens import TokenStore, open_store
from totune.pretraining.vocabulary import frequent_words
from totune.progress import Progress
from totune.registry import out_of_range

_MARKERS = 2  # the begin and the end of a row
_LEAST_LENGTH = 8


def pretrain_elmo(
    corpus: Sequence[str | Path],
    out: str | Path,
    *,
    preset: str = "mini",
    model: str | None = None,
    validation: str | Path | None = None,
    clip: float | None = None,
    settings: PretrainingSettings | None = None,
    progress: Progress | None = None,
) -> Pretrained:
    """Trains a forward and a backward language model, into a folder that loads as an encoder.

    An interrupted call continues from its last checkpoint. A large corpus is tokenised by several
    processes, so a script that calls this needs the usual `if __name__ == "__main__":`.

    Args:
        corpus: text files with a paragraph per line and blank lines between documents (.xz or .gz
            if packed), or `hub:NAME`.
        out: the folder to write; new, empty, or that of the same call.
        preset: a size, one of `ELMO_PRESETS`.
        model: folder of an ELMo to train further; its size counts, not the preset's.
        validation: text to hold out; None for the last hundredth of the documents.
        clip: largest magnitude of memory cells and outputs (3 in the official models); without
            limits, which the model's configuration records, GPUs run a faster kernel.
        settings: everything else.
        progress: receives losses and evaluations.

    Raises:
        ConfigError: if settings contradict each other, or `out` holds something else.
        DataError: if the text cannot be used.
        ModelError: if the model cannot.
        RunError: if training fails, or a file cannot be written.
    """
    chosen, observer = settings or PretrainingSettings(), progress or Progress()
    chosen.check()
    _check_choices(model, clip, chosen)
    size = find_preset(ELMO_PRESETS, preset)
    defaults = size.settings
    if model:
        defaults = replace(defaults, learning_rate=CONTINUED.learning_rate)
    complete = chosen.completed(defaults)
    texts = read_texts(corpus, validation, chosen.max_words, observer)
    about = {
        "kind": "elmo",
        "preset": None if model else preset,
        "continued_from": model,
        "clip": clip,
        "corpus": describe_texts(*texts),
    }
    run = PretrainingRun(output_path(out), about, complete, observer)

    def build() -> Built:
        torch.manual_seed(complete.seed)
        if model is not None:
            encoder, tokenizer = _load_further(model)
        else:
            options = replace(size.architecture, cell_clip=clip, projection_clip=clip)
            encoder, tokenizer = _new_encoder(options)
        store = open_store(*texts, tokenizer, observer)
        for word in store.words:  # now a word's number is that of the store
            tokenizer.vocabulary.number(word)
        softmax = _saved_softmax(model, encoder, observer)
        if softmax is None:
            count, exact = int(complete.vocab_size or 0), chosen.vocab_size is not None
            words = frequent_words(store, count, exact=exact, progress=observer)
            softmax = WordSoftmax(encoder.options.projection_size, words)
        objective = BilmObjective(encoder, tokenizer, softmax)
        length = int(complete.max_length or 0)
        rows = pack_splits(store, *texts, length - _MARKERS)
        stage = CurriculumStage(*rows, int(complete.batch_size or 0), length)
        facts = {
            **_vocabulary_facts(store, softmax),
            "rows": len(stage.train),
            "parameters": count_parameters(encoder, objective),
        }
        return objective, LengthCurriculum([stage]), facts

    return run.run(build)


def _check_choices(model: str | None, clip: float | None, settings: PretrainingSettings) -> None:
    faults = []
    if model and clip is not None:
        faults.append(
            "`clip` cannot be combined with `model`, whose clips are fixed; leave one out."
        )
    if clip is not None and not clip > 0:
        faults.append(out_of_range("clip", clip, "above 0, or left out for no limit"))
    if settings.short_length is not None:
        faults.append("`short_length` is for bert: a BiLSTM reads one word after the other anyway.")
    length = settings.max_length
    if length is not None and not _LEAST_LENGTH <= length <= MAX_WORDS:
        faults.append(out_of_range("max_length", length, f"{_LEAST_LENGTH} to {MAX_WORDS} words"))
    if faults:
        raise ConfigError(faults)


def _new_encoder(options: ElmoOptions) -> tuple[ElmoEncoder, WordTokenizer]:
    """An ELMo with random weights, and its tokenizer."""
    vocabulary = Vocabulary()
    encoder = ElmoEncoder(options, vocabulary)
    return encoder, WordTokenizer(vocabulary, encoder.max_length)


def _load_further(reference: str) -> tuple[ElmoEncoder, WordTokenizer]:
    """A pretrained ELMo, and its tokenizer, which has seen no word yet."""
    loaded = load_encoder(reference)
    if not isinstance(loaded.encoder, ElmoEncoder):
        raise ModelError(
            f"{reference} is not an ELMo; pretrain_bert trains transformers' models further."
        )
    tokenizer: Any = loaded.tokenizer
    return loaded.encoder, tokenizer


def _saved_softmax(
    reference: str | None, encoder: ElmoEncoder, progress: Progress
) -> WordSoftmax | None:
    """The softmax that a model was trained with, if its folder has it."""
    if reference is None:
        return None
    softmax = read_softmax(resolve(reference).folder, encoder.options.projection_size)
    if softmax is None:
        progress.say(f"{reference} comes without a softmax: a new one starts with random weights")
    return softmax


def _vocabulary_facts(store: TokenStore, softmax: WordSoftmax) -> dict[str, Any]:
    """The number of words of the softmax, and the share of the text that they leave out."""
    known = set(softmax.words)
    total = max(1, int(store.counts.sum()))
    unknown = sum(
        int(count)
        for word, count in zip(store.words, store.counts, strict=True)
        if word not in known
    )
    return {"vocab_size": len(known), "unknown_share": round(unknown / total, 5)}
