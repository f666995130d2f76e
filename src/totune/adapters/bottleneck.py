"""Bottleneck adapters as modules (Houlsby et al. 2019): a small network beside a residual.

Shapes: d is the width of a hidden state, m that of the bottleneck, `...` any leading dimensions.
"""

from typing import Literal

from torch import Tensor, nn

Activation = Literal["gelu", "relu"]
_ACTIVATIONS: dict[str, type[nn.Module]] = {"gelu": nn.GELU, "relu": nn.ReLU}
INIT_STD = 1e-2  # Houlsby et al. 2019, section 3.6; truncated at two standard deviations


class Bottleneck(nn.Module):
    """A(z) = up(act(down(z))), without its own skip: 2md + d + m parameters.

    Args:
        width: d.
        size: m.
        activation: "gelu" is the exact one, with the error function.
    """

    def __init__(self, width: int, size: int, activation: Activation) -> None:
        super().__init__()
        self.down = nn.Linear(width, size)
        self.activation = _ACTIVATIONS[activation]()
        self.up = nn.Linear(size, width)
        for layer in (self.down, self.up):
            nn.init.trunc_normal_(layer.weight, std=INIT_STD, a=-2 * INIT_STD, b=2 * INIT_STD)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Tensor) -> Tensor:
        """From states [..., d] what is to be added to them, [..., d]."""
        added: Tensor = self.up(self.activation(self.down(states)))
        return added


class Adapted(nn.Module):
    """A sublayer's last module with an adapter behind it: z + A(z), z being what it returns.

    Args:
        inner: the module that is replaced.
        adapter: one module may serve several places.

    Attributes:
        active: whether the adapter is computed.
    """

    def __init__(self, inner: nn.Module, adapter: Bottleneck) -> None:
        super().__init__()
        self.inner = inner
        self.adapter = adapter
        self.active = True

    @property
    def replaced(self) -> nn.Module:
        """The module as it is now in whose place this one stands."""
        return self.inner

    def forward(self, states: Tensor) -> Tensor:
        output: Tensor = self.inner(states)
        return output + self.adapter(output) if self.active else output


class AdaptedNorm(nn.Module):
    """A layer norm with an adapter before it: LN(x + A(LN(x))), one norm used twice.

    Args:
        norm: the layer norm that is replaced; x is the sum of residual and sublayer.
        adapter: one module may serve several places.

    Attributes:
        active: whether the adapter is computed.
    """

    def __init__(self, norm: nn.Module, adapter: Bottleneck) -> None:
        super().__init__()
        self.norm = norm
        self.adapter = adapter
        self.active = True

    @property
    def replaced(self) -> nn.Module:
        """The module as it is now in whose place this one stands."""
        return self.norm

    def forward(self, states: Tensor) -> Tensor:
        if self.active:
            states = states + self.adapter(self.norm(states))
        normed: Tensor = self.norm(states)
        return normed
