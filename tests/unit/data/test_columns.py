from pathlib import Path

import pytest

from totune.data.columns import find_columns, find_texts
from totune.data.examples import Columns
from totune.data.readers import read_table
from totune.data.tables import Table
from totune.errors import DataError

SENTENCE = "a sentence of several words, number"


def table(header: bool = True, **columns: list[str | None]) -> Table:
    count = len(next(iter(columns.values())))
    return Table("a.csv", columns, range(2, count + 2), header=header)


def sentences(word: str, count: int = 20) -> list[str | None]:
    return [f"{SENTENCE} {word} {i}" for i in range(count)]


def cycle(values: str, count: int = 20) -> list[str | None]:
    return [values[i % len(values)] for i in range(count)]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "text", "pair", "label", "task"),
    [
        ("mrpc/train.tsv.gz", "#1 String", "#2 String", "Quality", "classification"),
        ("sick/train.txt.gz", "sentence_A", "sentence_B", "entailment_judgment", "classification"),
        ("stsb/train.tsv.gz", "sentence1", "sentence2", "score", "regression"),
        ("disaster_tweets/train.csv.gz", "text", None, "target", "classification"),
        ("cf_airline/train.csv.gz", "text", None, "airline_sentiment", "classification"),
        ("cf_disasters/train.csv.gz", "text", None, "choose_one", "classification"),
        ("cf_global_warming/train.csv.gz", "tweet", None, "existence", "classification"),
        ("cf_primary_emotions/train.csv.gz", "sentence", None, "emotion", "classification"),
        ("cf_text_emotion/train.csv.gz", "content", None, "sentiment", "classification"),
        ("cf_political_bias/train.csv.gz", "text", None, "bias", "classification"),
        pytest.param(
            *("sst2/train.tsv.gz", "sentence", None, "label", "classification"),
            marks=pytest.mark.slow,  # 67,349 rows
        ),
        ("rte/train.tsv.gz", "sentence1", "sentence2", "label", "classification"),
        ("mnli/train.tsv.gz", "sentence1", "sentence2", "gold_label", "classification"),
        ("qqp/train.tsv.gz", "question1", "question2", "is_duplicate", "classification"),
        ("qqp/dev.tsv.gz", "column2", "column3", "column1", "classification"),
        ("qnli/dev.tsv.gz", "question", "sentence", "label", "classification"),
        ("news_aggregator/train.txt.gz", "column2", None, "column1", "classification"),
        ("news_aggregator/head6366.csv.gz", "TITLE", None, "CATEGORY", "classification"),
        ("cola/train.tsv.gz", "column4", None, "column2", "classification"),
        ("yahoo_answers_2class/train.csv.gz", "column1", None, "column2", "classification"),
    ],
)
def test_real_files(
    shared: Path, name: str, text: str, pair: str | None, label: str, task: str
) -> None:
    columns, notes = find_columns(read_table(shared / "data" / name))
    assert columns == Columns(text=text, pair=pair, label=label, task=task)  # type: ignore[arg-type]
    assert all(repr(column) in notes[0] for column in (text, label, pair) if column)


@pytest.mark.shared
def test_a_named_score_makes_a_regression(shared: Path) -> None:
    sick = read_table(shared / "data" / "sick" / "train.txt.gz")
    columns, _ = find_columns(sick, label="relatedness_score")
    assert columns == Columns("sentence_A", "relatedness_score", "sentence_B", "regression")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("premise", "hypothesis"),
        ("text_a", "text_b"),
        ("sentence1", "sentence2"),
        ("question", "answer"),
        ("leftText", "rightText"),
    ],
)
def test_names_of_pairs(first: str, second: str) -> None:
    found, _ = find_columns(
        table(**{second: sentences("y"), "gold": cycle("ab"), first: sentences("x")})
    )
    assert (found.text, found.pair, found.label) == (first, second, "gold")


def test_a_named_text_is_read_alone() -> None:
    both = table(premise=sentences("x"), hypothesis=sentences("y"), label=cycle("ab"))
    assert find_columns(both, text="premise")[0].pair is None
    assert find_columns(both, text="hypothesis", pair="premise")[0].pair == "premise"


def test_a_named_pair_finds_its_partner() -> None:
    three = table(
        text=sentences("z"), sentence1=sentences("x"), sentence2=sentences("y"), label=cycle("ab")
    )
    assert find_columns(three, pair="sentence2")[0].text == "sentence1"


def test_title_beside_text_is_said() -> None:
    columns, notes = find_columns(
        table(title=sentences("t"), text=sentences("x"), label=cycle("ab"))
    )
    assert columns.text == "text"
    assert "Other columns that could hold texts: 'title'; name one with `text`." in notes


