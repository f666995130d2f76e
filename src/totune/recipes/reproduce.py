"""`totune reproduce`: runs a recipe and writes the paper's figures beside ours."""

from pathlib import Path

from totune.errors import ConfigError
from totune.io import write_json
from totune.machine import versions
from totune.outputs import check_output_folder, check_reports, has_mark, output_path
from totune.progress import Progress
from totune.recipes.cross_validation import cross_validate
from totune.recipes.document import recipe_document
from totune.recipes.recipe import CrossValidation, Recipe, load_recipe
from totune.recipes.results import Results
from totune.recipes.study import FOLDER, run_study
from totune.registry import out_of_range
from totune.report.html import document_html
from totune.report.markdown import document_markdown
from totune.runs.store import is_study

RESULTS = "results.json"
_MARKS = ("recipe", "groups", "versions")


def reproduce(
    name: str,
    *,
    data_dir: str | Path = "data",
    model: str | None = None,
    fraction: float = 1.0,
    seeds: int | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> Path:
    """Runs a recipe and reports the paper's figures beside ours.

    Args:
        name: of the recipe.
        data_dir: the folder that the recipe's data lies in.
        model: another encoder than the recipe's.
        fraction: share of the rows (of a study, of its train rows) that is used, in (0, 1].
        seeds: how many; the recipe's own number if None.
        out: the report's folder; the recipe's name if None.
        progress: receives notes, warnings and progress; silent by default.
        command: the command line, for the report.

    Returns:
        The folder with `results.json`, `report.md` and `report.html`.

    Raises:
        ConfigError: with every fault of the settings.
        DataError: the data is not there (says where it can be had) or cannot be used.
    """
    progress = progress or Progress()
    _check(fraction, seeds)
    recipe = load_recipe(name)
    folder = output_path(out if out is not None else name)
    check_output_folder(folder, f"the report of a recipe ({RESULTS})", _is_ours)
    if not has_mark(folder / RESULTS, *_MARKS):
        check_reports(folder)
    file = recipe.data_file(Path(data_dir).expanduser())
    results = _run(recipe, file, folder, model, fraction, seeds or recipe.run.seeds, progress)
    _write(folder, recipe, results, command)
    return folder


def _is_ours(folder: Path) -> bool:
    return has_mark(folder / RESULTS, *_MARKS) or is_study(folder / FOLDER)


def _check(fraction: float, seeds: int | None) -> None:
    faults = []
    if not 0 < fraction <= 1:
        faults.append(out_of_range("fraction", fraction, "above 0 and at most 1"))
    if seeds is not None and seeds < 1:
        faults.append(out_of_range("seeds", seeds, "at least 1"))
    if faults:
        raise ConfigError(faults)


def _run(
    recipe: Recipe,
    file: Path,
    folder: Path,
    model: str | None,
    fraction: float,
    seeds: int,
    progress: Progress,
) -> Results:
    plan = recipe.run
    if isinstance(plan, CrossValidation):
        if model is not None:
            progress.say(f"{recipe.name} uses no encoder, so the model {model} is not loaded.")
        return cross_validate(recipe, plan, file, fraction, seeds, progress)
    return run_study(recipe, plan, file, folder, model, fraction, seeds, progress)


def _write(folder: Path, recipe: Recipe, results: Results, command: str) -> None:
    document = recipe_document(recipe, results, command)
    content = {"recipe": recipe.model_dump(), "versions": versions(), **results.to_json()}
    write_json(folder / RESULTS, content)
    (folder / "report.md").write_text(document_markdown(document), encoding="utf-8")
    (folder / "report.html").write_text(document_html(document), encoding="utf-8")
