"""What the encoder does not get to see of a study's texts, where that may spoil its answer."""

from collections.abc import Mapping

MANY_CUT = 0.1  # share of a split's texts; with fewer, no score can lose more than ten points by it
MANY_UNKNOWN = 0.02  # share of word pieces, one in fifty; 16 English datasets had at most 0.0011


def cautions(
    cut: Mapping[str, float], unknown: Mapping[str, float], max_length: int, limit: int
) -> list[str]:
    """Sentences on what is cut or unknown of many texts, with what to do.

    Args:
        cut: the share of each split's texts that are longer than `max_length`.
        unknown: the share of each split's word pieces that the vocabulary does not have.
        max_length: of an input in word pieces.
        limit: of an input that the encoder reads.
    """
    found = []
    if max(cut.values(), default=0) > MANY_CUT:
        remedy = (
            f"raise `max_length` (this encoder reads {limit})"
            if max_length < limit
            else "this encoder reads no more, so name one that reads longer texts with `model`, or "
            "put what matters first"
        )
        found.append(
            f"Many texts are longer than {max_length} word pieces ({_shares(cut)}), and what comes "
            f"after these is not read: {remedy}."
        )
    if max(unknown.values(), default=0) > MANY_UNKNOWN:
        found.append(
            f"Many word pieces are not in the encoder's vocabulary ({_shares(unknown)}), so it "
            "cannot tell them apart: name an encoder for the language and script of these texts "
            "with `model`."
        )
    return found


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
