"""From a table of word lists to examples, and their tags into one scheme."""

from collections.abc import Sequence
from dataclasses import replace

from totune.data.columns import require
from totune.data.documents import gather, number_documents
from totune.data.examples import Columns, Examples, Label
from totune.data.extraction import Extracted, clean_text, left_out
from totune.data.tables import Table
from totune.data.tag_schemes import SCHEMES, Scheme, convert, faults, is_tag
from totune.data.targets import read_labels
from totune.data.word_lists import Words, read_words
from totune.data.wording import counted, listed
from totune.errors import DataError

BLANK_WORD = "_"  # CoNLL's mark of an empty field
_FAULT = {"iob1": "B-PER after O", "iob2": "I-PER after O", "iobes": "B-PER before O"}


def extract_tagged(table: Table, columns: Columns) -> Extracted:
    """The sentences of `table` that have words and tags, tags as written.

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
    notes = left_out(table, empty, f"sentence without words in {columns.text!r}")
    warnings = [
        *left_out(table, broken, f"row without a list of words in {columns.text!r}"),
        *left_out(table, untagged, f"sentence without usable {columns.label!r}"),
        *left_out(table, blank, "sentence with an empty word", f"read as {BLANK_WORD!r}"),
    ]
    if not kept:
        raise DataError(f"{table.source} holds no usable row. " + " ".join([*notes, *warnings]))
    whole = worded_examples([words or () for words in sentences], table.rows)
    documents = table.columns.get(columns.document or "")
    labelled = replace(
        whole,
        labels=tuple(own or () for own in tags),
        documents=None if documents is None else number_documents(documents),
    )
    return Extracted(gather(labelled.take(kept)), tuple(warnings), tuple(notes))


def worded_examples(sentences: Sequence[Words], rows: Sequence[int]) -> Examples:
    """Examples of sentences without tags; an empty word becomes `BLANK_WORD`."""
    words = tuple(tuple(_clean_word(word) for word in sentence) for sentence in sentences)
    return Examples(tuple(map(" ".join, words)), rows=tuple(rows), words=words)


def check_lengths(
    table: Table,
    columns: Columns,
    sentences: Sequence[Words | None],
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
    examples: Examples, table: Table, found: Scheme, target: Scheme
) -> tuple[Examples, list[str]]:
    """Tags in the target scheme, and a warning on those that break the one they were found in.

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
    warnings = []
    if at:
        warnings.append(
            f"{table.source}: {counted(sum(broken), 'tag')} where {found.upper()} does not allow "
            f"it (such as {_FAULT[found]}), in {counted(len(at), 'sentence')} "
            f"({listed(at, table.unit)}); read as conlleval reads them."
        )
    return replace(examples, labels=labels), warnings


def _check_tags(
    examples: Examples, table: Table, sentences: Sequence[Words], found: Scheme
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
