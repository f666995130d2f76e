"""Words as they stand, for encoders that read a word by its characters.

Such an encoder has no fixed vocabulary: every word gets a number when it is first seen, which means
nothing but the word. `WordTokenizer` answers what totune asks of a tokenizer of transformers.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from totune.errors import ModelError

if TYPE_CHECKING:
    from transformers import BatchEncoding

PADDING, BEGIN, END, EMPTY = range(4)  # numbers that are no words of a text; EMPTY is ""
RULES_FILE = "word_tokenizer.json"

# How a text is split into words: the first alternative that fits.
_CLITIC = r"['\u2019](?:s|t|d|m|re|ve|ll)\b"
_WORD = rf"""
    (?<!\S)n['\u2019]t(?!\S)                       # of text in which words are already set apart
  | (?:[^\W\d_]\.){{2,}}(?!\w)                # U.S.
  | {_CLITIC}
  | \w+(?:(?!{_CLITIC})(?:[-.'\u2019&@/]|(?<=\d)[,:](?=\d))\w+)*    # e-mail, 3.50, 10,000, O'Neil
  | ([^\w\s])\1*                              # a mark, or several of one kind
"""
_RULES = {
    "kind": "totune words",
    "version": 1,
    "text": " ".join(re.sub(r"#.*", "", _WORD).split()),
    "words": "set apart by single spaces",
}


class Vocabulary:
    """Numbers of words, given in the order of appearance and never changed.

    Words are only ever added, so memory grows with the words that a process has seen. Copies of
    an encoder share its vocabulary, and so know what was tokenised after the copy.
    """

    def __init__(self) -> None:
        self._words = [""] * (EMPTY + 1)
        self._numbers = {"": EMPTY}

    def __len__(self) -> int:
        return len(self._words)

    def __deepcopy__(self, _: dict[int, Any]) -> "Vocabulary":
        return self

    def number(self, word: str) -> int:
        """The word's number; a new one if the word is new."""
        found = self._numbers.get(word)
        if found is None:
            found = self._numbers[word] = len(self._words)
            self._words.append(word)
        return found

    def words(self, start: int) -> Sequence[str]:
        """The words from number `start` on; those up to END are no words and read as empty."""
        return self._words[start:]


@dataclass(frozen=True)
class WordEncoding:
    """One tokenised text or pair, as far as totune reads the encodings of `tokenizers`.

    Attributes:
        ids: numbers of words.
        spans: where each stands in its text, (start, end).
        sequence_ids: of each, 0 in the first text, 1 in the second, None between them.
        overflowing: the row that was cut off, if any, as `tokenizers` has it: true or false is
            all that is asked.
    """

    ids: list[int]
    spans: list[tuple[int, int]]
    sequence_ids: list[int | None]
    overflowing: bool

    def data(self) -> dict[str, list[Any]]:
        special = [int(side is None) for side in self.sequence_ids]
        return {
            "input_ids": self.ids,
            "attention_mask": [1] * len(self.ids),
            "special_tokens_mask": special,
            "offset_mapping": self.spans,
        }


@dataclass(frozen=True)
class _Rules:
    """Stands in for the tokenizer inside a fast tokenizer: it is asked for its rules only."""

    def to_str(self) -> str:
        return json.dumps(_RULES)


class WordTokenizer:
    """Cuts texts into words; called as a fast tokenizer of transformers is.

    A text is split at white space, and within it punctuation is set apart, except inside a word
    (e-mail, 3.50) and in U.S.; a mark that is repeated stays one (... or --), and from the end of a
    word 's, 't, 're and their like are set apart, as in the text that ELMo was trained on
    (Chelba et al. 2013). Scripts without spaces are not split.

    Where `add_special_tokens` is false, a text is words joined by single spaces, and each is left
    as it is: so words that are tagged reach the tokenizer.

    A single text gets no special pieces; what an encoder puts around a sentence it puts there
    itself, and nobody sees it. Between the texts of a pair stands the end of a sentence. An empty
    text is one empty word, so that no row is empty.

    Args:
        vocabulary: shared with the encoder.
        model_max_length: in words.
        name_or_path: for messages.
    """

    is_fast = True
    pad_token_id = PADDING
    unk_token_id = EMPTY
    model_input_names = ("input_ids", "attention_mask")
    backend_tokenizer = _Rules()
    _pattern = re.compile(_WORD, re.VERBOSE | re.IGNORECASE)

    def __init__(
        self, vocabulary: Vocabulary, model_max_length: int, name_or_path: str = ""
    ) -> None:
        self.vocabulary = vocabulary
        self.model_max_length = model_max_length
        self.name_or_path = name_or_path

    def __call__(
        self,
        text: str | Sequence[str],
        text_pair: str | Sequence[str] | None = None,
        *,
        add_special_tokens: bool = True,
        truncation: bool | str = False,
        max_length: int | None = None,
        return_attention_mask: bool = True,
        return_offsets_mapping: bool = False,
        return_special_tokens_mask: bool = False,
        verbose: bool = True,
    ) -> "BatchEncoding":
        """Texts or pairs as numbers of words.

        Args:
            text: one, or several.
            text_pair: the second text of each.
            add_special_tokens: see the class.
            truncation: whether texts are cut to `max_length`; of a pair the longer is cut first.
            max_length: of a row, by default `model_max_length`.
            return_attention_mask: and the two after it, what to give beside `input_ids`.
            return_offsets_mapping: where each word stands in its text, in characters.
            return_special_tokens_mask: 1 for what is no word of a text.
            verbose: not read: there is nothing to warn of.
        """
        limit = (max_length or self.model_max_length) if truncation else None
        texts = [text] if isinstance(text, str) else text
        seconds = [text_pair] if isinstance(text_pair, str) else text_pair
        pairs: Iterator[tuple[str, ...]] = (
            ((own,) for own in texts) if seconds is None else zip(texts, seconds, strict=True)
        )
        rows = [self._row(own, add_special_tokens, limit) for own in pairs]
        wanted = {
            "input_ids": True,
            "attention_mask": return_attention_mask,
            "special_tokens_mask": return_special_tokens_mask,
            "offset_mapping": return_offsets_mapping,
        }
        columns = [row.data() for row in rows]
        data: dict[str, Any] = {
            name: [row[name] for row in columns] for name, asked in wanted.items() if asked
        }
        if isinstance(text, str):
            data = {name: values[0] for name, values in data.items()}
        encodings: Any = rows
        from transformers import BatchEncoding  # not at the top: settings import this module

        return BatchEncoding(data, encodings, n_sequences=1 if seconds is None else 2)

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """What stands between the texts of a pair."""
        return int(pair)

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes the rules, by which a later version sees whether it splits texts alike."""
        text = json.dumps(_RULES, indent=2, ensure_ascii=False)
        Path(folder, RULES_FILE).write_text(text + "\n", encoding="utf-8")

    def _row(self, texts: tuple[str, ...], special: bool, limit: int | None) -> WordEncoding:
        """The words of a text, or of a pair."""
        sides = [self._words(text, special) for text in texts]
        kept = [len(side) for side in sides]
        if limit is not None:
            kept = _room(kept, limit - (special and len(texts) > 1))
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        sequence_ids: list[int | None] = []
        for number, (side, count) in enumerate(zip(sides, kept, strict=True)):
            if number and special:
                ids, spans, sequence_ids = [*ids, END], [*spans, (0, 0)], [*sequence_ids, None]
            ids += [self.vocabulary.number(word) for word, _ in side[:count]]
            spans += [span for _, span in side[:count]]
            sequence_ids += [number] * count
        return WordEncoding(ids, spans, sequence_ids, kept != [len(side) for side in sides])

    def _words(self, text: str, special: bool) -> list[tuple[str, tuple[int, int]]]:
        """The words of a text, and where each stands in it."""
        if not special:
            return [(found[0], found.span()) for found in re.finditer("[^ ]+", text)]
        words = [(found[0], found.span()) for found in self._pattern.finditer(text)]
        return words or [("", (0, 0))]


def read_tokenizer(
    folder: Path, vocabulary: Vocabulary, model_max_length: int, name_or_path: str = ""
) -> WordTokenizer:
    """The tokenizer that was saved in a folder; where none was, ours.

    Raises:
        ModelError: if it splits texts by rules that this version does not know.
    """
    file = folder / RULES_FILE
    if file.is_file():
        try:
            known = json.loads(file.read_text(encoding="utf-8")) == _RULES
        except ValueError as error:
            raise ModelError(f"{file} is damaged ({error}); save the model again.") from None
        if not known:
            raise ModelError(
                f"{file} splits texts by other rules than this version of totune does. Use the "
                "version that saved it, or train again."
            )
    return WordTokenizer(vocabulary, model_max_length, name_or_path)


def _room(lengths: list[int], limit: int) -> list[int]:
    """How many words of each text are kept: the longer text is cut first."""
    if sum(lengths) <= limit:
        return lengths
    if len(lengths) == 1:
        return [limit]
    shorter = min(min(lengths), limit // 2)
    rest = limit - shorter
    return [shorter, rest] if lengths[0] <= lengths[1] else [rest, shorter]
