"""Tagging: codes and classes, unseen tags, metrics, schemes."""

import itertools
import json

import numpy as np
import pytest
import torch

from totune.data.examples import Examples
from totune.data.tagging import schemes
from totune.errors import DataError
from totune.metrics import PADDING
from totune.tasks.base import UNKNOWN, task_from_json
from totune.tasks.tagging import Tagging

ENTITIES = (("B-PER", "I-PER", "O"), ("O", "B-LOC"), ("B-PER",))
PARTS_OF_SPEECH = (("DT", "NN", "VB"), ("NN",))


def tagged(*sentences: tuple[str, ...]) -> Examples:
    words = tuple(tuple("w" for _ in tags) for tags in sentences)
    return Examples(tuple(" ".join(row) for row in words), sentences, words=words)


SPANS = Tagging.from_examples(tagged(*ENTITIES))
PLAIN = Tagging.from_examples(tagged(*PARTS_OF_SPEECH))
SCHEMES = {
    scheme: Tagging.from_examples(
        tagged(*(schemes.convert(tags, scheme) for tags in (*ENTITIES, ("B-LOC", "B-LOC"))))
    )
    for scheme in schemes.SCHEMES
}


def outputs(task: Tagging, *tags: str) -> np.ndarray:
    """Outputs whose largest is that of each tag."""
    return np.eye(task.outputs)[[task.labels.index(tag) for tag in tags]]


def test_the_classes_are_all_tags_of_a_scheme_for_the_types_of_training():
    assert SPANS == Tagging(("O", "B-LOC", "B-PER", "I-LOC", "I-PER"), "iob2")
    assert SPANS.types == ("LOC", "PER")
    assert SPANS.per_word
    assert (PLAIN.labels, PLAIN.scheme, PLAIN.types) == (("DT", "NN", "VB"), "", ())
    assert {name: (task.scheme, task.outputs) for name, task in SCHEMES.items()} == {
        "iob1": ("iob1", 5),
        "iob2": ("iob2", 5),
        "iobes": ("iobes", 9),
    }


def test_one_type_without_a_name_is_a_type():
    task = Tagging.from_examples(tagged(("B", "I", "O")))
    assert task == Tagging(("O", "B", "I"), "iob2")
    targets = task.targets([("B", "I", "O")])
    assert task.decode(targets) == [("B", "I", "O")]
    assert task.evaluate(targets, targets)["f1:_"] == 1.0


@pytest.mark.parametrize("task", [SPANS, PLAIN], ids=["spans", "plain"])
def test_a_task_survives_json(task: Tagging):
    again = task_from_json(json.loads(json.dumps(task.to_json())))
    assert again == task
    assert hash(again) == hash(task)


def test_targets_are_codes_of_spans():
    targets = SPANS.targets(ENTITIES)
    assert targets.dtype == np.int16
    assert targets.tolist() == [[5, 6, 0], [0, 1, PADDING], [5, PADDING, PADDING]]
    assert SPANS.decode(targets) == list(ENTITIES)
    assert [SPANS.labels[i] for i in SPANS.flat(targets)] == [t for row in ENTITIES for t in row]


def test_targets_without_scheme_are_class_indices():
    targets = PLAIN.targets(PARTS_OF_SPEECH)
    assert targets.tolist() == [[0, 1, 2], [1, PADDING, PADDING]]
    assert PLAIN.flat(targets).tolist() == [0, 1, 2, 1]
    assert PLAIN.decode(targets) == list(PARTS_OF_SPEECH)


def test_unseen_types_have_codes_of_their_own_and_no_class():
    targets = SPANS.targets([("B-ORG", "B-MISC", "I-PER", "S-PER")])
    assert targets.tolist() == [[13, 9, 6, 8]]  # MISC is type 2, ORG type 3
    flat = SPANS.flat(targets)
    assert flat.tolist() == [UNKNOWN, UNKNOWN, 4, UNKNOWN]
    assert SPANS.known(flat).tolist() == [False, False, True, False]
    found = SPANS.predictions(outputs(SPANS, "O", "O", "I-PER", "B-PER"), np.array([4]))
    scores = SPANS.evaluate(targets, found)
    assert scores["span-recall"] == pytest.approx(2 / 4)
    assert scores["token-accuracy"] == 1 / 4
    assert [name for name in scores if ":" in name] == ["f1:LOC", "f1:PER"]


