"""A context that the tests of a file search in."""

import pytest
from tests.unit.search.samples import context_of

from totune.runs.context import Context


@pytest.fixture(scope="module")
def search_context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    return context_of(tmp_path_factory.mktemp("cache"))
