import pytest
import torch

from totune.modules.maxout import Maxout


@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 3, 5), (0, 5)])
def test_the_largest_of_adjacent_rows(shape: tuple[int, ...]) -> None:
    maxout = Maxout(5, 3, 2).double()
    vectors = torch.randn(shape, dtype=torch.float64)
    linear = vectors @ maxout.linear.weight.T + maxout.linear.bias
    units = [torch.maximum(linear[..., 2 * u], linear[..., 2 * u + 1]) for u in range(3)]
    torch.testing.assert_close(maxout(vectors), torch.stack(units, dim=-1))


def test_only_the_largest_row_of_a_unit_learns() -> None:
    maxout = Maxout(1, 2, 3)
    with torch.no_grad():
        maxout.linear.weight.copy_(torch.tensor([[0.0], [2.0], [1.0], [5.0], [4.0], [3.0]]))
        maxout.linear.bias.zero_()
    maxout(torch.ones(1, 1)).sum().backward()
    assert maxout.linear.weight.grad.squeeze(-1).tolist() == [0, 1, 0, 1, 0, 0]
