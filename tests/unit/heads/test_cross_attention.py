import torch

from totune.heads.base import States
from totune.heads.cross_attention import CrossAttention
from totune.modules.tokens import Tokens
from totune.tasks.classification import Classification

TASK = Classification(("no", "yes"))


def test_the_linear_layer_is_all_it_learns() -> None:
    module = CrossAttention().build(6, TASK)
    shapes = {name: tuple(p.shape) for name, p in module.named_parameters()}
    assert shapes == {"out.weight": (2, 16 * 6), "out.bias": (2,)}


def test_output_of_one_pair_by_hand() -> None:
    module = CrossAttention().build(2, TASK).double().eval()
    first = torch.tensor([[[1.0, 2.0]]]).double()
    second = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]).double()
    pair = (Tokens(s, torch.ones(s.shape[:2], dtype=torch.bool)) for s in (first, second))
    found = module(States(tokens=tuple(pair)))

    weight = torch.tensor([2.0, 1.0]).double().softmax(0)  # the dot products are 2 and 1
    x, y = first[0, 0], torch.stack([weight[1], weight[0]])  # what the one token finds
    one = torch.cat([x, y, x - y, x * y])
    other = torch.stack([torch.cat([z, x, z - x, z * x]) for z in second[0]])
    pooled = torch.cat([one, one, other.mean(0), other.amax(0)])
    torch.testing.assert_close(found[0], module.out.weight @ pooled + module.out.bias)


def test_without_attention_the_linear_layer_reads_each_text_alone() -> None:
    module = CrossAttention(attend=False).build(2, TASK).double().eval()
    assert module.out.weight.shape == (2, 4 * 2)
    first = torch.tensor([[[1.0, 2.0], [9.0, 9.0]]]).double()
    second = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]).double()
    masks = torch.tensor([[True, False]]), torch.tensor([[True, True]])
    found = module(States(tokens=(Tokens(first, masks[0]), Tokens(second, masks[1]))))
    pooled = torch.tensor([1.0, 2.0, 1.0, 2.0, 0.5, 0.5, 1.0, 1.0]).double()
    torch.testing.assert_close(found[0], module.out.weight @ pooled + module.out.bias)
