"""Counts what the rows of a recipe train; no weights are needed, and nothing is trained."""

import json
import tempfile
from pathlib import Path

from totune.encoders.encoder import Encoder
from totune.encoders.loading import plan_encoder
from totune.recipes.planned import models_of
from totune.recipes.recipe import PARAMETERS, EncoderChoice, Recipe, RecipeRow
from totune.recipes.results import Outcome, ProtocolGroup, Results
from totune.runs.model_spec import ModelSpec
from totune.strategies.coverage import trained_names, without_last_layer
from totune.strategies.defaults import USUAL_ROWS, TrainingFacts
from totune.tasks.classification import Classification

ABOUT = "Trainable parameters without the head's last layer, whose size is the task's."


def count_parameters(recipe: Recipe, model: str | None = None) -> Results:
    """What every row trains on its encoder, for two classes.

    Args:
        recipe: what to count.
        model: as for `models_of`.

    Raises:
        ConfigError: a row does not fit its encoder.
        ModelError: an encoder's configuration cannot be had.
    """
    encoders = {
        name: _planned(recipe.encoders[name], chosen)
        for name, chosen in models_of(recipe, model).items()
    }
    outcomes = []
    for row in recipe.rows:
        count = _count(row, encoders[recipe.encoder_of(row)])
        paper = next(iter(row.paper.values()), {})
        outcomes.append(Outcome(row.label, {PARAMETERS: (float(count),)}, paper))
    group = ProtocolGroup("Trainable parameters", ABOUT, tuple(outcomes), (PARAMETERS,))
    return Results((group,), (), 1.0, 1, {})


def _count(row: RecipeRow, encoder: Encoder) -> int:
    task, facts = Classification(("0", "1")), TrainingFacts(USUAL_ROWS, USUAL_ROWS // 8)
    model, phases = ModelSpec.of_candidate(row.candidate(), facts, task, encoder).check()
    parameters, counted = model.unique_parameters(), trained_names(model, phases)
    return sum(parameters[name].numel() for name in without_last_layer(counted))


def _planned(choice: EncoderChoice, model: str | None) -> Encoder:
    """An encoder without values, from its configuration if no model was named in its place."""
    if not choice.config or model != choice.model:
        return plan_encoder(model or "")[0]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(choice.config), encoding="utf-8")
        return plan_encoder(folder)[0]
