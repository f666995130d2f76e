import numpy as np
import pytest
from tests.unit.baselines.samples import NEW_TAGGED, TAGGED

from totune.baselines.base import BASELINES
from totune.data.examples import Examples
from totune.tasks.tagging import Tagging

TASK = Tagging.from_examples(TAGGED)


def tags(train: Examples, new: Examples) -> list[tuple[str, ...]]:
    fitted = BASELINES.create("most-frequent-tag").fit(
        train, TASK.targets(train.labels), TASK, 0, None
    )
    counts = np.array([len(row) for row in new.words])
    return TASK.decode(TASK.predictions(fitted.outputs(new), counts))


def rows(*sentences: str) -> Examples:
    """Sentences of "word/tag"."""
    pairs = [[part.split("/") for part in sentence.split()] for sentence in sentences]
    words = tuple(tuple(word for word, _ in row) for row in pairs)
    labels = tuple(tuple(tag for _, tag in row) for row in pairs)
    return Examples(tuple(" ".join(row) for row in words), labels, words=words)


def test_a_word_gets_its_most_frequent_tag_and_a_new_one_that_of_all():
    train = rows("Rome/B-LOC a/O b/O", "Rome/B-PER c/O", "Rome/B-LOC")
    assert tags(train, rows("in/O Rome/O rome/O")) == [("O", "B-LOC", "O")]


def test_of_tags_as_frequent_as_each_other_the_first_class_wins():
    train = rows("Rome/B-PER", "Rome/B-LOC")
    assert TASK.labels.index("B-LOC") < TASK.labels.index("B-PER")
    assert tags(train, rows("Rome/O new/O")) == [("B-LOC", "B-LOC")]
    assert tags(train.take([1, 0]), rows("Rome/O new/O")) == [("B-LOC", "B-LOC")]


def test_tags_that_are_no_classes_are_not_learnt():
    train = rows("x/B-ORG x/B-ORG x/O")
    assert tags(train, rows("x/O")) == [("O",)]


def test_it_tags_alone_and_tells_its_size():
    assert BASELINES.get("most-frequent-tag").tasks == ("tagging",)
    assert BASELINES.get("majority").tasks == ("classification", "multi-label", "regression")
    fitted = BASELINES.create("most-frequent-tag").fit(
        TAGGED, TASK.targets(TAGGED.labels), TASK, 0, None
    )
    assert fitted.parameters == len({word for row in TAGGED.words for word in row}) + 1
    assert fitted.outputs(NEW_TAGGED).shape == (sum(map(len, NEW_TAGGED.words)), TASK.outputs)


def test_rows_without_words_are_refused():
    with pytest.raises(AssertionError, match="tagged words"):
        BASELINES.create("most-frequent-tag").fit(
            Examples(("a",), ("b",)), np.zeros((1, 1), dtype=np.int16), TASK, 0, None
        )
