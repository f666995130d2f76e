"""A study read back from its folder: records, table, advice, report."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from totune.advice import Advice, Ensemble, StrategySummary, advise, find_ensembles
from totune.advice.summary import Arrays
from totune.analyses.findings import sections
from totune.errors import ConfigError
from totune.export import Predictor, is_model, load_model
from totune.metrics import get_metric
from totune.outputs import check_reports
from totune.racing.records import Race, read_race
from totune.report.comparison import comparison_table
from totune.report.error_section import ModelErrors, Places, error_section, find_errors
from totune.report.formatting import duration, score, spread
from totune.report.groups import by_strategy, summaries
from totune.report.race_section import race_section
from totune.report.search_section import search_section
from totune.report.table import Table
from totune.report.usage_section import usage_section
from totune.report.write import ReportPaths, write_report
from totune.runs.records import RunRecord, StudyInfo
from totune.runs.repetitions import pool_folds
from totune.runs.store import Store
from totune.search.records import SearchRecord, applied, read_searches
from totune.statistics import Summary
from totune.study.views import RowKind, against, rows_of, study_html
from totune.tasks.base import task_from_json

if TYPE_CHECKING:
    import pandas

BEST = "best"
SHOWN_ROWS = "shown_rows.json"  # test rows that the report names


class Study:
    """A study's folder, read: records, statistics, advice, the best model.

    Args:
        folder: where `compare` put it.

    Attributes:
        records: every run; of a cross-validation those of single folds.
        unreadable: a sentence on each record that is there and cannot be read.

    Raises:
        ConfigError: if the folder holds no study, or one whose metric is a person's own function
            that was not named in this process (`totune.metrics.load_metric`).
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._store = Store(self.folder)
        self.info: StudyInfo = self._store.info()
        get_metric(self.info.metric)  # a person's function must have been named in this process
        order = {name: place for place, name in enumerate(self.info.strategies)}
        self.unreadable: list[str] = []
        found = [self._store.record(name, self.unreadable.append) for name in self.info.runs]
        kept = [record for record in found if record is not None]
        self.records: list[RunRecord] = sorted(
            kept, key=lambda r: (order[r.strategy], r.seed, r.fold or 0)
        )

    @cached_property
    def advice(self) -> Advice:
        """What the records say about the question."""
        tolerance = float(self.info.settings["tolerance"])
        metric, searches = self.info.metric, self.searches
        raced = None if self.race is None else self.race.findings()
        results, arrays = self._pooled
        found = advise(results, arrays, metric, tolerance, searches, raced)
        lost = [
            f"{fault} Its run is left out; totune compare does it again."
            for fault in self.unreadable
        ]
        reasons = (*found.reasons, *validation_words(self.info, self._store))
        caveats = (*lost, *found.caveats, *self.info.data.get("cautions", ()))
        return replace(found, reasons=reasons, caveats=caveats)

    @property
    def results(self) -> list[RunRecord]:
        """What the verdict rests on: the runs, or of a cross-validation its repetitions."""
        return self._pooled[0]

    @cached_property
    def race(self) -> Race | None:
        """The race that led to these runs, or None."""
        return read_race(self.folder) if self.info.settings.get("race") else None

    @cached_property
    def searches(self) -> list[SearchRecord]:
        """The searches that led to these runs."""
        return applied(read_searches(self.folder), self.info.strategies, self.records)

    @cached_property
    def ensembles(self) -> tuple[Ensemble, ...]:
        """What runs score together."""
        return find_ensembles(*self._pooled, self.info.metrics)

    @cached_property
    def _pooled(self) -> tuple[list[RunRecord], Arrays]:
        """The results, and their arrays by fingerprint."""
        if self.info.folds == 1:
            return self.records, self._arrays
        task = task_from_json(self.info.data["task"])
        return pool_folds(self.records, self._arrays, self.info.folds, task)

    @cached_property
    def _arrays(self) -> Arrays:
        """The arrays of every run by fingerprint."""
        return {record.fingerprint: self._store.predictions(record) for record in self.records}

    def table(self) -> Table:
        """The main comparison as plain data."""
        return comparison_table(self.info, self.results, self.advice)

    def to_pandas(self, per: RowKind = "run") -> "pandas.DataFrame":
        """The records as a data frame.

        Args:
            per: what a row is: a "run" (scores, costs, options), an "epoch" of a run (metrics on
                train and dev), or a "prediction" of a run for a test row (target, prediction and
                class probabilities; `row` counts the test rows from 0, or of folds all rows).

        Raises:
            ConfigError: `per` is none of these, or pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ConfigError("to_pandas needs pandas: pip install 'totune[pandas]'.") from None
        arrays = self._arrays if per == "prediction" else {}
        return pandas.DataFrame(rows_of(per, self.info, self.records, arrays))

    def compare_to(self, other: "Study | str | Path") -> Table:
        """This study beside another: every strategy's scores, and their differences.

        Args:
            other: the other study, or its folder: of another encoder, other settings, other data.

        Raises:
            ConfigError: the folder holds no study.
            DataError: the studies are of different tasks or metrics.
        """
        second = other if isinstance(other, Study) else Study(other)
        return against(
            (self.info, *self._pooled),
            (second.info, *second._pooled),
        )

    def best_model(self) -> Predictor:
        """The recommended model, loaded.

        Raises:
            ModelError: the study recommends none, or its folder is damaged.
        """
        return load_model(self.best)

    def __repr__(self) -> str:
        return f"Study({str(self.folder)!r}): {self.advice.headline}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the comparison and the answer."""
        return str(study_html(self.table(), self.advice, str(self.folder)))

    @cached_property
    def errors(self) -> ModelErrors | None:
        """What the recommended model gets wrong on the test rows."""
        return find_errors(self.info, *self._pooled, self.advice)

    def report(self, texts: bool = True) -> ReportPaths:
        """Writes `report.html` and `report.md` anew from the records.

        Args:
            texts: whether mistakes stand there with their texts, if the study has kept these.

        Raises:
            ConfigError: if files of these names are not of totune.
        """
        check_reports(self.folder)
        return write_report(
            self.folder,
            self.info,
            self.results,
            self.advice,
            [
                race_section(self.race),
                search_section(self.searches, self.info.strategies),
                *sections(self.folder, self.records),
            ],
            self.ensembles,
            [
                usage_section(self.best, self.info, self.results),
                error_section(self.info, self.errors, self._shown_rows(texts)),
            ],
        )

    def _shown_rows(self, texts: bool) -> Places:
        """The test rows that the report names, as `compare` has kept them."""
        try:
            rows = json.loads((self.folder / SHOWN_ROWS).read_text(encoding="utf-8"))["rows"]
            hidden = () if texts else ("text",)
            return {
                int(place): {name: each[name] for name in each if name not in hidden}
                for place, each in rows.items()
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(
                f"{self.folder / SHOWN_ROWS} cannot be read ({error}). Remove it; totune compare "
                "writes it again."
            ) from None

    @property
    def best(self) -> Path:
        """The folder of the recommended model, for `totune.load`."""
        return self.folder / BEST

    def to_json(self) -> dict[str, Any]:
        """Everything a program wants to know: the answer, the means, the places."""
        return {
            "folder": str(self.folder),
            "report": str(self.folder / "report.html"),
            "best": str(self.best) if is_model(self.best) else None,
            "metric": self.info.metric,
            "advice": self.advice.to_json(),
            "folds": self.info.folds,
            "strategies": [_costs(group) for group in by_strategy(self.info, self.results)],
            "ensembles": [ensemble.to_json() for ensemble in self.ensembles],
            "runs": [
                {"strategy": r.strategy, "seed": r.seed, "status": r.status, "test": r.test}
                | ({} if r.fold is None else {"fold": r.fold})
                for r in self.records
            ],
        }


def validation_words(info: StudyInfo, store: Store) -> list[str]:
    """What the scores of a cross-validation are of, and which rows trained the model in `best/`."""
    if info.folds == 1:
        return []
    rows, count = info.data["rows"]["all"], len(info.seeds)
    times = f"{count} repetitions, with other folds each" if count > 1 else "one repetition"
    text = (
        f"Scores are from {info.folds}-fold cross-validation: every one of the {rows:,} rows is "
        f"predicted by a model that did not train on it ({times})."
    )
    final = store.record(info.final) if info.final else None
    if final is None or final.status == "failed":
        return [text]
    last = "" if final.dev or len(final.epochs) < 2 else ", to its last epoch"
    return [
        text,
        f"The model in best/ ({final.strategy}) was trained on all {rows:,} rows with the same "
        f"options{last}. No rows are left to score it on.",
    ]


def _costs(group: StrategySummary) -> dict[str, Any]:
    """What a run of a strategy costs, as means over its usable runs; None where none recorded it.

    `seconds` are of training and of the features it reads; the others are named as in `Costs`.
    """
    names = ("trainable_parameters", "total_parameters", "peak_memory_bytes", "storage_bytes")
    means = {name: group.cost(name) for name in (*names, "latency_milliseconds")}
    counted = {"strategy": group.strategy, "usable_runs": len(group.runs)}
    return counted | {"seconds": group.seconds()} | means


def summary_rows(records: Sequence[RunRecord], info: StudyInfo) -> list[dict[str, str]]:
    """One row per strategy for the live table: runs, mean and spread of each metric, seconds.

    Of a cross-validation the mean and spread so far are over the runs of single folds.
    """
    rows, groups = [], by_strategy(info, records)
    scores = {metric: summaries(info, groups, metric) for metric in info.metrics}
    for group in groups:
        planned = len(info.seeds) * info.folds
        row = {"strategy": group.strategy, "runs": f"{len(group.usable)}/{planned}"}
        row |= {f"test {m}": _mean_text(m, scores[m].get(group.strategy)) for m in info.metrics}
        row["time per run"] = duration(group.seconds())
        rows.append(row)
    return rows


def _mean_text(metric: str, found: Summary | None) -> str:
    if found is None:
        return score(metric, None)
    mean = score(metric, found.mean)
    return mean if found.n < 2 else f"{mean} ± {spread(metric, found.std)}"
