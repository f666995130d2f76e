import torch

from totune.heads.base import States
from totune.heads.siamese import Siamese
from totune.tasks.regression import Regression


def test_output_by_hand() -> None:
    module = Siamese().build(2, Regression(0.0, 5.0)).double().eval()
    with torch.no_grad():
        module.out.weight.copy_(10.0 ** torch.arange(8))
        module.out.bias.fill_(0.5)
        u, v = torch.tensor([[1.0, 2.0]]).double(), torch.tensor([[3.0, 1.0]]).double()
        found = module(States(vectors=(u, v)))
    # [u; v; |u - v|; u * v] = [1 2; 3 1; 2 1; 3 2], a digit each from the right
    assert found.tolist() == [[23121321.5]]
