"""What shape a pair of language models has, and which characters they know, checked."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from totune.errors import ModelError

UNKNOWN = "<unk>"  # number 0 of every alphabet: what is not in it
FORWARD, BACKWARD = "forward", "backward"

Alphabet = tuple[str, ...]  # characters in the order of their numbers


@dataclass(frozen=True)
class FlairOptions:
    """The shape of both models, one layer each, and their alphabets.

    Attributes:
        hidden_size: D, of a model's state.
        embedding_size: E, of a character's vector; at most D.
        forward: the alphabet of the model that reads forward.
        backward: of the other one.
    """

    hidden_size: int
    embedding_size: int
    forward: Alphabet
    backward: Alphabet

    @classmethod
    def from_json(cls, facts: object, place: str) -> "FlairOptions":
        """Reads the content of a `config.json`.

        Args:
            facts: the parsed file: of each direction its sizes and `item2idx`, the numbers of
                characters.
            place: what to call it in messages.

        Raises:
            ModelError: if an entry is missing, or is not what this network can have.
        """
        ways = [_Direction(facts, name, place) for name in (FORWARD, BACKWARD)]
        for way in ways:
            way.check_kind()
        (hidden_size, embedding_size), others = (way.sizes() for way in ways)
        if others != (hidden_size, embedding_size):
            raise ModelError(
                f"{place}: the forward model has the sizes {(hidden_size, embedding_size)} of its "
                f"state and of a character, the backward model {others}; they must be alike."
            )
        return cls(hidden_size, embedding_size, *(way.alphabet() for way in ways))

    def to_json(self) -> dict[str, Any]:
        """The same as the content of a `config.json`."""
        return {
            name: {
                "hidden_size": self.hidden_size,
                "nlayers": 1,
                "embedding_size": self.embedding_size,
                "is_forward_lm": name == FORWARD,
                "item2idx": {item: number for number, item in enumerate(alphabet)},
            }
            for name, alphabet in ((FORWARD, self.forward), (BACKWARD, self.backward))
        }

    def describe(self) -> str:
        """Everything, in one line; of the alphabets a hash."""
        alphabets = repr((self.forward, self.backward)).encode()
        return (
            f"hidden_size={self.hidden_size}, embedding_size={self.embedding_size}, "
            f"alphabets={hashlib.sha256(alphabets).hexdigest()[:16]}"
        )


class _Direction:
    """The entries of one model, each checked as it is read."""

    def __init__(self, facts: object, name: str, place: str) -> None:
        entries = facts.get(name) if isinstance(facts, Mapping) else None
        if not isinstance(entries, Mapping):
            raise ModelError(
                f"{place} does not describe Flair's language models: it has no {name!r}; there "
                f"must be a {FORWARD!r} and a {BACKWARD!r} model."
            )
        self._entries, self._name, self._place = entries, name, place

    def check_kind(self) -> None:
        """Refuses more than one layer, and a model that reads the other way."""
        layers = self._get("nlayers")
        if layers != 1 or isinstance(layers, bool):
            self._refuse("nlayers", layers, "1, as in the models that Flair publishes")
        forward, wanted = self._get("is_forward_lm"), self._name == FORWARD
        if forward is not wanted:
            self._refuse("is_forward_lm", forward, "true" if wanted else "false")

    def sizes(self) -> tuple[int, int]:
        """Of the state, and of a character's vector."""
        hidden_size, embedding_size = self._count("hidden_size"), self._count("embedding_size")
        if embedding_size > hidden_size:
            self._refuse("embedding_size", embedding_size, f"at most hidden_size ({hidden_size})")
        return hidden_size, embedding_size

    def alphabet(self) -> Alphabet:
        """The characters in the order of their numbers, which run from 0."""
        numbers = self._get("item2idx")
        valid = isinstance(numbers, Mapping) and all(type(n) is int for n in numbers.values())
        if not valid or sorted(numbers.values()) != list(range(len(numbers))):
            self._refuse(
                "item2idx", "damaged", "an object that numbers characters from 0 without gaps"
            )
        if numbers.get(UNKNOWN) != 0:
            self._refuse(f"item2idx[{UNKNOWN!r}]", numbers.get(UNKNOWN), "0")
        return tuple(sorted(numbers, key=numbers.__getitem__))

    def _count(self, name: str) -> int:
        value = self._get(name)
        if type(value) is not int or value < 1:
            self._refuse(name, value, "a whole number from 1")
        return value

    def _get(self, name: str) -> Any:
        if name not in self._entries:
            raise ModelError(
                f"{self._place} lacks {self._name}.{name}, which says how the network is built."
            )
        return self._entries[name]

    def _refuse(self, name: str, value: object, wanted: str) -> NoReturn:
        raise ModelError(f"{self._place}: {self._name}.{name} is {value!r}; it must be {wanted}.")
