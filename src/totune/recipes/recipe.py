"""A recipe: a table of a paper as a YAML file, what to run beside the paper's figures."""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from totune.errors import ConfigError, DataError
from totune.metrics import METRICS
from totune.registry import did_you_mean
from totune.runs.config import Candidate, check_candidates

SUFFIX = ".yaml"


class _Plain(BaseModel):
    """Plain data without room for misspelt names."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Data(_Plain):
    """What the recipe reads.

    Attributes:
        files: names under `data_dir`; the first that is there is read.
        obtain: where the data can be had, a sentence.
        text: the column of the text.
        label: the column of the label.
    """

    files: tuple[str, ...] = Field(min_length=1)
    obtain: str
    text: str
    label: str


class RecipeRow(_Plain):
    """A row of the table.

    Attributes:
        label: what it is called.
        strategy: the strategy or baseline that is run.
        options: what differs from its defaults; `head.NAME` for the head's.
        paper: the paper's mean of each metric; empty where the paper has no such row.
    """

    label: str
    strategy: str
    options: dict[str, Any] = {}
    paper: dict[str, float] = {}

    def member(self) -> Candidate:
        return Candidate(self.strategy, self.options, self.label)


class Protocol(_Plain):
    """A way of cross-validating.

    Attributes:
        title: a heading.
        about: why it is run.
        shuffle: draw the folds at random; otherwise each is a stretch of the file.
        share: of the rows, drawn by the seed; the others are left aside, as a test set would be.
    """

    title: str
    about: str
    shuffle: bool = True
    share: float = Field(default=1.0, gt=0, le=1)


class CrossValidation(_Plain):
    """Cross-validation of baselines, stratified; the first protocol is held to the tolerance."""

    kind: Literal["cross-validation"]
    folds: int = Field(default=10, ge=2)
    seeds: int = Field(default=1, ge=1)
    protocols: tuple[Protocol, ...] = Field(min_length=1)


class StudyPlan(_Plain):
    """Strategies over seeds on one split.

    Attributes:
        model: the encoder, unless another is asked for.
        seeds: how many.
        settings: of `totune.compare`.
    """

    kind: Literal["study"]
    model: str = "minilm"
    seeds: int = Field(default=10, ge=1)
    settings: dict[str, Any] = {}


class PaperTest(_Plain):
    """What the paper tells of a two-sided Welch t-test."""

    t: float
    df: float
    p: float


class WelchPlan(_Plain):
    """A two-sided Welch t-test: mean of row `first` minus mean of row `second`.

    Attributes:
        paper: the paper's result, if it has this test.
    """

    first: str
    second: str
    metric: str
    paper: PaperTest | None = None


class Recipe(_Plain):
    """A table of a paper.

    Attributes:
        title: what is reproduced.
        paper: which paper, and where in it.
        run: how the rows are run.
        metrics: those that the paper tells, the main one first.
        tolerance: how far a mean may lie from the paper's; empty where none is set, because
            something material differs (the encoder).
        tests: the tests that the paper tells, and their like.
        notes: what differs from the paper and what is odd in it.
    """

    name: str
    title: str
    paper: str
    data: Data
    run: Annotated[CrossValidation | StudyPlan, Field(discriminator="kind")]
    metrics: tuple[str, ...] = Field(min_length=1)
    rows: tuple[RecipeRow, ...] = Field(min_length=1)
    tolerance: dict[str, float] = {}
    tests: tuple[WelchPlan, ...] = ()
    notes: tuple[str, ...] = ()

    def data_file(self, folder: Path) -> Path:
        """The recipe's data under `folder`.

        Raises:
            DataError: none of the files is there; says where to have them.
        """
        places = [folder / name for name in self.data.files]
        for place in places:
            if place.is_file():
                return place
        looked = " or ".join(str(place) for place in places)
        raise DataError(
            f"{self.name} needs {looked}, which is not there. {self.data.obtain} Name the folder "
            "that holds it with `data_dir`."
        )


def recipe_names() -> list[str]:
    """The recipes that come with totune."""
    files = resources.files("totune.recipes").iterdir()
    return sorted(file.name.removesuffix(SUFFIX) for file in files if file.name.endswith(SUFFIX))


def load_recipe(name: str) -> Recipe:
    """The recipe called `name`.

    Raises:
        ConfigError: there is none (with the nearest name), or it has faults (all of them).
    """
    if name not in recipe_names():
        raise ConfigError(
            f"There is no recipe called {name!r}. {did_you_mean(name, recipe_names())}"
        )
    text = resources.files("totune.recipes").joinpath(name + SUFFIX).read_text(encoding="utf-8")
    return parse_recipe({"name": name, **yaml.safe_load(text)})


def parse_recipe(content: Mapping[str, Any]) -> Recipe:
    """A recipe from plain data.

    Raises:
        ConfigError: with every fault, each with its place.
    """
    try:
        recipe = Recipe.model_validate(content)
    except ValidationError as error:
        owner = f"recipe {content.get('name')}"
        raise ConfigError(
            [f"{owner}: {_place(fault['loc'])}: {fault['msg']}." for fault in error.errors()]
        ) from None
    faults = [*_member_faults(recipe), *_name_faults(recipe)]
    if faults:
        raise ConfigError([f"recipe {recipe.name}: {fault}" for fault in faults])
    return recipe


def _place(location: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in location)


def _member_faults(recipe: Recipe) -> list[str]:
    members = [row.member() for row in recipe.rows]
    try:
        made = check_candidates(members)
    except ConfigError as error:
        return error.faults
    if recipe.run.kind == "study":
        return []
    return [
        f"{row.label!r} is no baseline that does without an encoder; only such are cross-validated."
        for row, member, one in zip(recipe.rows, members, made, strict=True)
        if not member.is_baseline or one.needs_encoder  # type: ignore[union-attr]
    ]


def _name_faults(recipe: Recipe) -> list[str]:
    """Every name of a row or metric that the recipe refers to and does not have."""
    labels = [row.label for row in recipe.rows]
    metrics = {*recipe.tolerance, *(name for row in recipe.rows for name in row.paper)}
    metrics |= {test.metric for test in recipe.tests}
    faults = [
        f"a test names the row {label!r}. {did_you_mean(label, labels)}"
        for test in recipe.tests
        for label in (test.first, test.second)
        if label not in labels
    ]
    faults += [
        f"there is no metric {name!r}. {did_you_mean(name, METRICS)}"
        for name in recipe.metrics
        if name not in METRICS
    ]
    return faults + [
        f"{name!r} is not among the recipe's metrics. {did_you_mean(name, recipe.metrics)}"
        for name in sorted(metrics - set(recipe.metrics))
    ]
