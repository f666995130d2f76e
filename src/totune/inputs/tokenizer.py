"""What is asked of a tokenizer: transformers' fast ones answer it, and our own for words."""

from pathlib import Path
from typing import Any, Protocol

from transformers import BatchEncoding


class Tokenizer(Protocol):
    """Cuts texts into pieces, called as a fast tokenizer of transformers is."""

    model_max_length: int
    name_or_path: str

    @property
    def is_fast(self) -> bool: ...

    @property
    def pad_token_id(self) -> Any: ...

    @property
    def unk_token_id(self) -> Any: ...

    @property
    def model_input_names(self) -> Any: ...

    def __call__(self, *args: Any, **kwargs: Any) -> BatchEncoding: ...

    def num_special_tokens_to_add(self, pair: bool = False) -> int: ...

    def save_pretrained(self, folder: Path, /) -> Any: ...
