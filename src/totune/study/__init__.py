"""A study from its settings to its report: `compare`, the best model, and reading it back."""
