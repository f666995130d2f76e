import pytest

from totune.data.audit import audit, count_classes
from totune.data.examples import Examples, Label, SplitName, TaskName
from totune.errors import DataError


def split(*rows: tuple[str, Label]) -> Examples:
    return Examples(tuple(text for text, _ in rows), tuple(label for _, label in rows))


def many(label: str, count: int = 6) -> list[tuple[str, Label]]:
    return [(f"{label} {i}", label) for i in range(count)]


def warnings(
    train: Examples, dev: Examples, test: Examples, task: TaskName = "classification"
) -> list[str]:
    parts: dict[SplitName, Examples] = {"train": train, "dev": dev, "test": test}
    return audit(parts, task, "a.csv")


def test_clean_data_has_no_warnings() -> None:
    train = split(*many("x"), *many("y"))
    assert warnings(train, split(("new", "x")), split(("newer", "y"))) == []


def test_texts_across_splits_are_counted() -> None:
    train = split(*many("x"), *many("y"))
    dev = split((" X  0", "x"), ("new", "y"))
    test = split(("y 1", "y"), ("y 2", "y"), ("NEW", "y"), ("newer", "y"))
    assert warnings(train, dev, test) == [
        "In 1 dev row (50.0%) the text is also in train: dev scores may be too high.",
        "In 2 test rows (50.0%) the text is also in train: test scores may be too high.",
        "In 1 test row (25.0%) the text is also in dev: test scores may be too high.",
    ]


def test_pairs_are_repeated_only_together() -> None:
    train = Examples(("a", "b"), ("x", "y"), pairs=("c", "d"))
    dev = Examples(("a",), ("x",), pairs=("d",))
    assert not any("also in" in warning for warning in warnings(train, dev, dev.take([])))


def test_contradicting_labels_are_counted() -> None:
    train = split(*many("x"), *many("y"), ("same", "x"), ("Same", "y"), ("x 0", "y"))
    dev, test = split(("one", "x")), split(("same", "x"))
    assert "Labels contradict each other for 2 texts (in 5 rows)." in warnings(train, dev, test)


def test_labels_that_train_lacks_are_named() -> None:
    train = split(*many("x"), *many("y"))
    test = split(("a", "z"), ("b", "z"), ("c", "w"), ("d", "x"))
    assert warnings(train, split(("one", "x")), test) == [
        "Train lacks the labels of 3 test rows ('w': 1, 'z': 2); no model can predict them."
    ]


def test_rare_classes_are_named() -> None:
    train = split(*many("x"), *many("y", 1))
    assert warnings(train, split(("one", "x")), split(("two", "x"))) == [
        "1 class has fewer than 5 train rows ('y': 1)."
    ]


def test_a_class_that_is_rare_beside_another_is_counted_in_every_split() -> None:
    train = split(*many("x", 300), *many("y", 12))
    assert warnings(train, split(("one", "x"), ("more", "y")), split(("two", "x"))) == [
        "1 class is rare, with fewer than 50 train rows and at most 10% of the 300 of 'x' (train "
        "'y': 12; dev 'y': 1; test 'y': 0): what is said of it rests on few rows."
    ]


def test_classes_are_counted_and_abridged() -> None:
    train = split(*many("x", 3), *many("y"))
    assert count_classes(train) == f"2 classes (train rows): 'y' {len(many('y'))}, 'x' 3."
    labels = [f"c{number:02}" for number in range(14)]
    train = split(*(row for label in labels for row in many(label, 2)), ("more", "c13"))
    assert count_classes(train) == (
        "14 classes (train rows): 'c13' 3, 'c00' 2, 'c01' 2, 'c02' 2, 'c03' 2, 'c04' 2, 'c05' 2, "
        "'c06' 2, 'c07' 2, 'c08' 2 and 4 more of 2 rows each."
    )


def test_one_class_is_an_error() -> None:
    with pytest.raises(DataError, match="all 6 usable train rows have one class, 'x'"):
        warnings(split(*many("x")), split(("a", "x")), split(("b", "y")))


def test_one_score_is_an_error() -> None:
    train = split(("a", 1.0), ("b", 1.0))
    with pytest.raises(DataError, match=r"all 2 usable train rows have one score, 1\.0"):
        warnings(train, train, train, "regression")


def test_a_class_per_row_is_an_error() -> None:
    train = split(("a", "p"), ("b", "q"), ("c", "r"))
    with pytest.raises(DataError, match="no class repeats"):
        warnings(train, train, train)


def tagged(*rows: tuple[str, str]) -> Examples:
    words = tuple(tuple(text.split()) for text, _ in rows)
    labels = tuple(tuple(tags.split()) for _, tags in rows)
    return Examples(tuple(text for text, _ in rows), labels, words=words)


def test_short_sentences_may_repeat_and_tags_differ() -> None:
    train = tagged(("Rome 1996", "B-LOC O"), ("rome 1996", "O O"))
    assert warnings(train, train, train, "tagging") == []


def test_long_sentences_across_splits_are_counted() -> None:
    tags = "B-LOC O O O O O"
    train = tagged(("Rome is not a small city", tags))
    dev = tagged(("ROME is not a small city", tags), ("Rome 1996", "B-LOC O"))
    test = tagged(("Rome is a rather small city", tags), ("Rome 1996", "B-LOC O"))
    assert warnings(train, dev, test, "tagging") == [
        "Also in train: 1 dev sentence of 6 or more words (100.0% of those); dev scores may be too "
        "high."
    ]


def test_tags_that_train_lacks_are_counted() -> None:
    train = tagged(("Rome 1996", "B-LOC O"))
    test = tagged(("Rome Smith Jones", "B-LOC B-PER I-PER"), ("Smith", "B-PER"))
    assert warnings(train, train, test, "tagging") == [
        "Train lacks the tags of 3 test words ('B-PER': 2, 'I-PER': 1); no model can predict them."
    ]


def test_one_tag_is_an_error() -> None:
    train = tagged(("Rome 1996", "O O"), ("Rome", "O"))
    with pytest.raises(DataError, match="all 2 usable train rows have one tag, 'O'"):
        warnings(train, train, train, "tagging")


def test_a_split_without_spans_is_told() -> None:
    train = Examples(("a b", "c"), (("O", "B-X"), ("O",)), words=(("a", "b"), ("c",)))
    spanless = train.take([1])
    assert warnings(train, spanless, train.take([0]), "tagging") == [
        "Every dev word is tagged 'O': dev scores cannot tell models apart."
    ]
