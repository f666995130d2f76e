"""`totune predict`: labels for texts."""

import csv
import io
import json as json_format
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from totune.cli.options import Json, examples
from totune.cli.options import output as to_file
from totune.cli.output import emit, plain
from totune.data.label_sets import SEPARATOR
from totune.errors import ConfigError, ModelError
from totune.registry import did_you_mean

if TYPE_CHECKING:
    from totune.data.examples import Examples
    from totune.data.tagging.schemes import Scheme
    from totune.export import Predictor

EXAMPLES = examples(
    ("To the screen:", "totune predict studies/reviews/best new.csv"),
    (
        "To a file (csv, tsv, jsonl or parquet), with the probability of every class:",
        "totune predict model new.csv --probabilities --output predictions.csv",
    ),
    (
        "One text, or texts from another program:",
        "totune predict model --text-input 'A joy.'\n    zcat texts.gz | totune predict model -",
    ),
    (
        "The second column is the text, whatever it is called:",
        "totune predict model new.tsv --text 2",
    ),
    ("Tagged words, one a line:", "totune predict model new.txt --output predictions.conll"),
)
FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")
STDIN = "-"
CONLL = ".conll"  # of tagged words alone
_LINE = 1 << 20  # bytes of the longest line that is looked at

ModelFolder = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL_DIR", help="The folder of totune train, or best/ in a study's folder."
    ),
]
EncoderPlace = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="ENCODER",
        help="For models of adapters or LoRA: where their encoder is, if it was moved.",
        show_default=False,
    ),
]
Text = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the text: its name, or its number counted from 1; that of training if not "
        "named.",
        show_default=False,
    ),
]
Pair = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the second text, for models of pairs: its name or its number.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="Of the input file; UTF-8 if not named.", show_default=False)
]


def run(
    model_dir: ModelFolder,
    input: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="A table with the columns of the training data, a text a line, or a CoNLL file; - "
            "for texts from standard input, a line each.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            parser=to_file("output"),
            metavar="FILE",
            help="A csv, tsv, jsonl or parquet file (of tagged words .conll too); standard output "
            "if not named. Earlier predictions of the same columns (but of tags) are replaced, "
            "other files are not.",
        ),
    ] = None,
    text_input: Annotated[
        list[str] | None,
        typer.Option(
            "--text-input",
            metavar="TEXT",
            help="A text to predict, in place of a file (of a pair: two with a tab between); "
            "repeatable.",
            show_default=False,
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Add the probability of each class."),
    ] = False,
    text: Text = None,
    pair: Pair = None,
    model: EncoderPlace = None,
    encoding: Encoding = None,
    json: Json = False,
) -> None:
    """Predict a label (with its probability), labels, a score or tags for every row, in order.

    Several labels of a row are joined by | in csv and tsv, and a list in jsonl and --json. The
    input's columns are kept, before the prediction; of tagged words, words and tags alone.
    """
    if (input is None) != bool(text_input):
        raise ConfigError("Name an INPUT file (or - for standard input), or give `text_input`.")
    if output is not None:
        _check_output(output, input or STDIN)
    from totune.data.inputs import input_table, lines_table, read_rows
    from totune.export import load_model

    trained = load_model(model_dir, model)
    if output is not None and output.suffix == CONLL and not trained.task.per_word:
        raise ConfigError(f"--output {output}: {CONLL} is for models that tag words.")
    columns, named = columns_of(trained), {"text": text, "pair": pair}
    if input in (None, STDIN):
        lines = text_input or sys.stdin.read().splitlines()
        table = lines_table(lines, "standard input" if input else "`text_input`", columns)
    else:
        table = input_table(str(input), columns, named=named, encoding=encoding)
    kept = {} if trained.task.per_word else table.columns
    _check_columns(kept, output)
    inputs = read_rows(table, columns, named=named, tag_scheme=tag_scheme_of(trained))
    tell_missing_documents(trained, inputs)
    found = predictions(trained, inputs, probabilities)
    rows = [
        {**dict(zip(kept, cells, strict=True)), **row}
        for *cells, row in zip(*kept.values(), found, strict=True)
    ]
    if output is not None:
        _write(rows, output)
        typer.echo(f"{len(rows)} predictions written to {output}", err=True)
    if json:
        return emit({"rows": len(rows), "output": output, "predictions": None if output else rows})
    if output is None:
        typer.echo(as_text(rows, ".csv"), nl=False)


