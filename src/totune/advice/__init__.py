"""From the runs of a study to a recommendation in words and numbers."""

from totune.advice.advising import Advice, advise
from totune.advice.comparing import Comparison
from totune.advice.ensembles import Ensemble, find_ensembles
from totune.advice.standings import Standing

__all__ = ["Advice", "Comparison", "Ensemble", "Standing", "advise", "find_ensembles"]
