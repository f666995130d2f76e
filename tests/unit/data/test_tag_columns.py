import json

import pytest

from totune.data.columns import find_columns
from totune.data.examples import Columns
from totune.data.tables import Table, table_of
from totune.errors import DataError

WORDS = [f"the {word} in Paris".split() for word in ("man", "woman", "house", "dog")] * 5
NER = [["O", "O", "O", "B-LOC"]] * 20
POS = [["DT", "NN", "IN", "NNP"]] * 20


def table(**columns: list[object]) -> Table:
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    return table_of(rows, "a.jsonl", range(1, len(rows) + 1), "line")


def found(given: Table, **named: str) -> Columns:
    return find_columns(given, **named)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "text", "label"),
    [
        (("tokens", "tags"), "tokens", "tags"),
        (("pos_tags", "tokens", "chunk_tags", "ner_tags"), "tokens", "ner_tags"),
        (("upos", "words", "labels"), "words", "labels"),
        (("pos", "words"), "words", "pos"),
    ],
)
def test_words_and_tags_are_found(names: tuple[str, ...], text: str, label: str) -> None:
    lists = {name: WORDS if name == text else NER if name == label else POS for name in names}
    assert found(table(id=list(range(20)), **lists)) == Columns(text, label, task="tagging")


def test_what_else_could_be_tags_is_said() -> None:
    columns, notes = find_columns(table(tokens=WORDS, pos=POS, tags=NER, doc_id=["a"] * 20))
    assert columns == Columns("tokens", "tags", task="tagging", document="doc_id")
    assert notes == [
        "Words are read from 'tokens', tags from 'tags', documents from 'doc_id'; the task is "
        "tagging.",
        "Other columns that could hold tags: 'pos'; name one with `label`.",
    ]


def test_names_are_heeded() -> None:
    given = table(a=WORDS, tokens=WORDS, pos=POS, tags=NER)
    assert found(given, label="pos") == Columns("tokens", "pos", task="tagging")
    assert found(given, text="a") == Columns("a", "tags", task="tagging")
    assert found(given, text="tags", label="pos").text == "tags"


def test_numbers_can_be_tags() -> None:
    assert found(table(tokens=WORDS, ner_tags=[[0, 0, 0, 5]] * 20)).label == "ner_tags"


def test_a_labelled_text_with_lists_beside_it_is_classified() -> None:
    texts = [f"the sentence about subject number {i}" for i in range(20)]
    lists = table(text=texts, label=["x", "y"] * 10, tokens=WORDS, pos=POS)
    assert found(lists) == Columns("text", "label")
    assert found(lists, task="tagging") == Columns("tokens", "pos", task="tagging")
    assert found(lists, label="pos") == Columns("tokens", "pos", task="tagging")


def test_texts_without_a_label_are_no_classification() -> None:
    texts = [" ".join(words) for words in WORDS]
    source = ["reuters", "blog"] * 10
    assert found(table(text=texts, tokens=WORDS, tags=NER, source=source)).task == "tagging"


def test_lists_of_one_item_are_not_taken_for_sentences() -> None:
    texts = [f"the sentence about subject number {i}" for i in range(20)]
    lists = table(text=texts, kind=["x", "y"] * 10, authors=[["a"]] * 20, topics=[["b"]] * 20)
    assert found(lists) == Columns("text", "kind")


@pytest.mark.parametrize(
    ("columns", "named", "message"),
    [
        (
            {"text": ["some text here"] * 20, "label": ["x", "y"] * 10},
            {"task": "tagging"},
            "no column of word lists, which tagging needs.*Its columns: text, label",
        ),
        (
            {"text": ["a b c d"] * 20, "tags": NER},
            {"task": "tagging", "text": "text"},
            r"column 'text' \(`text`\) holds no lists of words",
        ),
        (
            {"tokens": WORDS, "tags": ["x"] * 20},
            {"task": "tagging", "label": "tags"},
            r"column 'tags' \(`label`\) holds no lists of tags",
        ),
        (
            {"tokens": WORDS, "tags": [["O"]] * 20},
            {"task": "tagging"},
            "no columns of words and of as many tags. Its columns of lists: tokens, tags",
        ),
        (
            {"tokens": WORDS, "tags": [["O"]] * 20},
            {},
            r"no column that looks like text.*\(tokens, tags\) are read with `task='tagging'`",
        ),
        (
            {"tokens": WORDS, "tags": NER, "other": ["x"] * 20},
            {"task": "tagging", "pair": "other"},
            "`pair` cannot be used",
        ),
        (
            {"text": ["some text here"] * 20, "tags": NER},
            {"text": "text", "label": "tags"},
            "column 'tags' holds lists, which are no labels for classification",
        ),
    ],
)
def test_what_does_not_fit_is_explained(
    columns: dict[str, list[object]], named: dict[str, str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        found(table(**columns), **named)


def test_a_csv_may_hold_json_lists() -> None:
    cells = {"tokens": [json.dumps(w) for w in WORDS], "tags": [json.dumps(t) for t in NER]}
    assert found(Table("a.csv", dict(cells), range(20))).task == "tagging"
