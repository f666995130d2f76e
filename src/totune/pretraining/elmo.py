"""Pretraining an ELMo: a language model in both directions over the characters of words."""

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
from totune.pretraining.bilm import BilmObjective
from totune.pretraining.course import Course, Stage
from totune.pretraining.presets import CONTINUED, ELMO_PRESETS, find_preset
from totune.pretraining.record import Pretrained
from totune.pretraining.session import Ready, Session, Texts
from totune.pretraining.settings import PretrainingSettings
from totune.pretraining.softmax import WordSoftmax, read_softmax
from totune.pretraining.store import Store, open_store
from totune.pretraining.tokenising import Words
from totune.pretraining.vocabulary import frequent_words
from totune.progress import Progress

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

    An interrupted call goes on from its last checkpoint. A large corpus is tokenised by several
    processes, so a script that calls this needs the usual `if __name__ == "__main__":`.

    Args:
        corpus: text files with a paragraph per line and blank lines between documents (.xz or .gz
            if packed), or `hub:NAME`.
        out: the folder to write; new, empty, or that of the same call.
        preset: the size, of `ELMO_PRESETS`.
        model: goes on from this folder; its size counts, not the preset's.
        validation: a text that is held out; if None, the last hundredth of the documents.
        clip: the largest magnitude in a memory and an output (3 in the official ones); without
            limits, which the model's configuration says, GPUs run a faster kernel.
        settings: everything else.
        progress: told how it goes.

    Raises:
        ConfigError: if settings contradict each other, or `out` holds something else.
        DataError: if the text cannot be used.
        ModelError: if the model cannot.
        RunError: if training fails, or a file cannot be written.
    """
    chosen, watcher = settings or PretrainingSettings(), progress or Progress()
    chosen.check()
    _check_choices(model, clip, chosen)
    size = find_preset(ELMO_PRESETS, preset)
    complete = chosen.fitted(
        replace(size.training, learning_rate=CONTINUED.learning_rate) if model else size.training
    )
    texts = Texts.of(corpus, validation, chosen, watcher)
    about = {
        "kind": "elmo",
        "preset": None if model else preset,
        "continued_from": model,
        "clip": clip,
        "corpus": texts.facts(),
    }
    session = Session(output_path(out), about, complete, watcher)
    exact = chosen.vocab_size is not None

    def build() -> Ready:
        torch.manual_seed(complete.seed)
        store = open_store(texts.train, texts.validation, Words(), watcher)
        if model is not None:
            encoder, tokenizer = _continued(model)
        else:
            encoder, tokenizer = _new(replace(size.options, cell_clip=clip, projection_clip=clip))
        for word in store.words:  # now a word's number is that of the store
            tokenizer.vocabulary.number(word)
        softmax = _old_softmax(model, encoder, watcher)
        if softmax is None:
            count = int(complete.vocab_size or 0)
            words = frequent_words(store, count, exact=exact, progress=watcher)
            softmax = WordSoftmax(encoder.options.projection_size, words)
        objective = BilmObjective(encoder, tokenizer, softmax)
        length = int(complete.max_length or 0)
        train, validation = texts.rows(store, length - _MARKERS)
        course = Course((Stage(train, validation, int(complete.batch_size or 0), length),))
        return Ready(objective, encoder, course, _facts(store, softmax, len(train)))

    return session.run(build)


def _check_choices(model: str | None, clip: float | None, settings: PretrainingSettings) -> None:
    faults = []
    if model and clip is not None:
        faults.append("--clip cannot go with --model, whose clips are fixed; leave one out.")
    if clip is not None and not clip > 0:
        faults.append(f"--clip {clip} must be greater than 0; leave it out for no limit.")
    if settings.short_length is not None:
        faults.append("--short-length is for bert: a BiLSTM reads one word after the other anyway.")
    length = settings.max_length
    if length is not None and not _LEAST_LENGTH <= length <= MAX_WORDS:
        faults.append(f"--max-length {length} must be from {_LEAST_LENGTH} to {MAX_WORDS} words.")
    if faults:
        raise ConfigError(faults)


def _new(options: ElmoOptions) -> tuple[ElmoEncoder, WordTokenizer]:
    """An ELMo with weights of chance, and its tokenizer."""
    vocabulary = Vocabulary()
    encoder = ElmoEncoder(options, vocabulary)
    return encoder, WordTokenizer(vocabulary, encoder.max_length)


def _continued(reference: str) -> tuple[ElmoEncoder, WordTokenizer]:
    """An ELMo that is there, and its tokenizer, which has seen no word yet."""
    loaded = load_encoder(reference)
    if not isinstance(loaded.encoder, ElmoEncoder):
        raise ModelError(
            f"{reference} is no ELMo; totune pretrain bert goes on with transformers' models."
        )
    tokenizer: Any = loaded.tokenizer
    return loaded.encoder, tokenizer


def _old_softmax(
    reference: str | None, encoder: ElmoEncoder, progress: Progress
) -> WordSoftmax | None:
    """The softmax that a model was trained with, if its folder has it."""
    if reference is None:
        return None
    softmax = read_softmax(resolve(reference).folder, encoder.options.projection_size)
    if softmax is None:
        progress.say(f"{reference} comes without a softmax: a new one starts from chance")
    return softmax


def _facts(store: Store, softmax: WordSoftmax, rows: int) -> dict[str, Any]:
    """How many words the softmax knows, and how much of the text they are not."""
    known = set(softmax.words)
    total = max(1, int(store.counts.sum()))
    unknown = sum(
        int(count)
        for word, count in zip(store.words, store.counts, strict=True)
        if word not in known
    )
    return {"vocab_size": len(known), "unknown_share": round(unknown / total, 5), "rows": rows}