def test_unspaced_writing_is_text() -> None:
    chinese: list[str | None] = [
        f"这部电影非常好看我和我的朋友都很喜欢它的故事和音乐{i}" for i in range(20)
    ]
    assert find_columns(table(a=chinese, b=cycle("xy")))[0] == Columns("a", "b")


def test_short_texts_are_found_by_name() -> None:
    found, _ = find_columns(table(label=cycle("ab", 4), text=["good", "bad", "fine", "awful"]))
    assert (found.text, found.label) == ("text", "label")


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("label", "lable", r"no column 'lable' \(`label`\)\. Did you mean 'label'\?"),
        ("text", "body", r"no column 'body' \(`text`\)\. Its columns: label, text"),
        ("pair", "tex", r"Did you mean 'text'\? Its columns: label, text"),
    ],
)
def test_a_missing_column_lists_those_there_are(option: str, name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_columns(table(text=sentences("x"), label=cycle("ab")), **{option: name})  # type: ignore[arg-type]


def test_a_column_has_one_purpose() -> None:
    with pytest.raises(DataError, match="'text' is named for two purposes"):
        find_columns(table(text=sentences("x"), label=cycle("ab")), text="text", label="text")


def test_no_text_column_is_an_error() -> None:
    with pytest.raises(DataError, match=r"looks like text.*`text`.*columns: id, label"):
        find_columns(table(id=cycle("123"), label=cycle("ab")))


def test_no_label_column_is_an_error() -> None:
    with pytest.raises(DataError, match=r"looks like labels.*`label`.*columns: id, text"):
        find_columns(table(id=[str(i) for i in range(20)], text=sentences("x")))


def test_a_single_column_is_an_error() -> None:
    with pytest.raises(DataError, match="one column only"):
        find_columns(table(text=sentences("x")))


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["0", "1"], "classification"),
        (["1.0", "0.0"], "classification"),
        (["1", "2", "3", "4", "5"], "classification"),
        (["neg", "pos"], "classification"),
        (["0.5", "1.0"], "regression"),
        ([str(i) for i in range(40)], "regression"),
        ([*map(str, range(40)), "n/a"], "regression"),
        (["1", "2", "unclear"], "classification"),
    ],
)
def test_the_task_follows_from_the_labels(values: list[str], task: str) -> None:
    rows = len(values) * 3
    columns, _ = find_columns(table(text=sentences("x", rows), label=[*values] * 3))
    assert columns.task == task
    columns, _ = find_columns(
        table(text=sentences("x", rows), label=[*values] * 3), task="classification"
    )
    assert columns.task == "classification"


@pytest.mark.parametrize(
    ("columns", "named", "found"),
    [
        (["review", "label"], {}, ("review", None)),
        (["premise", "hypothesis"], {}, ("premise", "hypothesis")),
        (["anything"], {}, ("anything", None)),
        (["premise", "hypothesis"], {"text": "hypothesis"}, ("hypothesis", None)),
        (["one", "two"], {"text": "two", "pair": "one"}, ("two", "one")),
    ],
)
def test_texts_alone(
    columns: list[str], named: dict[str, str], found: tuple[str, str | None]
) -> None:
    cells = {name: cycle("ab") if name == "label" else sentences(name) for name in columns}
    assert find_texts(table(**cells), **named) == found


def test_texts_alone_need_one_that_looks_like_text() -> None:
    with pytest.raises(DataError, match="no column that looks like text"):
        find_texts(table(a=cycle("12"), b=cycle("xy")))


def test_a_column_can_be_named_by_its_number() -> None:
    plain = table(header=False, column1=cycle("ab"), column2=sentences("x"), column3=cycle("01"))
    columns, _ = find_columns(plain, text="2", label="3")
    assert (columns.text, columns.label) == ("column2", "column3")
    assert find_texts(plain, "2") == ("column2", None)


def test_a_column_that_is_called_by_a_number_comes_first() -> None:
    named = table(**{"2": sentences("x"), "1": cycle("ab")})
    columns, _ = find_columns(named, text="2", label="1")
    assert (columns.text, columns.label) == ("2", "1")


@pytest.mark.parametrize("number", ["0", "3"])
def test_a_number_beyond_the_columns_is_refused(number: str) -> None:
    two = table(verdict=cycle("ab"), review=sentences("x"))
    with pytest.raises(
        DataError, match=rf"no column {number} \(`text`\): it has 2 columns.*review"
    ):
        find_columns(two, text=number)
