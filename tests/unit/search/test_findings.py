import json
from pathlib import Path

import pytest
from tests.unit.report.sample_search import sampled, search, trial

from totune.errors import ConfigError
from totune.search.findings import read_searches
from totune.search.folder import record_path, write_search


def test_searches_come_back_as_they_were_written(tmp_path: Path):
    first, second = sampled(), search([trial(0, None)], strategy="a/b: c")
    for record in (first, second):
        write_search(tmp_path, record)
    assert sorted(read_searches(tmp_path), key=lambda r: r.strategy) == [second, first]
    write_search(tmp_path, search([trial(0, 0.8)]))
    assert len(read_searches(tmp_path)) == 2


def test_a_folder_without_searches_has_none(tmp_path: Path):
    assert read_searches(tmp_path) == []


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"strategy": "last-2", "trials": []})])
def test_a_file_of_another_shape_is_one_clear_message(tmp_path: Path, text: str):
    path = record_path(tmp_path, "fine-tuning")
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"fine-tuning\.json cannot be read as a search") as found:
        read_searches(tmp_path)
    assert "Remove it, or search again with `search_trials`." in str(found.value)
