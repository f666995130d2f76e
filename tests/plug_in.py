"""The exact information of small discrete tables, which estimators are held against."""

from typing import Any

from totune.information import label_entropy


def plug_in_information(x: Any, y: Any) -> float:
    """I(X; Y) = H(X) + H(Y) - H(X, Y) in bits, of pairs of values, or of rows of them."""
    pairs = [(_key(one), _key(other)) for one, other in zip(x, y, strict=True)]
    return max(0.0, label_entropy(x) + label_entropy(y) - label_entropy(pairs))


def _key(value: Any) -> Any:
    return tuple(value) if hasattr(value, "__len__") else value
