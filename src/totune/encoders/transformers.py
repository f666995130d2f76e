"""Any BERT-family model of transformers as a stack of blocks."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from totune.encoders.encoder import Cached, Encoder, LayerStack
from totune.encoders.first_token import only_first_token
from totune.encoders.kernels import accelerate_encoder
from totune.encoders.layouts import Layout, layout_of
from totune.encoders.own_format import fingerprint_of
from totune.encoders.partial_forward import Given, Upper, outputs_of, replaced
from totune.inputs.batches import Batch

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

# What a configuration says about its origin, storage or later use, not about the encoder.
_NOT_IDENTITY = frozenset(
    {"architectures", "auto_map", "dtype", "id2label", "label2id", "problem_type", "torch_dtype"}
    | {"return_dict", "output_attentions", "output_hidden_states", "transformers_version"}
    | {"use_cache"}
)


Attention = Literal["sdpa", "eager"]
# What to ask transformers for: left to itself it takes sdpa for the types that have it, and eager
# for the others, where asking for sdpa is an error.
ATTENTIONS: dict[Attention, str | None] = {"sdpa": None, "eager": "eager"}


class TransformersEncoder(Encoder):
    """A transformers `AutoModel` seen as blocks; one instance runs in one thread at a time.

    Args:
        model: a model of one of the types in `layouts.LAYOUTS`.

    Attributes:
        model: the same model, whole; its `state_dict` keeps transformers' names.
        prefix: what comes before the text in every layer, if an insert has put something there:
            called with the attention mask [B, T], it says what the model is given instead.

    Raises:
        ModelError: if the model's type is not among the supported ones.
    """

    def __init__(self, model: "PreTrainedModel") -> None:
        super().__init__()
        config = model.config
        self.kind = config.model_type
        self._layout = layout_of(self.kind)
        self.model = model
        self.prefix: nn.Module | None = None
        self.width = config.hidden_size
        self.depth = config.num_hidden_layers
        self.max_length = position_limit(config, self._layout)
        accepts_segments = "token_type_ids" in inspect.signature(model.forward).parameters
        self._has_segments = accepts_segments and getattr(config, "type_vocab_size", 0) > 1

    @classmethod
    def from_config(
        cls, config: "PretrainedConfig", attn_implementation: Attention = "sdpa"
    ) -> "TransformersEncoder":
        """An encoder with random float32 weights.

        Under `with torch.device("meta")` no memory is allocated, which is enough for counting
        parameters.

        Args:
            config: of a supported type.
            attn_implementation: "sdpa" (where the type has none: eager) or "eager".
        """
        from transformers import AutoModel

        layout_of(config.model_type)
        model = AutoModel.from_config(  # type: ignore[no-untyped-call]
            config, dtype=torch.float32, attn_implementation=ATTENTIONS[attn_implementation]
        )
        return cls(model)

    @property
    def pooler(self) -> nn.Module | None:
        """The pretrained map from the first token's state [B, H] to a sentence vector [B, H]."""
        names = self._present(self._layout.pooler)
        if not names or len(names) < len(self._layout.pooler):
            return None
        return nn.Sequential(*(self.model.get_submodule(name) for name in names))

    def encode(
        self, batch: Batch, start: Cached | None = None, stop: int | None = None
    ) -> LayerStack:
        """The outputs of every block from `start` (or the embeddings) up to `stop` (or the top).

        Raises:
            ValueError: if `start` and `stop` are not depths of this encoder in rising order.
        """
        first = -1 if start is None else start.depth
        last = self.depth if stop is None else stop
        if not max(first, 0) <= last <= self.depth:
            raise ValueError(f"cannot run from depth {first} to {last} of {self.depth}")
        if start is None:
            return LayerStack(0, tuple(self._run_whole(batch, last)))
        states = self._fitting(start.states)
        above = self._run_above(batch, first, states, last) if last > first else []
        return LayerStack(first, (states, *above))

    def block_modules(self, depth: int) -> Mapping[str, nn.Module]:
        layout = self._layout
        if depth == 0:
            names = [*layout.embeddings, *layout.shared]
        else:
            names = [f"{layout.layers}.{self._entry(depth)}"]
            if depth == 1 and layout.after_first:
                names.append(layout.after_first)
            if depth == self.depth and layout.after_last:
                names.append(layout.after_last)
        found = {f"model.{name}": self.model.get_submodule(name) for name in self._present(names)}
        return found | {"prefix": self.prefix} if depth == 0 and self.prefix else found

    def layer(self, depth: int) -> nn.Module:
        """Layer `depth`, from 1; where layers share weights, the same module for several."""
        return self._layers()[depth - 1]

    def reinitialise(self, depths: Sequence[int]) -> None:
        """Gives the blocks of these depths, and the pooler, random weights as before pretraining.

        Drawn from torch's generator, as transformers initialises this type of model.
        """
        blocks = [module for depth in depths for module in self.block_modules(depth).values()]
        for module in blocks if self.pooler is None else [*blocks, self.pooler]:
            for parameter in module.parameters():
                marked: Any = parameter  # transformers leaves alone what it has loaded
                marked._is_hf_initialized = False
            module.apply(self.model._init_weights)

    def read_first_token_only(self) -> None:
        if self.prefix is None:  # that path would leave it out
            only_first_token(self.model)

    def prepare_training(self, device: torch.device) -> None:
        accelerate_encoder(self.model, device)

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(folder)

    def fingerprint(self) -> str:
        """A hash (32 hexadecimal digits) of the configuration and the weights as they are now."""
        facts = {
            name: value
            # What is not the default: a later version of transformers knows more options.
            for name, value in self.model.config.to_diff_dict().items()
            if name not in _NOT_IDENTITY and not name.startswith("_")
        }
        return fingerprint_of(facts, self._weights())

    def _weights(self) -> dict[str, Tensor]:
        """Every tensor by name; those of a prefix are called by other names than the model's."""
        before = {} if self.prefix is None else self.prefix.state_dict(prefix="prefix.")
        return {**self.model.state_dict(), **before}

    def _run_whole(self, batch: Batch, last: int) -> list[Tensor]:
        """Outputs of blocks 0..last, each [B, T, H]."""
        inputs = {"input_ids": batch.input_ids, **self._seen(batch)}
        if self._has_segments and batch.token_type_ids is not None:
            inputs["token_type_ids"] = batch.token_type_ids
        return outputs_of(self._closers()[: last + 1], lambda: self.model(**inputs))

    def _run_above(self, batch: Batch, first: int, states: Tensor, last: int) -> list[Tensor]:
        """Outputs of blocks first + 1..last, each [B, T, H], from block `first`'s output."""
        layout = self._layout
        below, *projections = self._present(layout.embeddings)
        replacements: dict[str, nn.Module | None] = {below: Given(states)}
        replacements.update((name, nn.Identity()) for name in projections)
        replacements[layout.layers] = Upper(self._layers()[first:])
        if first >= 1:
            # transformers runs this module after whichever layer comes first in the list.
            replacements.update((name, None) for name in self._present([layout.after_first]))
        closers = self._closers()[first + 1 : last + 1]
        with replaced(self.model, replacements):
            return outputs_of(
                closers, lambda: self.model(inputs_embeds=states, **self._seen(batch))
            )

    def _seen(self, batch: Batch) -> dict[str, Any]:
        """The model's inputs that say what its attention sees."""
        if self.prefix is None:
            return {"attention_mask": batch.attention_mask}
        seen: dict[str, Any] = self.prefix(batch.attention_mask)
        return seen

    def _closers(self) -> list[nn.Module]:
        """For each block, the module whose output is the block's output."""
        layout = self._layout
        bottom = self._present(layout.embeddings)[-1]
        closers = [self.model.get_submodule(bottom), *self._layers()]
        for depth, name in ((1, layout.after_first), (self.depth, layout.after_last)):
            for present in self._present([name]):
                closers[depth] = self.model.get_submodule(present)
        return closers

    def _layers(self) -> list[nn.Module]:
        entries: Any = self.model.get_submodule(self._layout.layers)
        return [entries[self._entry(depth)] for depth in range(1, self.depth + 1)]

    def _entry(self, depth: int) -> int:
        """Where layer `depth` (from 1) is in the list of layers, written as ALBERT computes it."""
        entries: Any = self.model.get_submodule(self._layout.layers)
        return int((depth - 1) / (self.depth / len(entries)))

    def _present(self, names: Sequence[str | None]) -> list[str]:
        """Those of `names` that this model has: some modules depend on its configuration."""
        return [name for name in names if name and _has_module(self.model, name)]

    def _fitting(self, states: Tensor) -> Tensor:
        """Cached states in the weights' precision, where autocast does not see to it."""
        if torch.is_autocast_enabled(states.device.type):
            return states
        return states.to(next(self.model.parameters()).dtype)


def _has_module(model: nn.Module, name: str) -> bool:
    owner: Any = model
    for step in name.split("."):
        owner = getattr(owner, step, None)
    return isinstance(owner, nn.Module)


def position_limit(config: "PretrainedConfig", layout: Layout) -> int:
    """The longest input, in word pieces, that the position table has room for."""
    taken = (config.pad_token_id or 0) + 1 if layout.positions_after_padding else 0
    return int(config.max_position_embeddings) - taken
