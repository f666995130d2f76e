import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from totune.data.conll import read_conll
from totune.data.tables import read_words
from totune.data.tagging.schemes import SCHEMES, Scheme, Span, convert, detect, faults, spans
from totune.metrics.spans import find_spans

TYPES = ("PER", "LOC", "")
ANY_TAG = st.sampled_from(["O", "B", "I-PER", "B-PER", "E-PER", "S-PER", "I-LOC", "B-LOC", "E-LOC"])


@st.composite
def well_formed(draw: st.DrawFn, scheme: Scheme = "iob2") -> tuple[str, ...]:
    """Tags of one sentence, made of stretches: words outside, or spans with a type."""
    stretches = st.tuples(st.sampled_from([None, *TYPES]), st.integers(1, 4))
    tags: list[str] = []
    for kind, length in draw(st.lists(stretches, max_size=6)):
        if kind is None:
            tags += ["O"] * length
        else:
            tags += [letter + (f"-{kind}" if kind else "") for letter in "B" + "I" * (length - 1)]
    return convert(tags, scheme)


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("iob1", "I-PER I-PER B-PER O I-LOC I-PER O"),
        ("iob2", "B-PER I-PER B-PER O B-LOC B-PER O"),
        ("iobes", "B-PER E-PER S-PER O S-LOC S-PER O"),
    ],
)
def test_schemes_write_the_same_spans(scheme: Scheme, tags: str) -> None:
    found = [Span("PER", 0, 2), Span("PER", 2, 3), Span("LOC", 4, 5), Span("PER", 5, 6)]
    assert spans(tags.split()) == found
    assert faults(tags.split(), scheme) == []
    assert detect([tags.split()]) == scheme
    for target in SCHEMES:
        assert spans(convert(tags.split(), target)) == found


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("O I-PER", [("PER", 1, 2)]),
        ("B-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)]),
        ("E-PER E-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("S-PER I-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("B-PER E-PER I-PER", [("PER", 0, 2), ("PER", 2, 3)]),
        ("B I B O I", [("", 0, 2), ("", 2, 3), ("", 4, 5)]),
        ("B-A-B I-A-B", [("A-B", 0, 2)]),
    ],
)
def test_illegal_tags_are_read_as_conlleval_does(
    tags: str, found: list[tuple[str, int, int]]
) -> None:
    assert spans(tags.split()) == found


@given(st.lists(ANY_TAG.filter(lambda tag: tag != "B"), min_size=1, max_size=12))
def test_spans_are_those_of_the_metric(tags: list[str]) -> None:
    kinds = {"PER": 0, "LOC": 1}
    codes = [0 if t == "O" else 1 + 4 * kinds[t[2:]] + "BIES".index(t[0]) for t in tags]
    metric = find_spans(np.array([codes]))
    expected = list(zip(metric.kind, metric.first, metric.last + 1, strict=True))
    assert [(kinds[span.type], span.start, span.stop) for span in spans(tags)] == expected


@given(st.data(), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_conversion_there_and_back(data: st.DataObject, source: Scheme, target: Scheme) -> None:
    tags = data.draw(well_formed(source))
    there = convert(tags, target)
    assert len(there) == len(tags)
    assert spans(there) == spans(tags)
    assert faults(there, target) == []
    assert convert(there, source) == tags


@given(st.lists(ANY_TAG, max_size=12), st.sampled_from(SCHEMES))
def test_what_is_read_leniently_is_written_well(tags: list[str], target: Scheme) -> None:
    written = convert(tags, target)
    assert spans(written) == spans(tags)
    assert faults(written, target) == []


@given(st.lists(ANY_TAG, max_size=12), st.sampled_from(SCHEMES))
def test_tags_without_faults_are_those_that_conversion_leaves(
    tags: list[str], scheme: Scheme
) -> None:
    assert (faults(tags, scheme) == []) == (convert(tags, scheme) == tuple(tags))


@pytest.mark.parametrize(
    ("scheme", "tags", "places"),
    [
        ("iob2", "O I-PER I-PER", [1]),
        ("iob2", "B-PER I-LOC", [1]),
        ("iob2", "I-PER", [0]),
        ("iob1", "O B-PER I-PER", [1]),
        ("iob1", "I-LOC B-PER", [1]),
        ("iobes", "B-PER O", [1]),
        ("iobes", "O B-PER", [1]),
        ("iobes", "E-PER S-PER", [0]),
    ],
)
def test_illegal_transitions_have_places(scheme: Scheme, tags: str, places: list[int]) -> None:
    assert faults(tags.split(), scheme) == places


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        ([], "iob2"),
        (["O O"], "iob2"),
        (["NN VB O"], None),
        (["B-PER X-PER"], None),
        (["I-PER O"], "iob1"),
        (["B-PER I-PER O", "B-LOC", "O I-PER"], "iob2"),
        (["I-PER I-PER O", "I-LOC", "O B-PER"], "iob1"),
        (["B-PER I-PER", "S-LOC"], "iobes"),
    ],
)
def test_detection(sentences: list[str], scheme: Scheme | None) -> None:
    assert detect([tags.split() for tags in sentences]) == scheme


def test_a_tag_of_no_scheme_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="'NN' is a tag of none of iob1, iob2, iobes"):
        spans(["O", "NN"])


@pytest.mark.shared
@pytest.mark.parametrize("column", ["chunk", "tags"])
def test_conll_2003_in_both_schemes(shared: Path, column: str) -> None:
    sentences = {}
    for name in ("test.iob1.txt.gz", "test.txt.gz"):
        path = shared / "data" / "conll2003" / name
        table = read_conll(gzip.decompress(path.read_bytes()).decode().split("\n"), path)
        sentences[name] = [read_words(cell) or () for cell in table.columns[column]]
    first, second = sentences.values()
    assert (detect(first), detect(second)) == ("iob1", "iob2")
    assert [convert(tags, "iob2") for tags in first] == second
    if column == "tags":
        assert [convert(convert(tags, "iobes"), "iob1") for tags in second] == first
