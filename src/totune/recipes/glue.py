"""The files that GLUE's server scores (Wang et al. 2019, gluebenchmark.com), from trained models.

One file per test set, `index` and `prediction` separated by a tab, a line per row of the test file
in its order; classes as the task's own labels, scores as numbers from 0 to 5.
"""

import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from totune.data.examples import Label
from totune.data.readers import read_table
from totune.data.tagging.sentences import refuse_ragged
from totune.errors import ConfigError, DataError
from totune.export import Predictor, is_model, load_model
from totune.io import replacing
from totune.outputs import check_output_folder
from totune.progress import Progress
from totune.recipes.planned import there
from totune.recipes.study import FOLDERS
from totune.registry import did_you_mean
from totune.runs.store import is_study
from totune.study.study import BEST
from totune.text import counted

ARCHIVE = "submission.zip"
_BINARY = ("0", "1")
_ENTAILED = ("entailment", "not_entailment")
_NLI = ("contradiction", "entailment", "neutral")


@dataclass(frozen=True)
class GlueTestSet:
    """A test set of GLUE.

    Attributes:
        file: what the server calls its predictions, without `.tsv`.
        task: the task whose model predicts it.
        sources: test files under `data_dir`, GLUE's own first.
        columns: of the text or texts.
        labels: the classes that the server knows; none where it wants a number.
        rows: of the full test file.
        names: what the hub calls the classes, in the order of `labels`.
    """

    file: str
    task: str
    sources: tuple[str, ...]
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    rows: int
    names: tuple[str, ...] = ()


_SENTENCES, _QUESTIONS = ("sentence1", "sentence2"), ("question1", "question2")
TEST_SETS = (
    GlueTestSet(
        *("CoLA", "cola", ("CoLA/test.tsv", "cola/test.tsv"), ("sentence",), _BINARY, 1063),
        names=("unacceptable", "acceptable"),
    ),
    GlueTestSet(
        *("SST-2", "sst2", ("SST-2/test.tsv", "sst2/test.tsv"), ("sentence",), _BINARY, 1821),
        names=("negative", "positive"),
    ),
    GlueTestSet(
        *("MRPC", "mrpc", ("MRPC/test.tsv", "mrpc/test.tsv"), ("#1 String", "#2 String")),
        *(_BINARY, 1725),
        names=("not_equivalent", "equivalent"),
    ),
    GlueTestSet("STS-B", "stsb", ("STS-B/test.tsv", "stsb/test.tsv"), _SENTENCES, (), 1379),
    GlueTestSet(
        *("QQP", "qqp", ("QQP/test.tsv",), _QUESTIONS, _BINARY, 390_965),
        names=("not_duplicate", "duplicate"),
    ),
    GlueTestSet(
        *("MNLI-m", "mnli", ("MNLI/test_matched.tsv", "mnli/test_matched.tsv"), _SENTENCES),
        *(_NLI, 9796),
    ),
    GlueTestSet(
        *("MNLI-mm", "mnli", ("MNLI/test_mismatched.tsv", "mnli/test_mismatched.tsv"), _SENTENCES),
        *(_NLI, 9847),
    ),
    GlueTestSet(
        *("QNLI", "qnli", ("QNLI/test.tsv", "qnli/test.tsv"), ("question", "sentence")),
        *(_ENTAILED, 5463),
    ),
    GlueTestSet("RTE", "rte", ("RTE/test.tsv", "rte/test.tsv"), _SENTENCES, _ENTAILED, 3000),
    GlueTestSet(
        *("WNLI", "wnli", ("WNLI/test.tsv", "wnli/test.tsv"), _SENTENCES, _BINARY, 146),
        names=_ENTAILED[::-1],
    ),
    GlueTestSet(
        *("AX", "mnli", ("AX/AX.tsv", "AX/diagnostic.tsv", "diagnostic.tsv"), _SENTENCES),
        *(_NLI, 1104),
    ),
)
TASKS = tuple(dict.fromkeys(one.task for one in TEST_SETS))


@dataclass(frozen=True)
class Submission:
    """What was written.

    Attributes:
        archive: the file for the server.
        written: rows of each test set that has a file.
        missing: why the others have none.
    """

    archive: Path
    written: Mapping[str, int]
    missing: Mapping[str, str]


