"""Every baseline, whatever it is: shapes, determinism, saving, no peeking beyond training."""

import dataclasses

import numpy as np
import pytest
from scipy.special import expit
from tests.unit.baselines.samples import (
    LABEL_SETS,
    NEW,
    NEW_TAGGED,
    PAIRS,
    SCORES,
    TAGGED,
    THREE,
    TWO,
    embed,
)

from totune.baselines.base import BASELINES
from totune.data.examples import Examples
from totune.tasks.base import TASKS

DATA = {
    "two classes": ("classification", TWO, NEW),
    "three classes": ("classification", THREE, NEW),
    "scores": ("regression", SCORES, NEW),
    "pairs": ("classification", PAIRS, PAIRS),
    "several labels": ("multi-label", LABEL_SETS, NEW),
    "tags": ("tagging", TAGGED, NEW_TAGGED),
}
SUITED = [
    (name, data)
    for name in BASELINES.names()
    for data, (task, _, _) in DATA.items()
    if task in BASELINES.get(name).tasks
]


@pytest.fixture(params=BASELINES.names())
def member(request):
    return BASELINES.create(request.param)


@pytest.fixture(params=SUITED, ids=lambda pair: "-".join(pair))
def baseline_and_data(request):
    """A baseline and data of a task that it can do."""
    return request.param


@pytest.fixture
def baseline(baseline_and_data):
    return BASELINES.create(baseline_and_data[0])


@pytest.fixture
def task_case(baseline_and_data):
    name, train, new = DATA[baseline_and_data[1]]
    return TASKS.get(name).from_examples(train), train, new


def fit(baseline, train, task, seed=0):
    given = embed if baseline.needs_encoder else None
    return baseline.fit(train, task.targets(train.labels), task, seed, given)


def test_options_are_a_frozen_dataclass(member):
    assert type(member).__dataclass_params__.frozen
    assert all(field.default is not dataclasses.MISSING for field in dataclasses.fields(member))
    assert member.label == member.name


def test_the_tasks_it_can_do_exist(member):
    assert set(member.tasks) <= set(TASKS.names())
    assert member.tasks


def positions(task, examples):
    """How many positions each row has: its words where words are tagged, else one."""
    return np.array([len(row) if task.per_word else 1 for row in examples.words or examples.texts])


def test_outputs_can_be_decoded(baseline, task_case):
    task, train, new = task_case
    outputs = fit(baseline, train, task).outputs(new)
    counts = positions(task, new)
    assert outputs.shape == (counts.sum(), task.outputs)
    assert np.isfinite(outputs).all()
    assert len(task.decode(task.predictions(outputs, counts))) == len(new)
    scores = task.scores(outputs)
    if scores is not None:
        probabilities = expit(outputs) if task.name == "multi-label" else np.exp(outputs)
        np.testing.assert_allclose(scores, probabilities, rtol=1e-5, atol=1e-7)


def test_the_same_rows_give_the_same_model_for_every_seed(baseline, task_case):
    task, train, new = task_case
    first, second = (fit(baseline, train, task, seed).outputs(new) for seed in (0, 1))
    assert (first == second).all()


def test_a_row_is_predicted_alone_as_in_company(baseline, task_case):
    task, train, new = task_case
    model = fit(baseline, train, task)
    alone = np.vstack([model.outputs(new.take([i])) for i in range(len(new))])
    np.testing.assert_allclose(alone, model.outputs(new), atol=1e-12)


def test_saved_and_loaded_it_gives_equal_outputs(baseline, task_case, tmp_path):
    task, train, new = task_case
    model = fit(baseline, train, task)
    model.save(tmp_path)
    again = baseline.load(tmp_path, task, embed if baseline.needs_encoder else None)
    assert (again.outputs(new) == model.outputs(new)).all()
    assert again.parameters == model.parameters > 0


def test_it_does_not_care_for_strange_texts(baseline, task_case):
    task, train, _ = task_case
    texts = ("", "\ud800", "\x00", "日本語", "word " * 20_000)
    pairs = None if train.pairs is None else texts[::-1]
    strange = Examples(texts, pairs=pairs, words=tuple((text,) for text in texts))
    assert np.isfinite(fit(baseline, train, task).outputs(strange)).all()
