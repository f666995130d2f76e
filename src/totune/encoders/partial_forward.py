"""Running only some blocks of a transformers model through the model's own forward pass.

The model keeps making its masks, relative positions and rotary tables itself, so nothing of a
type's arithmetic is written twice. To start in the middle, its embeddings are replaced for one
call by the cached states and its list of layers by the upper ones. A block's output is what the
last module of the block returns; once the last wanted block has returned, the forward pass ends.
The replacements are visible to other threads: one model must not run in two threads at once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from torch import Tensor, nn


class Given(nn.Module):
    """Stands in for a model's embeddings: returns the same states however it is called."""

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self.states = states

    def forward(self, *_: Any, **__: Any) -> Tensor:
        return self.states


class Upper(nn.Module):
    """Stands in for a model's list of layers: gives out the upper layers in their order.

    Most models iterate over their list; ALBERT asks for an entry per layer by a number that
    counts from the bottom, which is ignored.
    """

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self._rest = iter(layers)

    def __iter__(self) -> Iterator[nn.Module]:
        return self._rest

    def __getitem__(self, _: int) -> nn.Module:
        return next(self._rest)


@contextmanager
def replaced(model: nn.Module, replacements: Mapping[str, nn.Module | None]) -> Iterator[None]:
    """Puts other modules in the places named (dotted paths), and restores them at the end."""
    kept: list[tuple[nn.Module, str, nn.Module]] = []
    try:
        for path, replacement in replacements.items():
            owner_path, _, name = path.rpartition(".")
            owner = model.get_submodule(owner_path)
            kept.append((owner, name, owner.get_submodule(name)))
            setattr(owner, name, replacement)
        yield
    finally:
        for owner, name, module in reversed(kept):
            setattr(owner, name, module)


class _AllReturned(Exception):
    """Every wanted block has returned; ends the forward pass."""


def outputs_of(closers: Sequence[nn.Module], forward: Callable[[], object]) -> list[Tensor]:
    """Calls `forward` and returns what each of `closers` returns, in their order of running.

    The call ends as soon as the last of them has returned. A module that occurs several times in
    `closers` is expected to run that often.
    """
    outputs: list[Tensor] = []

    def record(_: nn.Module, __: Any, output: Any) -> None:
        outputs.append(output[0] if isinstance(output, tuple) else output)
        if len(outputs) == len(closers):
            raise _AllReturned

    with ExitStack() as hooks:
        for module in dict.fromkeys(closers):
            hooks.callback(module.register_forward_hook(record).remove)
        with suppress(_AllReturned):
            forward()
            raise RuntimeError(f"only {len(outputs)} of {len(closers)} blocks ran")
    return outputs