def test_unseen_tags_without_scheme_are_always_wrong():
    targets = PLAIN.targets([("NN", "XX", "AB")])
    assert targets.tolist() == [[1, 4, 3]]
    assert PLAIN.flat(targets).tolist() == [1, UNKNOWN, UNKNOWN]
    found = PLAIN.predictions(outputs(PLAIN, "NN", "VB", "VB"), np.array([3]))
    assert PLAIN.evaluate(targets, found)["token-accuracy"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("tag", ["PER", "X-PER", "BPER", "o"])
def test_a_tag_outside_the_scheme_is_a_fault_of_the_data(tag: str):
    with pytest.raises(DataError, match=f"'{tag}' is neither O nor begins with"):
        SPANS.targets([("O", tag)])


def test_too_many_tags_are_refused():
    with pytest.raises(DataError, match="too many different tags"):
        PLAIN.targets([tuple(str(number) for number in range(2**15))])


def test_predictions_are_padded_as_targets_are():
    counts = np.array([len(row) for row in ENTITIES])
    best = outputs(SPANS, *(tag for row in ENTITIES for tag in row))
    np.testing.assert_array_equal(SPANS.predictions(best, counts), SPANS.targets(ENTITIES))
    assert SPANS.scores(best) is None
    assert SPANS.targets([]).shape == (0, 0)


def test_an_unknown_tag_has_no_loss():
    flat = torch.from_numpy(SPANS.flat(SPANS.targets([("B-ORG", "O")])))
    losses = SPANS.losses(torch.zeros(2, 5), flat)
    assert losses.tolist() == [0.0, pytest.approx(np.log(5))]


@pytest.mark.parametrize("task", [SPANS, PLAIN], ids=["spans", "plain"])
def test_metrics_are_those_named(task: Tagging):
    targets = task.targets(ENTITIES if task.scheme else PARTS_OF_SPEECH)
    found = task.evaluate(targets, targets)
    assert tuple(name for name in found if ":" not in name) == task.metrics
    assert set(found.values()) == {1.0}


def test_predicting_no_span_is_degenerate():
    targets = SPANS.targets(ENTITIES)
    nothing = np.minimum(targets, 0)
    assert SPANS.degenerate(targets, nothing) == "predicts no span"
    assert SPANS.degenerate(targets, targets) is None
    assert SPANS.degenerate(nothing, nothing) is None


def test_predicting_one_part_of_speech_is_degenerate():
    targets = PLAIN.targets(PARTS_OF_SPEECH)
    constant = np.where(targets == PADDING, PADDING, 1)
    assert PLAIN.degenerate(targets, constant) == "predicts only 'NN'"
    assert PLAIN.degenerate(targets, targets) is None
    assert PLAIN.degenerate(constant, constant) is None


@pytest.mark.parametrize("scheme", schemes.SCHEMES)
def test_what_the_scheme_allows_is_what_breaks_nothing(scheme: schemes.Scheme):
    task = SCHEMES[scheme]
    allowed = task.allowed_transitions()
    assert allowed is not None
    assert allowed.dtype == np.bool_
    start, end = task.outputs, task.outputs + 1
    assert allowed.shape == (end + 1, end + 1)
    assert not allowed[:, start].any()
    assert not allowed[end].any()
    for tags in itertools.product(task.labels, repeat=3):
        path = [start, *(task.labels.index(tag) for tag in tags), end]
        legal = all(allowed[one, other] for one, other in itertools.pairwise(path))
        assert legal == (not schemes.faults(tags, scheme)), tags
        assert not legal or schemes.convert(tags, scheme) == tags


def test_without_scheme_every_tag_may_follow():
    assert PLAIN.allowed_transitions() is None
