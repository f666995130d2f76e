"""What several strategies say alike: a rate per block, a schedule by name, what is inserted."""

from typing import Literal

from totune.strategies.phases import (
    Constant,
    Curve,
    Epochs,
    Group,
    LinearDecay,
    Phase,
    Plateau,
    SlantedTriangular,
    Stop,
)

ScheduleName = Literal["linear", "slanted-triangular", "constant"]


def schedule_of(name: ScheduleName, warmup_ratio: float, ratio: float = 32.0) -> Curve:
    """The schedule called `name`; its rate rises over the first `warmup_ratio` of the steps."""
    if name == "constant":
        return Constant()
    if name == "linear":
        return LinearDecay(warmup_ratio)
    return SlantedTriangular(warmup_ratio, ratio)


def stop_after(num_train_epochs: int, patience: int | None) -> Stop:
    """All epochs, or fewer where dev has not improved for `patience` of them."""
    return Epochs(num_train_epochs) if patience is None else Plateau(num_train_epochs, patience)


def new_parts(learning_rate: float, weight_decay: float) -> tuple[Group, ...]:
    """What is not pretrained: head and mixing."""
    return tuple(Group(part, learning_rate, weight_decay) for part in ("head", "mixing"))


def above_layers(learning_rate: float, weight_decay: float) -> tuple[Group, ...]:
    """What lies above the encoder's layers: head, mixing and the pretrained pooler."""
    return (*new_parts(learning_rate, weight_decay), Group("pooler", learning_rate, weight_decay))


def by_block(
    depth: int, learning_rate: float, weight_decay: float, layer_decay: float
) -> tuple[Group, ...]:
    """A group per block, top to bottom: layers `depth`..1, then the embeddings.

    Discriminative fine-tuning (Howard and Ruder 2018, section 3.1): each block trains at
    `layer_decay` times the rate of the one above it, the top layer at that times the head's.
    """
    blocks = (*(f"layer.{d}" for d in range(depth, 0, -1)), "embeddings")
    return tuple(
        Group(block, learning_rate * layer_decay**below, weight_decay)
        for below, block in enumerate(blocks, start=1)
    )


def insert_phase(
    name: str,
    rates: tuple[float, float],
    stop: Stop,
    warmup_ratio: float,
    *more: Group,
) -> Phase:
    """Training of what was inserted, and of head and mixing; the pretrained pooler stays frozen.

    Args:
        name: of the phase.
        rates: learning rate and weight decay.
        stop: of the phase.
        warmup_ratio: share of the steps with rising rate; it then falls linearly to 0.
        more: what else trains.
    """
    own = (*new_parts(*rates), Group("*", *rates, ("inserted",)))
    return Phase(name, (*own, *more), LinearDecay(warmup_ratio), stop)
