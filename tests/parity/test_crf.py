"""Against AllenNLP 2.10.1's ConditionalRandomField (`oracles/crf.npz`, float64)."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from totune.modules import crf as crf_module
from totune.modules.crf import LinearChainCrf, log_partition
from totune.modules.viterbi import TransitionScores

ORACLE = {
    name: torch.from_numpy(array)
    for name, array in np.load(Path(__file__).parent / "oracles" / "crf.npz").items()
}
LOGITS, TAGS, MASK = ORACLE["logits"], ORACLE["tags"], ORACLE["mask"]
PARAMETERS = ("transitions", "start_transitions", "end_transitions")


@pytest.fixture(params=["scaled", "in logarithms"], autouse=True)
def recursion(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in logarithms":
        monkeypatch.setattr(crf_module, "SCALED_SCORES", -1.0)


def crf_with(edges: bool = True, allowed: Tensor | None = None) -> LinearChainCrf:
    """The oracle's CRF; without `edges` start and end scores are zero."""
    crf = LinearChainCrf(LOGITS.shape[2], allowed).double()
    with torch.no_grad():
        for name in PARAMETERS if edges else PARAMETERS[:1]:
            getattr(crf, name).copy_(ORACLE[name])
    return crf


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)


def test_log_likelihood() -> None:
    with torch.no_grad():
        found = crf_with().log_likelihood(LOGITS, TAGS, MASK)
    close(found, ORACLE["log_likelihood"])
    close(found.sum(), ORACLE["log_likelihood_sum"])


def test_log_partition_and_score_of_the_gold_path() -> None:
    crf = crf_with()
    scores = TransitionScores(crf.transitions, crf.start_transitions, crf.end_transitions)
    with torch.no_grad():
        partition = log_partition(LOGITS.masked_fill(~MASK.unsqueeze(2), 0.0), MASK, scores)
        close(partition, ORACLE["log_partition"])
        close(crf.log_likelihood(LOGITS, TAGS, MASK) + partition, ORACLE["gold_score"])


def test_gradients() -> None:
    crf, logits = crf_with(), LOGITS.clone().requires_grad_()
    crf.log_likelihood(logits, TAGS, MASK).sum().backward()
    close(logits.grad, ORACLE["grad_logits"])
    assert not logits.grad[~MASK].any()
    for name in PARAMETERS:
        close(getattr(crf, name).grad, ORACLE[f"grad_{name}"])


def test_likelihood_sums_over_forbidden_paths_too() -> None:
    with torch.no_grad():
        found = crf_with(allowed=ORACLE["allowed"]).log_likelihood(LOGITS, TAGS, MASK)
    close(found, ORACLE["log_likelihood"])


def test_without_start_and_end_scores() -> None:
    with torch.no_grad():
        found = crf_with(edges=False).log_likelihood(LOGITS, TAGS, MASK)
    close(found, ORACLE["log_likelihood_nostartend"])


@pytest.mark.parametrize("paths", ["free", "bio", "nostartend"])
def test_best_paths(paths: str) -> None:
    crf = crf_with(paths != "nostartend", ORACLE["allowed"] if paths == "bio" else None)
    found = crf.decode(LOGITS, MASK)
    expected = ORACLE[f"viterbi_path_{paths}"]
    assert torch.equal(found.masked_fill(~MASK, -1), expected)
    scores = TransitionScores(crf.transitions, crf.start_transitions, crf.end_transitions)
    with torch.no_grad():
        partition = log_partition(LOGITS.masked_fill(~MASK.unsqueeze(2), 0.0), MASK, scores)
        close(crf.log_likelihood(LOGITS, found, MASK) + partition, ORACLE[f"viterbi_score_{paths}"])
