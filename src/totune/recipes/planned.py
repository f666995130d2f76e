"""Which studies a recipe makes: a data set under an encoder each, with what it finds or lacks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from totune.errors import ConfigError, DataError
from totune.recipes.recipe import DataSource, Recipe, RecipeRow, StudyPlan
from totune.registry import did_you_mean, option_names
from totune.runs.config import Candidate, assign_options, fits
from totune.runs.settings import Settings

Source = str | Path | dict[str, str | Path]
_PACKED = ("", ".gz", ".xz")
_NAMED = ("hub:", "example:")
# What a recipe says itself, so that nobody is asked: what is compared, and how data is read.
OF_RECIPES = frozenset(
    {"strategies", "head", "metric", "text", "pair", "label", "task", "tag_scheme", "encoding"}
    | {"positive_label", "where", "label_map"}
)
SETTINGS = tuple(name for name in option_names(Settings) if name not in OF_RECIPES)


@dataclass(frozen=True)
class PlannedStudy:
    """A study of a recipe.

    Attributes:
        data: name of the data set in the recipe.
        encoder: name of the encoder there.
        source: what is read; None where the data is not there.
        rows: the rows that it runs.
        settings: of `totune.compare`.
        lacking: why it cannot run; empty if it can.
    """

    data: str
    encoder: str
    source: Source | None
    rows: tuple[RecipeRow, ...]
    settings: dict[str, Any]
    lacking: str = ""

    @property
    def candidates(self) -> list[Candidate]:
        """What it compares, with options as a person changed them."""
        changed = self.settings.get("options", {})
        own = [_without(row.candidate(self.data), changed) for row in self.rows]
        known = {key: value for key, value in changed.items() if any(fits(c, key) for c in own)}
        return assign_options(own, known)

    @property
    def compared(self) -> dict[str, Any]:
        """The settings with which `totune.compare` runs it."""
        strategies = []
        for candidate in self.candidates:
            member = asdict(candidate)
            if candidate.is_baseline:
                del member["head"]
            strategies.append(member)
        settings = {name: value for name, value in self.settings.items() if name != "options"}
        return settings | {"strategies": strategies}

    def without(self, labels: Sequence[str]) -> "PlannedStudy":
        """The same study without some of its rows."""
        return replace(self, rows=tuple(row for row in self.rows if row.label not in labels))


def _without(candidate: Candidate, changed: Mapping[str, Any]) -> Candidate:
    """The candidate without options that a person sets for all: theirs hold against a recipe's."""
    kept = {name: value for name, value in candidate.options.items() if name not in changed}
    return replace(candidate, options=kept)


def plan_studies(
    recipe: Recipe, data_dir: Path, chosen: Mapping[str, Any]
) -> tuple[PlannedStudy, ...]:
    """The studies of a recipe, in the order of its data sets and encoders.

    Args:
        recipe: what to run.
        data_dir: the folder that its data lies in.
        chosen: settings of `totune.compare` that a person chose; they hold against the recipe's.

    Raises:
        ConfigError: a setting is not the user's to choose, an option fits no row, or a model is
            named for an encoder that the recipe does not have.
    """
    check_chosen(recipe, chosen)
    models = models_of(recipe, chosen.get("model"))
    general = dict(recipe.run.settings) if isinstance(recipe.run, StudyPlan) else {}
    general["seeds"] = recipe.run.seeds
    given = {name: value for name, value in chosen.items() if name != "model"}
    studies = []
    for name, data in recipe.data.items():
        source, own = find_source(data, data_dir)
        for encoder, model in models.items():
            rows = tuple(
                row
                for row in recipe.rows
                if row.strategy and row.runs_on(name) and recipe.encoder_of(row) == encoder
            )
            if not rows:
                continue
            read = {"metric": recipe.metrics_of(name)[0], **data.settings, **own}
            settings = general | read | given | ({"model": model} if model else {})
            lacking = _lacking(recipe, data, source, encoder, model, data_dir)
            studies.append(PlannedStudy(name, encoder, source, rows, settings, lacking))
    return tuple(studies)


