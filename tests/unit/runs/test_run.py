"""What the runs of a study share."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.recorder import Recorder
from tests.tiny_runs import short, tiny_model, tiny_task, tiny_tokenizer

from totune.data.examples import Examples
from totune.inputs.encoded import EncodingOptions
from totune.runs.context import Context
from totune.runs.run import plan_until


@pytest.fixture
def pairs_context(recorder: Recorder) -> Context:
    """Pairs of which one has one long text, and one has two, together too long."""
    long = "w1 w2 w3 w4 w5 w6 w7"
    data = Examples((long, "w1 w2 w3 w4"), ("a", "b"), (long, "w1 w2"))
    shared: dict[str, Any] = {
        "dataset": SimpleNamespace(splits=lambda: {"train": data}),
        "task": tiny_task("pairs", data),
        "pretrained": SimpleNamespace(
            tokenizer=tiny_tokenizer(), encoder=SimpleNamespace(max_length=40)
        ),
        "max_length": 8,
        "progress": recorder,
    }
    others = dict.fromkeys(("cache", "settings", "precision", "devices"))
    return Context(**cast(Any, shared | others))


def test_what_is_cut_is_counted_in_rows_or_in_texts(
    pairs_context: Context, recorder: Recorder
) -> None:
    pairs_context.split("train", EncodingOptions("separate"))
    pairs_context.split("train", EncodingOptions("joint"))
    assert [warned.partition(" are longer")[0] for warned in recorder.warned] == [
        "2 of 4 train texts (50.0%)",
        "2 of 2 train rows (100.0%)",
    ]
    assert pairs_context.truncated() == {"train": 2}
    assert recorder.warned[0].endswith("`max_length` raises the limit.")


def test_a_limit_that_is_the_encoder_s_own_is_told_as_such(
    pairs_context: Context, recorder: Recorder
) -> None:
    pairs_context.loaded.encoder.max_length = pairs_context.max_length
    pairs_context.split("train", EncodingOptions("joint"))
    assert recorder.warned[0].endswith("were cut; this encoder reads no more.")


def test_many_cut_texts_are_a_caution_with_a_remedy(pairs_context: Context) -> None:
    assert pairs_context.cautions() == []  # nothing was tokenised
    pairs_context.split("train", EncodingOptions("joint"))
    pairs_context.split("train", EncodingOptions("separate"))
    assert pairs_context.cautions() == [
        "Many texts are longer than 8 word pieces (train 100.0%), and what comes after these is "
        "not read: raise `max_length` (this encoder reads 40)."
    ]
    pairs_context.loaded.encoder.max_length = pairs_context.max_length
    assert "this encoder reads no more" in pairs_context.cautions()[0]


def test_many_unknown_pieces_are_a_caution(pairs_context: Context, recorder: Recorder) -> None:
    texts = ("w1 w2 w3 w4", "w1 w2 w3 ᚠ", "w1 w2")
    pairs_context.dataset.splits = lambda: {"dev": Examples(texts, ("a", "b", "a"))}  # type: ignore[method-assign]
    pairs_context.split("dev", EncodingOptions("joint"))
    assert pairs_context.cautions() == [
        "Many word pieces are not in the encoder's vocabulary (dev 10.0%), so it cannot tell them "
        "apart: name an encoder for the language and script of these texts with `model`."
    ]
    assert recorder.warned[0].startswith("10.0% of the word pieces of dev are not in the encoder's")


def test_the_largest_count_of_what_was_cut_is_kept(pairs_context: Context) -> None:
    pairs_context.max_length = 9
    pairs_context.split("train", EncodingOptions("joint"))
    pairs_context.max_length = 10
    pairs_context.split("train", EncodingOptions("separate"))
    assert pairs_context.truncated() == {"train": 1}


def test_a_split_is_tokenised_once_for_what_concerns_it(pairs_context: Context) -> None:
    one = pairs_context.split("train", EncodingOptions("joint", document_context=True))
    assert pairs_context.split("train", EncodingOptions("joint", document_context=False)) is one
    assert pairs_context.split("train", EncodingOptions("separate")) is not one


def test_what_is_kept_ends_with_the_phase_of_the_best_epoch() -> None:
    _, plan = tiny_model(short("gradual-unfreezing"), "bert", 3)
    assert plan_until(plan, "head") == plan[:1]
    assert plan_until(plan, "layer 3") == plan[:3]
    assert plan_until(plan, "all") == plan
