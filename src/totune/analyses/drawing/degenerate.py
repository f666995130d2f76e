"""What a section says of useless runs among those that were looked into."""

from collections.abc import Iterable, Sequence

from totune.runs.records import RunRecord


def degenerate_warning(
    runs: Iterable[tuple[str, int | None]], records: Sequence[RunRecord]
) -> tuple[str, ...]:
    """Names the degenerate runs among some; none where there are none.

    Args:
        runs: labels of strategies and seeds; others than runs may stand among them.
        records: of the study that they are from.
    """
    known = set(runs)
    odd = [run for run in records if run.degenerate and (run.strategy, run.seed) in known]
    if not odd:
        return ()
    told = ", ".join(f"{run.strategy} seed {run.seed} ({run.degenerate})" for run in odd)
    return (f"Degenerate runs count in what is shown like the others: {told}.",)
