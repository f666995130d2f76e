"""`totune reproduce`: runs a recipe and writes the paper's figures beside ours."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from totune.errors import ConfigError, TotuneError
from totune.io import write_json
from totune.machine import versions
from totune.outputs import check_output_folder, check_reports, has_mark, output_path
from totune.progress import Progress
from totune.recipes.afterwards import run_analyses
from totune.recipes.check import CheckedStudy, check_study
from totune.recipes.cross_validation import cross_validate
from totune.recipes.document import recipe_document
from totune.recipes.judgement import RESULTS, Verdict, judge, judgement_section
from totune.recipes.loading import load_recipe
from totune.recipes.parameters import count_parameters
from totune.recipes.planned import check_chosen, check_some_data, plan_studies
from totune.recipes.recipe import CrossValidation, Judgement, ParameterPlan, Recipe
from totune.recipes.results import Results
from totune.recipes.study import FOLDER, FOLDERS, run_studies
from totune.report.document import Answer, Document, Section
from totune.report.html import document_html
from totune.report.markdown import document_markdown
from totune.runs.settings import Settings
from totune.runs.store import is_study

_MARKS = ("recipe", "groups", "versions")
_CROSS_VALIDATED = {"seeds", "fraction"}  # the settings that cross-validation has a use for


def reproduce(
    name: str,
    *,
    data_dir: str | Path = "data",
    out: str | Path | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
    command: str = "",
    **settings: Any,
) -> Path:
    """Runs a recipe and reports the paper's figures beside ours.

    Args:
        name: of the recipe.
        data_dir: the folder that the recipe's data lies in.
        out: the report's folder; the recipe's name if None.
        keep_going: whether rows with faults, and studies that fail, leave the others running; their
            cells then say why they are empty.
        progress: receives notes, warnings and progress; silent by default.
        command: the command line, for the report.
        **settings: of `totune.compare`, but for those that a recipe says itself; what is not given
            is the recipe's. Of several encoders, `model` is "ENCODER=MODEL,...".

    Returns:
        The folder with `results.json`, `report.md` and `report.html`.

    Raises:
        ConfigError: with every fault of settings and rows, before anything is trained.
        DataError: none of the data is there (says where it can be had), or it cannot be used.
        TotuneError: as `totune.compare`.
    """
    progress = progress or Progress()
    recipe = load_recipe(name)
    _check(recipe, settings)
    folder = output_path(out if out is not None else name)
    check_output_folder(folder, f"the report of a recipe ({RESULTS})", _is_ours)
    if not has_mark(folder / RESULTS, *_MARKS):
        check_reports(folder)
    plan, data = recipe.run, Path(data_dir).expanduser()
    if isinstance(plan, Judgement):
        return _judge(recipe, plan, folder, command)
    further: list[Section] = []
    if isinstance(plan, ParameterPlan):
        results = count_parameters(recipe, settings.get("model"))
    elif isinstance(plan, CrossValidation):
        results = _cross_validate(recipe, plan, data, settings, progress)
    else:
        checked = check(recipe, data, settings)
        for fault in _refuse(recipe, checked, keep_going):
            progress.warn(f"{fault} Its cells stay empty.")
        results, studies = run_studies(recipe, checked, folder, progress, keep_going)
        further = run_analyses(recipe, checked, studies, data, folder, progress, keep_going)
    _write(folder, recipe, results, command, further)
    return folder


def check_recipe(
    name: str, *, data_dir: str | Path = "data", **settings: Any
) -> tuple[Recipe, list[CheckedStudy]]:
    """Finds everything that is wrong with a recipe, and what is absent; nothing is trained.

    Args:
        name: of the recipe.
        data_dir: the folder that its data lies in.
        **settings: as for `reproduce`.

    Returns:
        The recipe and its studies, those included whose data is absent.

    Raises:
        ConfigError: with every fault of settings and rows.
    """
    recipe = load_recipe(name)
    _check(recipe, settings)
    if isinstance(recipe.run, ParameterPlan):
        count_parameters(recipe, settings.get("model"))
    if isinstance(recipe.run, Judgement | ParameterPlan):
        return recipe, []
    checked = check(recipe, Path(data_dir).expanduser(), settings)
    _refuse(recipe, checked, keep_going=False, needs_data=False)
    return recipe, checked


def check(recipe: Recipe, data_dir: Path, settings: dict[str, Any]) -> list[CheckedStudy]:
    """What is wrong with each of a recipe's studies."""
    return [check_study(study) for study in plan_studies(recipe, data_dir, settings)]


