"""Estimators of information: arrays or texts in, bits (of divergence also nats) out."""

from totune.information.divergence import (
    TermOptions,
    corpus_divergence,
    count_terms,
    jensen_shannon,
    shared_vocabulary,
    term_distribution,
)
from totune.information.edge import Edge
from totune.information.entropy import label_entropy
from totune.information.neighbours import NearestNeighbours

__all__ = [
    "Edge",
    "NearestNeighbours",
    "TermOptions",
    "corpus_divergence",
    "count_terms",
    "jensen_shannon",
    "label_entropy",
    "shared_vocabulary",
    "term_distribution",
]