def _check_output(output: Path, read: str) -> None:
    if output.suffix not in (*FORMATS, CONLL):
        hint = did_you_mean(output.suffix, (*FORMATS, CONLL))
        raise ConfigError(f"--output {output} ends in none of the formats written. {hint}")
    if not output.parent.is_dir():
        raise ConfigError(f"--output {output}: there is no folder {output.parent}; make it first.")
    if output.is_dir():
        raise ConfigError(f"--output {output} is a folder; name a file.")
    if output.exists() and Path(read).exists() and output.samefile(read):
        raise ConfigError(f"--output {output} is the file that is read; name another.")


def _check_columns(kept: Mapping[str, Any], output: Path | None) -> None:
    """Makes sure that predictions cover no column of the input, and no file but earlier ones.

    Raises:
        ConfigError: with the remedy.
    """
    taken = [name for name in kept if re.fullmatch(r"prediction|probability(:.*)?", name)]
    if taken:
        raise ConfigError(
            f"The input has a column {taken[0]!r} already, where a prediction would go. Rename it, "
            "or leave it out."
        )
    if output is not None and output.exists() and not _holds_predictions(output, [*kept]):
        raise ConfigError(
            f"--output {output} is there and does not hold predictions of totune for these "
            "columns, so it is not replaced. Name another file, or remove it first."
        )


def _holds_predictions(file: Path, kept: Sequence[str]) -> bool:
    """Whether a file is empty, or holds these columns and then predictions; tags may be anybody's.

    Args:
        file: of one of the formats written.
        kept: the columns before the prediction.
    """
    if not file.stat().st_size:
        return True
    try:
        names = _columns_of_file(file)
    except (ValueError, AttributeError, csv.Error):  # of Arrow too: its errors are ValueErrors
        return False
    return names[: len(kept) + 1] == [*kept, "prediction"]


def _columns_of_file(file: Path) -> list[str]:
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        return list(pq.read_schema(file).names)
    with file.open(encoding="utf-8", newline="") as opened:
        if file.suffix == ".jsonl":
            return list(json_format.loads(opened.readline(_LINE)).keys())
        return next(csv.reader(opened, delimiter="\t" if file.suffix == ".tsv" else ","), [])


def _write(rows: Sequence[dict[str, Any]], output: Path) -> None:
    if output.suffix != ".parquet":
        output.write_text(as_text(rows, output.suffix), encoding="utf-8")
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist([_flat(plain(row)) for row in rows]), output)


def tell_missing_documents(model: "Predictor", rows: "Examples") -> None:
    """Says so where the model learnt sentences in their documents and these rows name none."""
    in_context = model.about.get("framing", {}).get("document_context", False)
    if in_context and model.about["columns"].get("document") and rows.documents is None:
        typer.echo(
            "warning: the model was trained on sentences in their documents, and this input marks "
            "no documents: each sentence is read alone, which may cost accuracy.",
            err=True,
        )


def columns_of(model: "Predictor") -> Any:
    """The columns that the model was trained on."""
    from totune.data.examples import Columns

    if "columns" not in model.about:
        raise ModelError("The model does not say which columns it was trained on; name a text.")
    return Columns(**model.about["columns"])


def tag_scheme_of(model: "Predictor") -> "Scheme":
    """The scheme of the tags that the model was trained on; files may have another."""
    from totune.tasks.tagging import Tagging

    task = model.task
    return (task.scheme or "iob2") if isinstance(task, Tagging) else "iob2"


