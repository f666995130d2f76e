"""Useless runs that were looked into are named."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.analyses.fake_states import classes
from tests.unit.analyses.small_inputs import trained_on
from tests.unit.runs.samples import record_of

from totune.analyses.base import ANALYSES, degenerate_warning
from totune.progress import Progress

USELESS = "predicts only 'neg'"
TOLD = "Degenerate runs count in what is shown like the others: {} seed 1 (predicts only 'neg')."

INPUTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "layer-probe": ("fine-tuning", lambda: classes((0, 1), adapted=[(0, 1), (0, 1)])),
    "mutual-information": ("fine-tuning", lambda: classes((0, 1), adapted=[(0, 1), (0, 1)])),
    "adapter-ablation": ("adapters", lambda: [trained_on("classification", seed=1)[0]]),
}


@pytest.mark.parametrize("name", INPUTS)
def test_a_section_names_the_degenerate_runs_that_it_shows(name: str) -> None:
    label, inputs = INPUTS[name]
    analysis = ANALYSES.create(name, {"draws": 1} if name == "mutual-information" else {})
    values = analysis.run(inputs(), Progress())
    runs = [record_of(label, 0), record_of(label, 1, degenerate=USELESS)]
    assert TOLD.format(label) in analysis.section(values, runs).warnings
    assert not any("Degenerate" in told for told in analysis.section(values, runs[:1]).warnings)


def test_degenerate_runs_that_were_not_looked_into_are_not_named() -> None:
    odd = [record_of("lora", 1, degenerate=USELESS), record_of("lora", 2, degenerate=USELESS)]
    looked_into = [("pretrained", None), ("lora", 0), ("lora", 1), ("lora", 1)]
    assert degenerate_warning(looked_into, odd) == (TOLD.format("lora"),)
    assert degenerate_warning(looked_into[:2], odd) == ()
