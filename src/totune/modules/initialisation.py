"""How heavy networks start (He et al. 2015, as Wang et al. 2019 start what they stack on BERT)."""

from torch import nn


def kaiming_(module: nn.Module) -> None:
    """Draws every matrix and filter from N(0, 2 / fan_in) and sets every bias to zero.

    Scales of normalisation layers stay at one. Gates and attention, for which He et al. derive
    nothing, get the same draw.
    """
    for name, parameter in module.named_parameters():
        if parameter.dim() > 1:
            nn.init.kaiming_normal_(parameter, nonlinearity="relu")
        elif "bias" in name.rpartition(".")[2]:
            nn.init.zeros_(parameter)
