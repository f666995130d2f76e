"""The sentences of a race."""

from totune.advice.wording import amount
from totune.metrics import Metric
from totune.racing.records import Departure

_SHORT = {
    "worse": "credibly worse",
    "keeps up": "keeps up, settled",
    "dearer": "dearer than one that keeps up",
    "cannot win": "dearer, and unlikely to win",
    "stays open": "open, and likely to stay so",
    "changes nothing": "the verdict stays open without it",
    "constant answer": "does not beat a constant answer",
    "no usable run": "no usable run",
}


def short(gone: Departure) -> str:
    """Why a strategy left, in a few words."""
    chance = "" if gone.chance is None else f" ({gone.chance:.0%})"
    return f"{_SHORT[gone.reason]}{chance}"


def tell(gone: Departure, metric: Metric, tolerance: float) -> str:
    """One sentence on who leaves and why."""
    limit, than = amount(tolerance, metric), gone.against
    chance = f"{gone.chance or 0:.0%}"
    why = {
        "worse": f"it is credibly worse than {than} by more than {limit}",
        "keeps up": f"it credibly keeps up with {than} within {limit}",
        "dearer": f"it costs more than one that keeps up with {than} within {limit}",
        "cannot win": f"it costs more than {than}, and the seeds that are left would bring it "
        f"ahead by more than {limit} with a probability of {chance}",
        "stays open": f"the seeds that are left would settle whether it keeps up with {than} "
        f"with a probability of {chance}",
        "changes nothing": "the verdict stays open because of another, and the seeds that are left "
        f"would find that it keeps up with {than} with a probability of {chance}",
        "constant answer": "it does not beat a constant answer",
        "no usable run": "it has no usable run",
    }[gone.reason]
    return f"{gone.strategy} leaves the race: {why}."
