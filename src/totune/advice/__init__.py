"""From the runs of a study to a recommendation in words and numbers."""

from totune.advice.advice import Advice, advise
from totune.advice.compare import Comparison
from totune.advice.ensembles import Ensemble, find_ensembles
from totune.advice.summary import StrategySummary

__all__ = ["Advice", "Comparison", "Ensemble", "StrategySummary", "advise", "find_ensembles"]