def submit_glue(
    studies: Sequence[str],
    *,
    data_dir: str | Path = "data",
    out: str | Path = "submission",
    progress: Progress | None = None,
) -> Submission:
    """Predicts GLUE's test sets with the best model of each study.

    Args:
        studies: folders of studies, of models, or of the report of `adapters-glue`; TASK=FOLDER
            where the folder's name is not the task's.
        data_dir: the folder of the test files.
        out: a new or empty folder.
        progress: receives notes and warnings.

    Raises:
        ConfigError: a folder holds no model, its task is not known, or two are of one task.
        DataError: a test file cannot be used.
        ModelError: a model cannot be loaded.
    """
    progress, folder = progress or Progress(), Path(out)
    models = find_models(studies)
    check_output_folder(folder)
    written: dict[str, int] = {}
    missing: dict[str, str] = {}
    files: dict[str, str] = {}
    for task in TASKS:
        own = [one for one in TEST_SETS if one.task == task]
        if task not in models:
            missing |= {one.file: f"no study of {task} was named" for one in own}
            continue
        model = load_model(models[task])
        for test_set in own:
            path = _test_file(test_set, Path(data_dir).expanduser())
            if path is None:
                missing[test_set.file] = f"{test_set.sources[0]} is not under {data_dir}"
                continue
            lines = predict_test_set(test_set, model, path, progress)
            files[test_set.file] = "".join(f"{line}\n" for line in ["index\tprediction", *lines])
            written[test_set.file] = len(lines)
    if not files:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise DataError(f"Nothing can be predicted. {reasons}.")
    folder.mkdir(parents=True, exist_ok=True)
    with (
        replacing(folder / ARCHIVE) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, text in files.items():
            (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
            archive.writestr(f"{name}.tsv", text)
    return Submission(folder / ARCHIVE, written, missing)


def find_models(studies: Sequence[str]) -> dict[str, Path]:
    """The folder of each task's model.

    Raises:
        ConfigError: a folder holds no model, its task is not known, or two are of one task.
    """
    found: dict[str, Path] = {}
    faults = []
    for given in studies:
        named, equals, place = given.partition("=")
        folders = _inside(Path(place if equals else given).expanduser())
        for folder in folders:
            task = _task_of(named) if equals else _task_of(folder.name)
            model = folder / BEST if is_study(folder) else folder
            if not is_model(model):
                faults.append(f"{folder} holds neither a study with its best model nor a model.")
            elif task is None:
                hint = did_you_mean(named if equals else folder.name, TASKS)
                faults.append(f"{given}: which task of GLUE is it? Write TASK=FOLDER. {hint}")
            elif task in found:
                faults.append(f"{folder} and {found[task].parent} are both of {task}; name one.")
            else:
                found[task] = model
    if faults:
        raise ConfigError(faults)
    return found


def _inside(folder: Path) -> list[Path]:
    """The folder, or the studies of a recipe's report; of MNLI's two equal ones the first."""
    if not (folder / FOLDERS).is_dir():
        return [folder]
    return [
        each
        for each in sorted((folder / FOLDERS).iterdir())
        if is_study(each) and each.name != "mnli-mm"
    ]


def _task_of(name: str) -> str | None:
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    plain = {"mnlim": "mnli", "mnlimm": "mnli", "sst": "sst2", "sts": "stsb"}.get(plain, plain)
    return plain if plain in TASKS else None


def _test_file(test_set: GlueTestSet, folder: Path) -> Path | None:
    places = (there(folder, source) for source in test_set.sources)
    return next((place for place in places if place is not None), None)


def predict_test_set(
    test_set: GlueTestSet, model: Predictor, path: Path, progress: Progress
) -> list[str]:
    """The lines of a test set's file, without the header.

    Raises:
        DataError: the file lacks a column or has malformed rows, or the model knows other labels.
    """
    table = read_table(path)
    refuse_ragged(table)
    lacking = [name for name in test_set.columns if name not in table.columns]
    if lacking:
        raise DataError(
            f"{path} has no column {lacking[0]!r}, so it is not GLUE's test file of "
            f"{test_set.file}. {did_you_mean(lacking[0], table.columns)}"
        )
    if len(table) != test_set.rows:
        progress.warn(
            f"{path} has {counted(len(table), 'row')}; GLUE's test file of {test_set.file} has "
            f"{test_set.rows:,}, and the server takes no other number."
        )
    texts = [[cell or "" for cell in table.columns[name]] for name in test_set.columns]
    labels = model.predict(texts[0], texts[1] if len(texts) > 1 else None)
    index = table.columns.get("index") or [str(row) for row in range(len(table))]
    return [f"{at}\t{_shown(label, test_set)}" for at, label in zip(index, labels, strict=True)]


def _shown(label: Label, test_set: GlueTestSet) -> str:
    """A prediction as the server reads it.

    Raises:
        DataError: it is no label of this task.
    """
    if not test_set.labels:
        if not isinstance(label, float | int) or not math.isfinite(label):
            raise DataError(f"{test_set.file} wants numbers, and the model predicts {label!r}.")
        return f"{min(5.0, max(0.0, float(label))):.3f}"
    names = dict(zip(test_set.names, test_set.labels, strict=False))
    shown = names.get(str(label), str(label))
    if shown not in test_set.labels:
        raise DataError(
            f"{test_set.file} knows {', '.join(test_set.labels)}, and the model predicts "
            f"{label!r}: is it of this task?"
        )
    return shown
