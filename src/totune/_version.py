"""The version of the package, which records and caches name."""

__version__ = "0.1.0"
