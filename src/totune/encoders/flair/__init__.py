"""Flair's language models over characters, forward and backward (Akbik et al. 2018)."""
