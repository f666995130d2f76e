"""Attempts to lose what is the user's, or to have damage believed: `python -m campaign`."""
