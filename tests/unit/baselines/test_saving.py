import pickletools

import pytest
from tests.unit.baselines.samples import TWO

from totune.baselines.base import BASELINES
from totune.baselines.saving import ARRAYS, FACTS
from totune.errors import ModelError
from totune.tasks.classification import Classification

TASK = Classification.from_examples(TWO)


@pytest.fixture
def saved_counts(tmp_path):
    fitted = BASELINES.create("counts").fit(TWO, TASK.targets(TWO.labels), TASK, 0, None)
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def test_files_are_json_and_safetensors_only(saved_counts):
    assert sorted(path.name for path in saved_counts.iterdir()) == sorted([FACTS, ARRAYS])
    for path in saved_counts.iterdir():
        with pytest.raises(ValueError, match=r".+"):
            list(pickletools.genops(path.read_bytes()))


@pytest.mark.parametrize("name", [FACTS, ARRAYS])
def test_a_missing_or_cut_file_is_a_model_fault(saved_counts, name):
    path = saved_counts / name
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(ModelError, match="holds no readable baseline"):
        BASELINES.create("counts").load(saved_counts, TASK, None)
    path.unlink()
    with pytest.raises(ModelError, match="holds no readable baseline"):
        BASELINES.create("counts").load(saved_counts, TASK, None)


@pytest.mark.parametrize(
    ("name", "options"), [("tf-idf", {}), ("counts", {"ngrams": 2})], ids=["name", "options"]
)
def test_another_baseline_is_refused(saved_counts, name, options):
    with pytest.raises(ModelError, match=r"is of .*counts.*, not of"):
        BASELINES.create(name, options).load(saved_counts, TASK, None)
