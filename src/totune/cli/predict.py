"""`totune predict`: labels for texts."""

import csv
import io
import json as json_format
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from totune.cli.options import Json, examples
from totune.cli.options import output as to_file
from totune.cli.output import emit, plain
from totune.errors import ConfigError, ModelError
from totune.registry import did_you_mean

if TYPE_CHECKING:
    from totune.data.examples import Examples
    from totune.data.tagging.schemes import Scheme
    from totune.export import Predictor

EXAMPLES = examples(
    ("To the screen:", "totune predict studies/reviews/best new.csv"),
    ("To a file (csv, tsv or jsonl):", "totune predict model new.txt --output predictions.csv"),
    (
        "The second column is the text, whatever it is called:",
        "totune predict model new.tsv --text 2",
    ),
    ("Tagged words, one a line:", "totune predict model new.txt --output predictions.conll"),
)
FORMATS = (".csv", ".tsv", ".jsonl")
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
        str,
        typer.Argument(
            metavar="INPUT",
            help="A table with the columns of the training data, a text a line, or a CoNLL file.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            parser=to_file("output"),
            metavar="FILE",
            help="A csv, tsv or jsonl file (of tagged words .conll too); standard output if not "
            "named. Earlier predictions (but of tags) are replaced, other files are not.",
        ),
    ] = None,
    text: Text = None,
    pair: Pair = None,
    model: EncoderPlace = None,
    encoding: Encoding = None,
    json: Json = False,
) -> None:
    """Predict a label (with its probability), a score or tags for every row, in order."""
    if output is not None:
        _check_output(output, input)
    from totune.data.sources import read_inputs
    from totune.export import load_model

    trained = load_model(model_dir, model)
    if output is not None and output.suffix == CONLL and not trained.task.per_word:
        raise ConfigError(f"--output {output}: {CONLL} is for models that tag words.")
    inputs = read_inputs(
        input,
        columns_of(trained),
        named={"text": text, "pair": pair},
        encoding=encoding,
        tag_scheme=tag_scheme_of(trained),
    )
    tell_missing_documents(trained, inputs)
    rows = predictions(trained, inputs)
    if output is not None:
        output.write_text(as_text(rows, output.suffix), encoding="utf-8")
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
    if output.exists() and not _holds_predictions(output):
        raise ConfigError(
            f"--output {output} is there and does not hold predictions of totune, so it is not "
            "replaced. Name another file, or remove it first."
        )


def _holds_predictions(file: Path) -> bool:
    """Whether a file is empty or begins as `as_text` does; tags look like anybody's, so not."""
    with file.open("rb") as opened:
        first = opened.readline(_LINE).rstrip()
    if not first:
        return True
    if file.suffix == ".jsonl":
        return first.startswith(b'{"prediction": ')
    return first.replace(b"\t", b",") in (b"prediction", b"prediction,probability")


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


def predictions(model: "Predictor", rows: "Examples") -> list[dict[str, Any]]:
    """The prediction of every row (the tags of its words) and, of a class, its probability."""
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
    if scores is not None:
        for row, index, probabilities in zip(found, indices, scores, strict=True):
            row["probability"] = round(float(probabilities[int(index)]), 6)
    return found


def as_text(rows: Sequence[dict[str, Any]], suffix: str) -> str:
    """Predictions as the content of a csv, tsv or jsonl file, or of one in CoNLL's columns."""
    if suffix == ".jsonl":
        return "".join(json_format.dumps(plain(row), ensure_ascii=False) + "\n" for row in rows)
    if rows and "tags" in rows[0]:
        if suffix == CONLL:
            return _conll(rows)
        rows = [{name: _cell(row, name) for name in ("tokens", "tags")} for row in rows]
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
