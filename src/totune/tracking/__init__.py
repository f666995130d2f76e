"""The numbers of runs in TensorBoard, MLflow or Weights & Biases, through accelerate."""

from totune.tracking.callback import Tracking, check_trackers

__all__ = ["Tracking", "check_trackers"]
