"""Sentences whose words are to be tagged: nothing may go missing; tags are welcome, not needed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from totune.data.columns import as_named, require
from totune.data.conll import is_conll, is_words_only, read_conll
from totune.data.documents import number_documents, stand_together
from totune.data.examples import Columns, Examples
from totune.data.files import decode, read_bytes, table_suffix
from totune.data.readers import read_table
from totune.data.tables import Table, as_cell
from totune.data.tag_columns import Named
from totune.data.tag_extraction import check_lengths, rewrite, worded_examples
from totune.data.tag_schemes import Scheme, detect
from totune.data.targets import read_labels
from totune.data.word_lists import Words, read_words
from totune.errors import DataError
from totune.text import counted, listed


def sentences(inputs: Sequence[object]) -> Examples:
    """Examples of lists of words, or of sentences that are split at white space.

    Raises:
        DataError: there are none, or one is neither.
    """
    if len(inputs) == 0:
        raise DataError("There are no sentences to tag: the list is empty.")
    rows = [_words_of(item, at) for at, item in enumerate(inputs)]
    return worded_examples(rows, range(len(rows)))


def sentences_of_file(
    path: Path, columns: Columns, named: Named, encoding: str | None, target: Scheme
) -> Examples:
    """Examples of a CoNLL file, of a table with word lists, or of a .txt file's lines.

    Args:
        path: the file. A .txt file is CoNLL if its content says so, else it has a sentence per
            line, split at white space; words in a table's plain cells are too.
        columns: the columns the model was trained on.
        named: columns that are others in this file, by "text" and "label".
        encoding: of a text file.
        target: the scheme that tags, where every row has them, are converted to.

    Raises:
        DataError: a file cannot be read, lacks a column, or has malformed rows.
    """
    table = _table(path, columns, encoding)
    refuse_ragged(table)
    columns = as_named(table, columns, named)
    cells = table.columns[_column(table, columns)]
    rows = [_cell_words(cell or "") for cell in cells]
    examples = worded_examples(rows, table.rows)
    documents = table.columns.get(columns.document or table.document or "")
    numbers = None if documents is None else number_documents(documents)
    if numbers is not None and stand_together(numbers):
        examples = replace(examples, documents=numbers)
    return _with_tags(examples, table, columns, target)


def refuse_ragged(table: Table) -> None:
    """Raises `DataError` if the reader left rows out."""
    if table.ragged:
        raise DataError(
            f"{table.source}: {counted(len(table.ragged), 'row')} without the usual "
            f"{counted(_width(table), 'field')} ({listed(table.ragged, table.unit)}). Mend or "
            "remove them: no row may go missing from a prediction."
        )


def _width(table: Table) -> int:
    return sum(name != table.document for name in table.columns)


def _words_of(item: object, at: int) -> Words:
    if isinstance(item, str):
        return tuple(item.split())
    if isinstance(item, tuple | list) and all(isinstance(word, str) for word in item):
        return tuple(item)
    raise DataError(f"Item {at} of the list is {item!r}, neither a sentence nor a list of words.")


def _table(path: Path, columns: Columns, encoding: str | None) -> Table:
    if table_suffix(path.name) != ".txt":
        return read_table(path, encoding)
    text = decode(read_bytes(path)[0], path, encoding)
    if is_conll(f"{text}\n\n") or is_words_only(text):  # even a single sentence
        return read_conll(text, path)
    lines = text.removesuffix("\n").split("\n")
    cells = [as_cell(line.split()) for line in lines]
    return Table(str(path), {columns.text: cells}, range(1, len(lines) + 1), "line")


def _column(table: Table, columns: Columns) -> str:
    """The column of words: as the model knows it, or the only one, or CoNLL's first."""
    known = columns.text in table.columns
    if not known and (len(table.columns) == 1 or "tokens" in table.columns):
        return next(iter(table.columns)) if len(table.columns) == 1 else "tokens"
    require(table, columns.text, "text")
    return columns.text


def _cell_words(cell: str) -> Words:
    words = read_words(cell)
    return tuple(cell.split()) if words is None else words


def _with_tags(examples: Examples, table: Table, columns: Columns, target: Scheme) -> Examples:
    """The examples with tags, if every row has them."""
    cells = table.columns.get(columns.label or "") or table.columns.get("tags")
    labels = [] if cells is None else read_labels(cells, "tagging")
    tags = [own for own in labels if isinstance(own, tuple)]
    if not tags or len(tags) != len(examples):
        return examples
    check_lengths(table, columns, examples.words or (), labels)
    tagged = replace(examples, labels=tuple(tags))
    found = detect(tags)
    return tagged if found is None else rewrite(tagged, table, found, target)[0]
