"""What the commands of `totune analyze` share: reading data or a study, and showing findings."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from totune.cli.options import (
    COMMON_OPTIONS,
    Data,
    Json,
    Quiet,
    examples,
    optional,
    output,
    parse_assignments,
    parse_names,
    read_settings,
    takes,
)
from totune.cli.output import emit, show_report_table
from totune.errors import ConfigError

if TYPE_CHECKING:
    from totune.analyses.findings import Findings
    from totune.analyses.inputs.studies import AnalysisInputs
    from totune.progress import Progress
    from totune.runs.records import RunRecord

__all__ = ["Data", "Json", "Out", "Quiet", "Set", "examples", "output"]

_READING = (
    *("model", "text", "pair", "label", "task", "encoding", "fraction", "split_seed", "metric"),
    *("dev", "test", "where", "label_map"),
    *("max_length", "precision", "cache_dir", "cache_budget"),
)

Study = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="A study of DATA: its trained models are looked into beside the pretrained encoder, "
        "its settings hold, and its report shows the result.",
    ),
]
Strategies = Annotated[
    str | None,
    typer.Option(help="Which of the study's strategies, with commas between; all if not named."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        parser=output(),
        help="Where the result is written; the study's folder, or ./analysis without one.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An option of the analysis (totune list analyses); repeatable.",
    ),
]


READING_OPTIONS = [optional(option) for option in COMMON_OPTIONS if option.name in _READING]


def open_data(
    data: str,
    study: Path | None,
    strategies: str | None,
    settings: Mapping[str, Any],
    progress: "Progress",
) -> "AnalysisInputs":
    """Data and encoder, and a study's models.

    Raises:
        ConfigError: if strategies are named and no study.
    """
    from totune.analyses.inputs.studies import open_data

    if strategies is not None and study is None:
        raise ConfigError("--strategies chooses among a study's models: name it with --study.")
    chosen = read_settings(settings)
    del chosen["options"]
    names = parse_names(strategies) if strategies else ()
    return open_data(data, study=study, strategies=names, progress=progress, **chosen)


def hidden_states_command(name: str, summary: str) -> Callable[..., None]:
    """The command of an analysis of hidden states; all of them take the same options.

    Args:
        name: name of the analysis.
        summary: what help says of it.
    """

    @takes(READING_OPTIONS)
    def run(
        data: Data,
        study: Study = None,
        strategies: Strategies = None,
        set: Set = None,
        out: Out = None,
        json: Json = False,
        quiet: Quiet = False,
        **settings: Any,
    ) -> None:
        from totune.analyses.base import ANALYSES
        from totune.analyses.findings import analyse
        from totune.cli.progress import RichProgress

        analysis = ANALYSES.create(name, parse_assignments(set or []))
        folder = output_folder(name, out or study)
        with RichProgress(quiet) as progress:
            opened = open_data(data, study, strategies, settings, progress)
            findings = analyse(analysis, opened.states, opened.about, progress)
        show(findings, folder, opened.records, json)

    run.__doc__ = summary
    return run


def output_folder(analysis: str, named: Path | None) -> Path:
    """Where the result of an analysis is written.

    Raises:
        ConfigError: if something else is there.
    """
    from totune.analyses.findings import check_findings_folder

    folder = named or Path("analysis")
    check_findings_folder(folder, analysis)
    return folder


def show(
    findings: "Findings",
    out: Path,
    records: "Sequence[RunRecord]",
    json: bool,
) -> None:
    """Saves findings under `out`, draws their page, and a study's report anew; prints both."""
    from totune.analyses.findings import write_page
    from totune.study.study import Study

    saved = findings.save(out)
    page = write_page(findings, out, records)
    if (out / "study.json").is_file():
        Study(out).report()
    if json:
        return emit({"file": saved, "page": page, **findings.to_json()})
    section = findings.section(records)
    for warning in section.warnings:
        typer.echo(warning, err=True)
    for table in section.tables:
        show_report_table(table)
        typer.echo()
    for sentence in section.paragraphs:
        typer.echo(sentence)
    typer.echo(f"\nPage: {page}\nData: {saved}")
