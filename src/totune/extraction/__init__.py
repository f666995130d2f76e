"""Vectors of large corpora: any number of rows, in shards, with flat memory."""

from totune.extraction.extract import extract
from totune.extraction.settings import ExtractionSettings
from totune.extraction.shards import Extracted, Shard, open_features

__all__ = ["Extracted", "ExtractionSettings", "Shard", "extract", "open_features"]