def _refuse(
    recipe: Recipe, checked: Sequence[CheckedStudy], keep_going: bool, needs_data: bool = True
) -> list[str]:
    """Refuses a recipe of which nothing can run, or that has faults and is not to go on.

    Returns:
        The faults: recipe, row, data set and remedy.

    Raises:
        ConfigError: with every fault: recipe, row, data set and remedy.
        DataError: none of its data is there.
    """
    faults = [
        f"{recipe.name}, {f'row {label!r} on ' if label else ''}{recipe.title_of(one.study.data)}: "
        f"{fault}"
        for one in checked
        for label, fault in one.faults.items()
    ]
    runnable = any(
        not one.study.lacking and "" not in one.faults and one.study.without(list(one.faults)).rows
        for one in checked
    )
    if faults and not (keep_going and runnable):
        raise ConfigError(faults)
    if needs_data:
        check_some_data(recipe, [one.study for one in checked])
    return faults


def _is_ours(folder: Path) -> bool:
    studies = [folder / FOLDER, *(folder / FOLDERS).glob("*")]
    return has_mark(folder / RESULTS, *_MARKS) or any(map(is_study, studies))


def _check(recipe: Recipe, settings: dict[str, Any]) -> None:
    """Finds what is wrong with settings before anything is read."""
    faults = []
    try:
        check_chosen(recipe, settings)
    except ConfigError as error:
        faults += error.faults
    known = {name: value for name, value in settings.items() if name in vars(Settings())}
    faults += Settings(**known).faults()
    if faults:
        raise ConfigError(faults)


def _cross_validate(
    recipe: Recipe,
    plan: CrossValidation,
    data_dir: Path,
    settings: dict[str, Any],
    progress: Progress,
) -> Results:
    model, known = settings.get("model"), _CROSS_VALIDATED | {"model"}
    if model is not None:
        progress.say(f"{recipe.name} uses no encoder, so the model {model} is not loaded.")
    unused = sorted(name for name, value in settings.items() if value and name not in known)
    if unused:
        raise ConfigError(
            f"{recipe.name} cross-validates baselines, which has no use for {', '.join(unused)}."
        )
    (study,) = plan_studies(recipe, data_dir, settings)
    check_some_data(recipe, [study])
    if not isinstance(study.source, Path):
        raise ConfigError(f"{recipe.name}: cross-validation reads one file.")
    seeds, fraction = settings.get("seeds") or plan.seeds, settings.get("fraction") or 1.0
    if not isinstance(seeds, int):
        raise ConfigError(f"seeds={seeds!r}: cross-validation takes a number of seeds.")
    return cross_validate(recipe, plan, study.source, fraction, seeds, progress)


def _judge(recipe: Recipe, plan: Judgement, folder: Path, command: str) -> Path:
    """Judges the results that lie beside the report's folder."""
    try:
        judged = judge(plan, folder.absolute().parent)
    except TotuneError as error:
        raise type(error)(f"{recipe.name}: {error}") from None
    counts, verdicts = [one.verdict for one in judged], get_args(Verdict)
    told = ", ".join(f"{counts.count(verdict)} {verdict}" for verdict in verdicts)
    answer = Answer(f"Of {len(judged)} guidelines: {told}.")
    notes = Section("What differs from the paper", paragraphs=recipe.notes)
    setup = Section("Setup", code=command)
    sections = (judgement_section(judged, plan.margin), notes, setup)
    document = Document(recipe.title, recipe.paper, answer, sections)
    guidelines = [
        {
            "rule": one.guideline.rule,
            "verdict": one.verdict,
            "evidence": [vars(finding) for finding in one.findings],
        }
        for one in judged
    ]
    _write_files(folder, document, {"groups": [], "guidelines": guidelines}, recipe)
    return folder


def _write(
    folder: Path, recipe: Recipe, results: Results, command: str, further: Sequence[Section]
) -> None:
    document = recipe_document(recipe, results, command, further)
    _write_files(folder, document, results.to_json(), recipe)


def _write_files(folder: Path, document: Document, content: dict[str, Any], recipe: Recipe) -> None:
    facts = {"recipe": recipe.model_dump(), "versions": versions(), **content}
    write_json(folder / RESULTS, facts)
    (folder / "report.md").write_text(document_markdown(document), encoding="utf-8")
    (folder / "report.html").write_text(document_html(document), encoding="utf-8")