def _lacking(
    recipe: Recipe,
    data: DataSource,
    source: Source | None,
    encoder: str,
    model: str | None,
    folder: Path,
) -> str:
    if source is None:
        return f"data absent: {_looked_for(data, folder)}. {data.obtain}"
    if model is None:
        choice = recipe.encoders[encoder]
        return f"encoder absent: {choice.paper or encoder}. {choice.obtain}"
    return ""


def check_chosen(recipe: Recipe, chosen: Mapping[str, Any]) -> None:
    """Finds settings that are not the user's to choose, and options that fit no row.

    Raises:
        ConfigError: with all of them.
    """
    faults = [
        f"{name} is what the recipe {recipe.name} says itself; leave it out."
        if name in OF_RECIPES
        else f"there is no setting {name!r}. {did_you_mean(name, SETTINGS)}"
        for name in chosen
        if name not in SETTINGS
    ]
    own = [
        replace(row.candidate(data), label=row.label)
        for data in recipe.data
        for row in recipe.rows
        if row.strategy and row.runs_on(data)
    ]
    options = chosen.get("options", {})
    unknown = {k: v for k, v in options.items() if not any(fits(each, k) for each in own)}
    try:
        assign_options(own, unknown)
    except ConfigError as error:
        faults += error.faults
    if faults:
        raise ConfigError(faults)


def models_of(recipe: Recipe, named: str | None) -> dict[str, str | None]:
    """The model of each of the recipe's encoders, as a person named them.

    Args:
        recipe: what to run.
        named: a model, or of several encoders ENCODER=MODEL with commas between; None leaves the
            recipe's own.

    Raises:
        ConfigError: a recipe of several encoders is given one model, or one that it has not.
    """
    models = {name: choice.model for name, choice in recipe.encoders.items()}
    if named is None:
        return models
    if len(models) == 1 and "=" not in named:
        return dict.fromkeys(models, named)
    for part in named.split(","):
        name, equals, model = part.strip().partition("=")
        if not equals or name not in models or not model:
            example = next(iter(models))
            raise ConfigError(
                f"model={named!r}: {recipe.name} compares {' and '.join(models)}; name the model "
                f"of each, as `model={example}=MODEL`, with commas between."
            )
        models[name] = model
    return models


def find_source(data: DataSource, folder: Path) -> tuple[Source | None, dict[str, Any]]:
    """The first of the data's sources that is there, and its own settings.

    A named one (`hub:`, `example:`) counts as there.
    """
    for source in data.sources:
        if isinstance(source, str):
            found = source if source.startswith(_NAMED) else there(folder, source)
            if found is not None:
                return found, {}
            continue
        files = {split: there(folder, name) for split, name in source.names.items()}
        splits: dict[str, str | Path] = {k: path for k, path in files.items() if path is not None}
        if len(splits) == len(files):
            if data.evaluate_on == "dev" and "dev" in splits:
                splits["test"] = splits["dev"]
            return splits, source.settings
    return None, {}


def there(folder: Path, name: str) -> Path | None:
    """The file or folder of that name, packed or not; None if it is not there."""
    places = (folder / f"{name}{packed}" for packed in _PACKED)
    return next((place for place in places if place.exists()), None)


def _looked_for(data: DataSource, folder: Path) -> str:
    names = [
        source if isinstance(source, str) else " + ".join(source.names.values())
        for source in data.sources
    ]
    return f"{' or '.join(names)} under {folder}"


def check_some_data(recipe: Recipe, studies: Sequence[PlannedStudy]) -> None:
    """Refuses a recipe of which nothing can run.

    Raises:
        DataError: naming what is absent and where it can be had.
    """
    if any(not study.lacking for study in studies):
        return
    reasons = dict.fromkeys(study.lacking for study in studies)
    raise DataError(
        f"Nothing of {recipe.name} can run. {' '.join(reasons)} Name the folder that holds data "
        "with `data_dir`."
    )
