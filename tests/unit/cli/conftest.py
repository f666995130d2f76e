"""A trained model that takes no time: a sparse baseline on a few sentences."""

from pathlib import Path

import pytest

from totune.baselines.base import BASELINES
from totune.data.examples import Examples
from totune.export import save_baseline, write_seen
from totune.tasks.classification import Classification

GOOD = ("a joy from start to finish", "a moving joy of a film", "great fun and real joy")
BAD = ("a dull bore", "dull from start to finish", "a bore and a waste of time")
COLUMNS = {"text": "review", "label": "verdict", "pair": None, "task": "classification"}


@pytest.fixture(scope="session")
def tfidf_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    train = Examples(GOOD + BAD, labels=("pos",) * 3 + ("neg",) * 3)
    task = Classification.from_examples(train)
    baseline = BASELINES.create("tf-idf")
    fitted = baseline.fit(train, task.targets(train.labels or ()), task, 0, None)
    about = {"columns": COLUMNS, "pairs": False, "max_length": 32, "model": "minilm"}
    save_baseline(folder, baseline, fitted, task, about)
    write_seen(train, folder)
    return folder
