"""How the recommended model is used, what loads it, and what it takes."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from totune.errors import ModelError
from totune.export import is_model, who_loads
from totune.export.files import DESCRIPTION, read_json, refusing_damage
from totune.report import formatting
from totune.report.document import Section
from totune.report.groups import by_strategy
from totune.report.table import fact_table
from totune.runs.records import RunRecord, StudyInfo

TITLE = "Use the model"


def usage_section(folder: Path, info: StudyInfo, records: Sequence[RunRecord]) -> Section:
    """The command, the Python lines, who loads it, its size on disk and its speed.

    Args:
        folder: of the recommended model; it need not hold one.
        info: the study.
        records: its runs, which know how long a prediction takes.
    """
    if not is_model(folder):
        return Section(TITLE)
    try:
        with refusing_damage(folder):
            about = read_json(folder, DESCRIPTION)
            strategy, seed = str(about["strategy"]), about["seed"]
            pairs = bool(about.get("pairs"))
        words = tuple(_from_here(sentence, folder) for sentence in who_loads(folder))
    except ModelError as error:
        return Section(TITLE, warnings=(str(error),))
    groups = {group.strategy: group for group in by_strategy(info, records)}
    latency = groups[strategy].cost("latency_milliseconds") if strategy in groups else None
    known = latency is not None
    facts = {
        "strategy": strategy,
        "seed": seed,
        "size_on_disk_bytes": sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()),
        "speed": f"{formatting.significant(latency, 2)} ms per text, in batches" if known else "",
    }
    table = fact_table("The model", facts)
    return Section(TITLE, words, tables=(table,), code=_code(folder, pairs))


def _from_here(sentence: str, folder: Path) -> str:
    """The sentence with the model's folder as seen from the report, which may move with it."""
    beginning = json.dumps(str(folder), ensure_ascii=False)[:-1]  # of a path in quotes
    return sentence.replace(beginning, f'"{folder.name}')


def _code(folder: Path, pairs: bool) -> str:
    call = (
        '["a text", "another"], ["its second text", "and its"]'
        if pairs
        else '["a text", "another"]'
    )
    return "\n".join(
        (
            "# in a terminal, in the folder of this report: the labels of the texts in a file",
            f"totune predict {shlex.quote(folder.name)} new.csv",
            "",
            "# in Python, there too",
            "import totune",
            f'model = totune.load("{folder.name}")',
            f"model.predict({call})",
        )
    )