def predictions(model: "Predictor", rows: "Examples", every: bool = False) -> list[dict[str, Any]]:
    """The prediction of every row (the tags of its words) and, of a class, its probability.

    Where rows have several labels, the probability of each label.

    Args:
        model: the trained model.
        rows: the texts.
        every: whether the probabilities of all classes are added, as `probabilities`.
    """
    from totune.tasks.multi_label import MultiLabel

    outputs = model.outputs(rows)
    indices = model.task.predictions(outputs, rows.counts)
    scores = model.task.scores(outputs)
    labels = model.task.decode(indices)
    if rows.words is not None:
        pairs = zip(rows.words, labels, strict=True)
        tagged: list[dict[str, Any]] = [{"tokens": words, "tags": tags} for words, tags in pairs]
        for row, document in zip(tagged, rows.documents or (), strict=bool(rows.documents)):
            row["document"] = document
        return tagged
    found: list[dict[str, Any]] = [{"prediction": label} for label in labels]
    if scores is not None and isinstance(model.task, MultiLabel):
        for row, probabilities in zip(found, scores.astype(float).round(6).tolist(), strict=True):
            row["probabilities"] = dict(zip(model.task.labels, probabilities, strict=True))
    elif scores is not None:
        for row, index, probabilities in zip(found, indices, scores, strict=True):
            row["probability"] = round(float(probabilities[int(index)]), 6)
            if every:
                shares = probabilities.astype(float).round(6).tolist()
                row["probabilities"] = dict(zip(model.task.labels, shares, strict=True))  # type: ignore[attr-defined]
    return found


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row as cells: several labels joined, and a column for each probability."""
    each = {f"probability:{name}": share for name, share in row.get("probabilities", {}).items()}
    cells = {name: value for name, value in row.items() if name != "probabilities"} | each
    if isinstance(cells.get("prediction"), tuple | list):
        cells["prediction"] = SEPARATOR.join(cells["prediction"])
    return cells


def as_text(rows: Sequence[dict[str, Any]], suffix: str) -> str:
    """Predictions as the content of a csv, tsv or jsonl file, or of one in CoNLL's columns."""
    if suffix == ".jsonl":
        return "".join(json_format.dumps(plain(row), ensure_ascii=False) + "\n" for row in rows)
    if rows and "tags" in rows[0]:
        if suffix == CONLL:
            return _conll(rows)
        rows = [{name: _cell(row, name) for name in ("tokens", "tags")} for row in rows]
    rows = [_flat(row) for row in rows]
    names = list(rows[0]) if rows else ["prediction"]
    stream = io.StringIO()
    delimiter = "\t" if suffix == ".tsv" else ","
    writer = csv.DictWriter(stream, names, delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain(row) for row in rows)
    return stream.getvalue()


def _cell(row: dict[str, Any], name: str) -> str:
    """Words or tags with spaces between; as a JSON list where a word itself holds white space."""
    if all(word.split() == [word] for word in row["tokens"]):
        return " ".join(row[name])
    return json_format.dumps(row[name], ensure_ascii=False)


def _conll(rows: Sequence[dict[str, Any]]) -> str:
    """Sentences in CoNLL's columns: a word and its tag on each line, a blank line after them.

    Between them is a space, or a tab where any word holds a space. Documents begin as in CoNLL.
    """
    # What ends a line or a field cannot stand in a word.
    sentences = [[re.sub(r"[\t\r\n]", " ", word) for word in row["tokens"]] for row in rows]
    separator = "\t" if any(" " in word for words in sentences for word in words) else " "
    blocks = [
        "".join(f"{word}{separator}{tag}\n" for word, tag in zip(words, row["tags"], strict=True))
        for words, row in zip(sentences, rows, strict=True)
    ]
    documents = [row.get("document") for row in rows]
    begins = [new is not None and new != old for old, new in pairwise([None, *documents])]
    start = f"-DOCSTART-{separator}O\n\n"
    both = zip(begins, blocks, strict=True)
    return "".join(f"{start if begin else ''}{block}\n" for begin, block in both)
