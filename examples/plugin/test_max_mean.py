"""The head behaves like totune's own."""

from totune_max_mean import MaxMean

from totune.testing import check_head


def test_the_head_conforms() -> None:
    """Shapes, gradients, padding, seeds, saving."""
    check_head(MaxMean())
