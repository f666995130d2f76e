"""The frozen-prefix cache: what a frozen block says of an example is computed once, then read."""

from totune.features.cache import FeatureCache
from totune.features.fill import compute
from totune.features.fingerprint import prefix_fingerprint
from totune.features.folder import Entry
from totune.features.rows import Features, Selection
from totune.features.sizes import format_size, parse_size

__all__ = [
    "Entry",
    "FeatureCache",
    "Features",
    "Selection",
    "compute",
    "format_size",
    "parse_size",
    "prefix_fingerprint",
]
