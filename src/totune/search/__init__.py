"""The best options of each strategy, found on dev by Optuna."""
