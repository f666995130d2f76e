"""What is looked into once a recipe's studies have run: its analyses, each a section."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from totune.analyses.base import ANALYSES
from totune.analyses.findings import Findings, analyse, check_findings_folder, write_page
from totune.analyses.inputs.corpora import (
    CorpusColumns,
    DivergenceInputs,
    read_corpora,
    read_reference,
    scores_of_studies,
)
from totune.analyses.inputs.studies import open_data, open_study
from totune.errors import TotuneError
from totune.progress import Progress
from totune.recipes.check import CheckedStudy
from totune.recipes.planned import there
from totune.recipes.recipe import AnalysisPlan, Recipe
from totune.recipes.study import study_folder
from totune.report.document import Section
from totune.runs.records import RunRecord
from totune.study.study import Study


def run_analyses(
    recipe: Recipe,
    checked: Sequence[CheckedStudy],
    studies: Mapping[str, Study],
    data_dir: Path,
    folder: Path,
    progress: Progress,
    keep_going: bool = False,
) -> list[Section]:
    """Every analysis of the recipe, of every study that it is of; results lie in their folders.

    Args:
        recipe: what was run.
        checked: its studies.
        studies: those that ran, by the name of their folder.
        data_dir: where corpora lie.
        folder: of the report, for what is of no single study.
        progress: receives notes, warnings and progress.
        keep_going: whether an analysis that fails leaves the others running.

    Raises:
        TotuneError: an analysis cannot be made, unless `keep_going`.
    """
    sections: list[Section] = []
    for plan in recipe.analyses:
        try:
            if plan.name == "divergence":
                sections.append(_divergence(recipe, plan, checked, studies, data_dir, folder))
            else:
                sections += _of_studies(recipe, plan, checked, studies, progress)
        except TotuneError as error:
            if not keep_going:
                raise
            progress.warn(f"{plan.name}: {error}")
            sections.append(Section(plan.name, warnings=(f"Not run: {error}",)))
    return sections


def _of_studies(
    recipe: Recipe,
    plan: AnalysisPlan,
    checked: Sequence[CheckedStudy],
    studies: Mapping[str, Study],
    progress: Progress,
) -> list[Section]:
    """One section for each study: title, data set, and what was found."""
    sections = []
    for one in checked:
        data = one.study.data
        study = studies.get(study_folder(recipe, one.study, len(checked)))
        if study is None or (plan.data and data not in plan.data):
            continue
        ran = {record.strategy for record in study.records}
        labels = [label for label in plan.rows if label in ran]
        findings = _analyse(plan, one, study, labels, progress)
        saved = Study(study.folder)
        section = _saved(findings, study.folder, saved.records)
        saved.report()
        sections.append(replace(section, title=f"{recipe.title_of(data)}: {section.title}"))
    return sections


def _analyse(
    plan: AnalysisPlan,
    one: CheckedStudy,
    study: Study,
    labels: Sequence[str],
    progress: Progress,
) -> Findings:
    analysis, source = ANALYSES.create(plan.name, plan.options), one.study.source
    assert source is not None, "the study has run"
    check_findings_folder(study.folder, plan.name)
    if plan.name == "adapter-ablation":
        models = open_study(study.folder, source, strategies=labels, progress=progress)  # type: ignore[arg-type]
        return analyse(analysis, models.models, models.about, progress)
    opened = open_data(source, study=study.folder, strategies=labels, progress=progress)  # type: ignore[arg-type]
    return analyse(analysis, opened.states, opened.about, progress)


def _saved(findings: Findings, folder: Path, records: Sequence[RunRecord]) -> Section:
    findings.save(folder)
    write_page(findings, folder, records)
    return findings.section(records)


def _divergence(
    recipe: Recipe,
    plan: AnalysisPlan,
    checked: Sequence[CheckedStudy],
    studies: Mapping[str, Study],
    data_dir: Path,
    folder: Path,
) -> Section:
    """How far the corpora lie from the reference, beside what the two rows score on each."""
    named = {"corpora": plan.corpora, "reference": plan.reference}
    found = {what: [there(data_dir, name) for name in names] for what, names in named.items()}
    pairs = [each for what, names in named.items() for each in zip(names, found[what], strict=True)]
    absent = [name for name, path in pairs if path is None]
    if absent:
        reason = f"Not run: data absent: {', '.join(absent)} under {data_dir}."
        return Section("Distance between corpora", warnings=(reason,))
    progress, columns = Progress(), CorpusColumns(**plan.columns)
    corpora = read_corpora([str(path) for path in found["corpora"]], columns, progress)
    reference = read_reference([str(path) for path in found["reference"]], columns, progress)
    frozen, tuned = plan.rows
    by_corpus = {
        one.study.data: (study.info, study.records)
        for one in checked
        for study in [studies.get(study_folder(recipe, one.study, len(checked)))]
        if study is not None and one.study.data in {corpus.name for corpus in corpora}
    }
    metric, scores = scores_of_studies(by_corpus, frozen, tuned) if by_corpus else ("score", {})
    inputs = DivergenceInputs(reference, corpora, scores, metric, (frozen, tuned))
    about = {"data": ", ".join(corpus.name for corpus in corpora), "reference": reference.name}
    analysis = ANALYSES.create(plan.name, plan.options)
    findings = analyse(analysis, inputs, about, progress)
    return _saved(findings, folder, ())
