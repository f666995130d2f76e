"""The sparse table of P3 on the real tweets, within the tolerance that the recipe states."""

import pytest

from totune.progress import Progress
from totune.recipes.cross_validation import cross_validate
from totune.recipes.loading import load_recipe
from totune.recipes.planned import find_source


@pytest.mark.shared
@pytest.mark.slow
def test_the_papers_means_come_out_again(shared):
    recipe = load_recipe("hart-sparse")
    plain = recipe.run.model_copy(update={"protocols": recipe.run.protocols[:1]})
    file, _ = find_source(recipe.data["tweets"], shared / "data")
    results = cross_validate(recipe, plain, file, fraction=1.0, seeds=1, progress=Progress())
    for outcome in results.groups[0].outcomes:
        for metric, limit in recipe.tolerance.items():
            assert abs(outcome.difference(metric)) <= limit, (outcome.label, metric)
