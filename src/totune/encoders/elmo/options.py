"""What shape a network has: the official `options.json`, checked."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from totune.encoders.elmo.characters import CHARACTERS
from totune.errors import ModelError

_ACTIVATIONS = ("relu", "tanh")
_MARKERS = 2  # places of a word that say where it begins and ends


@dataclass(frozen=True)
class ElmoOptions:
    """The shape of a network, and what else decides its output apart from weights.

    Attributes:
        projection_size: P, of a direction's output, and of a word's vector.
        cell_size: D, of a direction's memory.
        layers: how many there are above the words' vectors.
        cell_clip: the largest magnitude in a memory cell, or None.
        projection_clip: likewise in an output.
        residual: whether every layer but the lowest adds its input to its output.
        character_size: of a character's vector.
        filters: of the convolutions over characters, (width, number of filters).
        highway_layers: after the convolutions.
        word_length: characters that are read of a word, with its begin and its end.
        activation: "relu" or "tanh", of the convolutions.
    """

    projection_size: int
    cell_size: int
    layers: int
    cell_clip: float | None
    projection_clip: float | None
    residual: bool
    character_size: int
    filters: tuple[tuple[int, int], ...]
    highway_layers: int
    word_length: int = 50
    activation: str = "relu"

    @property
    def features(self) -> int:
        """How many numbers the convolutions make of a word."""
        return sum(count for _, count in self.filters)

    @classmethod
    def from_json(cls, facts: object, place: str) -> "ElmoOptions":
        """Reads the content of an official `options.json`.

        Entries that concern the training of the language model are not read.

        Args:
            facts: the parsed file.
            place: what to call it in messages.

        Raises:
            ModelError: if an entry is missing, or is not what this network can have.
        """
        entries = _Entries(facts, place)
        entries.check_alphabet()
        options = cls(
            projection_size=entries.count("lstm.projection_dim"),
            cell_size=entries.count("lstm.dim"),
            layers=entries.count("lstm.n_layers"),
            cell_clip=entries.clip("lstm.cell_clip"),
            projection_clip=entries.clip("lstm.proj_clip"),
            residual=entries.flag("lstm.use_skip_connections"),
            character_size=entries.count("char_cnn.embedding.dim"),
            filters=entries.filters("char_cnn.filters"),
            highway_layers=entries.count("char_cnn.n_highway", least=0, default=0),
            word_length=entries.count("char_cnn.max_characters_per_token"),
            activation=entries.choice("char_cnn.activation", _ACTIVATIONS),
        )
        entries.check_sizes(options)
        return options

    def to_json(self) -> dict[str, Any]:
        """The same as the content of an official `options.json`."""
        return {
            "lstm": {
                "cell_clip": self.cell_clip,
                "use_skip_connections": self.residual,
                "n_layers": self.layers,
                "proj_clip": self.projection_clip,
                "projection_dim": self.projection_size,
                "dim": self.cell_size,
            },
            "char_cnn": {
                "embedding": {"dim": self.character_size},
                "filters": [list(pair) for pair in self.filters],
                "n_highway": self.highway_layers,
                "n_characters": CHARACTERS + 1,
                "max_characters_per_token": self.word_length,
                "activation": self.activation,
            },
        }

    def describe(self) -> str:
        """Everything, in one line."""
        return ", ".join(f"{name}={value}" for name, value in asdict(self).items())


class _Entries:
    """The entries of a nested object by dotted names, each checked as it is read."""

    def __init__(self, facts: object, place: str) -> None:
        self._facts, self._place = facts, place

    def count(self, name: str, least: int = 1, default: int | None = None) -> int:
        value = self._get(name, default)
        if type(value) is not int or value < least:
            self._refuse(name, value, f"a whole number from {least}")
        return value

    def clip(self, name: str) -> float | None:
        value = self._get(name, 0.0)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value < float("inf"):
            self._refuse(name, value, "a positive number, or null for no limit")
        return float(value) or None

    def flag(self, name: str) -> bool:
        value = self._get(name, False)
        if not isinstance(value, bool):
            self._refuse(name, value, "true or false")
        return value

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self._get(name)
        if value not in allowed:
            self._refuse(name, value, " or ".join(repr(one) for one in allowed))
        return str(value)

    def filters(self, name: str) -> tuple[tuple[int, int], ...]:
        value = self._get(name)
        if not (isinstance(value, list) and value and all(map(_is_filter, value))):
            self._refuse(name, value, "a list of [width, number of filters]")
        return tuple((width, count) for width, count in value)

    def check_alphabet(self) -> None:
        name = "char_cnn.n_characters"
        value = self._get(name)
        if value != CHARACTERS + 1:
            hint = " (261 is what the training of a language model writes)"
            self._refuse(name, value, f"{CHARACTERS + 1}{hint if value == CHARACTERS else ''}")

    def check_sizes(self, options: ElmoOptions) -> None:
        widest = max(width for width, _ in options.filters)
        least = max(widest, _MARKERS + 1)
        if options.word_length < least:
            name = "char_cnn.max_characters_per_token"
            self._refuse(name, options.word_length, f"{least} or more, as the filters are")
        if options.projection_size >= options.cell_size:
            wanted = f"smaller than lstm.dim ({options.cell_size})"
            self._refuse("lstm.projection_dim", options.projection_size, wanted)

    def _get(self, name: str, default: Any = None) -> Any:
        """The entry, or the default where it is missing or null."""
        found: Any = self._facts
        for step in name.split("."):
            if not isinstance(found, Mapping):
                raise ModelError(f"{self._place} does not describe an ELMo: it has no {name}.")
            found = found.get(step)
            if found is None:
                break
        if found is None and default is None:
            raise ModelError(f"{self._place} lacks {name}, which says how the network is built.")
        return default if found is None else found

    def _refuse(self, name: str, value: object, wanted: str) -> NoReturn:
        raise ModelError(f"{self._place}: {name} is {value!r}; it must be {wanted}.")


def _is_filter(entry: Any) -> bool:
    pair = isinstance(entry, list) and len(entry) == 2
    return pair and all(type(size) is int and size > 0 for size in entry)
