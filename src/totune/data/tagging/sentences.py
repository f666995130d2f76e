"""Sentences whose words are tagged: from tables, files or lists to examples, in one tag scheme.

Of labelled data, rows that cannot be used are left out and remarked. Of data to predict none may go
missing; tags are welcome there, not needed.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from totune.data.columns import as_named, require
from totune.data.conll import is_conll, is_words_only, read_conll
from totune.data.examples import Columns, Examples, Label
from totune.data.extraction import (
    clean_text,
    gather,
    left_out,
    nothing_left,
    number_documents,
    read_labels,
    stand_together,
)
from totune.data.files import read_lines, table_suffix
from totune.data.readers import read_table
from totune.data.tables import Remarks, SourceTable, WordList, as_cell, read_words
from totune.data.tagging.columns import NamedColumns
from totune.data.tagging.schemes import SCHEMES, Scheme, convert, detect, faults, is_tag
from totune.errors import DataError
from totune.text import counted, listed

BLANK_WORD = "_"  # CoNLL's mark of an empty field
_FAULT = {"iob1": "B-PER after O", "iob2": "I-PER after O", "iobes": "B-PER before O"}


def extract_tagged(table: SourceTable, columns: Columns, remarks: Remarks) -> Examples:
    """The sentences of `table` that have words and tags, tags as written.

    Args:
        table: the rows.
        columns: of words and tags.
        remarks: is told what was left out or changed, with places.

    Raises:
        DataError: a column is missing or holds no lists, a row has more words or fewer than tags,
            or no row is usable.
    """
    assert columns.label is not None
    cells = require(table, columns.text, "text")
    sentences = [read_words(cell) for cell in cells]
    tags = read_labels(require(table, columns.label, "label"), "tagging")
    if all(own is None for own in tags):
        raise DataError(
            f"{table.source}: column {columns.label!r} holds no lists of tags. Name another with "
            "`label`."
        )
    check_lengths(table, columns, sentences, tags)
    broken = [at for at, words in enumerate(sentences) if words is None and cells[at]]
    empty = [at for at, words in enumerate(sentences) if not words and at not in set(broken)]
    untagged = [at for at, words in enumerate(sentences) if words and tags[at] is None]
    dropped = {*broken, *empty, *untagged}
    kept = [at for at in range(len(table)) if at not in dropped]
    blank = [at for at in kept if not all(word.strip() for word in sentences[at] or ())]
    left = Remarks()
    left.notes += left_out(table, empty, f"sentence without words in {columns.text!r}")
    left.warnings += [
        *left_out(table, broken, f"row without a list of words in {columns.text!r}"),
        *left_out(table, untagged, f"sentence without usable {columns.label!r}"),
        *left_out(table, blank, "sentence with an empty word", f"read as {BLANK_WORD!r}"),
    ]
    if not kept:
        raise nothing_left(table, left)
    remarks.add(left)
    whole = worded_examples([words or () for words in sentences], table.rows)
    documents = table.columns.get(columns.document or "")
    labelled = replace(
        whole,
        labels=tuple(own or () for own in tags),
        documents=None if documents is None else number_documents(documents),
    )
    return gather(labelled.take(kept))


def worded_examples(sentences: Sequence[WordList], rows: Sequence[int]) -> Examples:
    """Examples of sentences without tags; an empty word becomes `BLANK_WORD`."""
    words = tuple(tuple(_clean_word(word) for word in sentence) for sentence in sentences)
    return Examples(tuple(map(" ".join, words)), rows=tuple(rows), words=words)


def check_lengths(
    table: SourceTable,
    columns: Columns,
    sentences: Sequence[WordList | None],
    tags: Sequence[Label | None],
) -> None:
    """Raises `DataError` if a row has more words or fewer than tags."""
    lengths = [
        (at, len(words), len(own))
        for at, (words, own) in enumerate(zip(sentences, tags, strict=True))
        if words is not None and isinstance(own, tuple)
    ]
    wrong = [(at, words, own) for at, words, own in lengths if words != own]
    if wrong:
        at, words, own = wrong[0]
        more = f" ({counted(len(wrong) - 1, 'row')} more like it)" if len(wrong) > 1 else ""
        raise DataError(
            f"{table.source} {table.unit} {table.rows[at]:,} has {counted(words, 'word')} in "
            f"{columns.text!r} but {counted(own, 'tag')} in {columns.label!r}{more}. Every word "
            "needs a tag: mend or remove such rows."
        )


def scheme_note(column: str, found: Scheme | None, target: Scheme) -> str:
    """What scheme tags follow, and which they are given."""
    if found is None:
        names = ", ".join(scheme.upper() for scheme in SCHEMES)
        return f"The tags in {column!r} follow no scheme of spans ({names}); they stay as they are."
    if found == target:
        return f"The tags in {column!r} follow {found.upper()}."
    return f"The tags in {column!r} follow {found.upper()}; they are converted to {target.upper()}."


def rewrite(
    examples: Examples, table: SourceTable, found: Scheme, target: Scheme, remarks: Remarks
) -> Examples:
    """The examples with tags in the target scheme; `remarks` receives tags that break their own.

    Raises:
        DataError: a tag is of no scheme.
    """
    sentences = [label for label in examples.labels or () if isinstance(label, tuple)]
    _check_tags(examples, table, sentences, found)
    broken = [len(faults(tags, found)) for tags in sentences]
    labels = tuple(
        tags if found == target and not count else convert(tags, target)
        for tags, count in zip(sentences, broken, strict=True)
    )
    at = [examples.rows[i] for i, count in enumerate(broken) if count]
    if at:
        remarks.warnings.append(
            f"{table.source}: {counted(sum(broken), 'tag')} where {found.upper()} does not allow "
            f"it (such as {_FAULT[found]}), in {counted(len(at), 'sentence')} "
            f"({listed(at, table.unit)}); read as conlleval reads them."
        )
    return replace(examples, labels=labels)


def _check_tags(
    examples: Examples, table: SourceTable, sentences: Sequence[WordList], found: Scheme
) -> None:
    for row, tags in zip(examples.rows, sentences, strict=True):
        odd = next((tag for tag in tags if not is_tag(tag)), None)
        if odd is not None:
            raise DataError(
                f"{table.source} {table.unit} {row:,}: {odd!r} is no tag of {found.upper()}, which "
                "the other tags follow."
            )


def _clean_word(word: str) -> str:
    return clean_text(word)[0] or BLANK_WORD


def sentences(inputs: Sequence[object]) -> Examples:
    """Examples of lists of words, or of sentences that are split at white space.

    Raises:
        DataError: there are none, or one is neither.
    """
    if len(inputs) == 0:
        raise DataError("There are no sentences to tag: the list is empty.")
    rows = [_words_of(item, at) for at, item in enumerate(inputs)]
    return worded_examples(rows, range(len(rows)))


def sentences_of_table(
    table: SourceTable, columns: Columns, named: NamedColumns, target: Scheme
) -> Examples:
    """Examples of a table with word lists; words in plain cells are split at white space.

    Args:
        table: the rows.
        columns: the columns the model was trained on.
        named: columns that are others in this table, by "text" and "label".
        target: the scheme that tags, where every row has them, are converted to.

    Raises:
        DataError: the table lacks a column, or has rows of more words or fewer than tags.
    """
    columns = as_named(table, columns, named)
    cells = table.columns[_column(table, columns)]
    rows = [_cell_words(cell or "") for cell in cells]
    examples = worded_examples(rows, table.rows)
    documents = table.columns.get(columns.document or table.document or "")
    numbers = None if documents is None else number_documents(documents)
    if numbers is not None and stand_together(numbers):
        examples = replace(examples, documents=numbers)
    return _with_tags(examples, table, columns, target)


def refuse_ragged(table: SourceTable) -> None:
    """Raises `DataError` if the reader left rows out."""
    if table.ragged:
        raise DataError(
            f"{table.source}: {counted(len(table.ragged), 'row')} without the usual "
            f"{counted(_width(table), 'field')} ({listed(table.ragged, table.unit)}). Mend or "
            "remove them: no row may go missing from a prediction."
        )


def _width(table: SourceTable) -> int:
    return sum(name != table.document for name in table.columns)


def _words_of(item: object, at: int) -> WordList:
    if isinstance(item, str):
        return tuple(item.split())
    if isinstance(item, tuple | list) and all(isinstance(word, str) for word in item):
        return tuple(item)
    raise DataError(f"Item {at} of the list is {item!r}, neither a sentence nor a list of words.")


def table_of_sentences(path: Path, columns: Columns, encoding: str | None) -> SourceTable:
    """The table of a CoNLL file, of a table with word lists, or of a .txt file's lines.

    Args:
        path: the file. A .txt file is CoNLL if its content says so, else it has a sentence per
            line, split at white space.
        columns: the columns the model was trained on.
        encoding: of a text file.

    Raises:
        DataError: the file cannot be read.
    """
    if table_suffix(path.name) != ".txt":
        return read_table(path, encoding)
    lines = list(read_lines(path, encoding))
    if is_conll([*lines, ""]) or is_words_only(lines):  # even a single sentence
        return read_conll(lines, path)
    cells = [as_cell(line.split()) for line in lines]
    return SourceTable(str(path), {columns.text: cells}, range(1, len(lines) + 1), "line")


def _column(table: SourceTable, columns: Columns) -> str:
    """The column of words: as the model knows it, or the only one, or CoNLL's first."""
    known = columns.text in table.columns
    if not known and (len(table.columns) == 1 or "tokens" in table.columns):
        return next(iter(table.columns)) if len(table.columns) == 1 else "tokens"
    require(table, columns.text, "text")
    return columns.text


def _cell_words(cell: str) -> WordList:
    words = read_words(cell)
    return tuple(cell.split()) if words is None else words


def _with_tags(
    examples: Examples, table: SourceTable, columns: Columns, target: Scheme
) -> Examples:
    """The examples with tags, if every row has them."""
    cells = table.columns.get(columns.label or "") or table.columns.get("tags")
    labels = [] if cells is None else read_labels(cells, "tagging")
    tags = [own for own in labels if isinstance(own, tuple)]
    if not tags or len(tags) != len(examples):
        return examples
    check_lengths(table, columns, examples.words or (), labels)
    tagged = replace(examples, labels=tuple(tags))
    found = detect(tags)
    return tagged if found is None else rewrite(tagged, table, found, target, Remarks())
