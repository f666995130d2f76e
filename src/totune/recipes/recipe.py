"""A recipe: a table or figure of a paper as a YAML file, what to run beside the paper's figures."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from totune.encoders.sources import DEFAULT_ENCODER
from totune.runs.config import Candidate

PARAMETERS = "parameters"  # what a plan-only recipe counts in place of a metric
Figures = dict[str, dict[str, float]]  # by data set and metric


class _Plain(BaseModel):
    """Plain data without room for misspelt names."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SplitFiles(_Plain):
    """A file for each split, under `data_dir`; splits that are left out are drawn from train.

    Attributes:
        settings: of `totune.compare` for these files, where their columns are called otherwise.
    """

    train: str
    dev: str = ""
    test: str = ""
    settings: dict[str, Any] = {}

    @property
    def names(self) -> dict[str, str]:
        """The files by split."""
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        return {split: name for split, name in named.items() if name}


class DataSource(_Plain):
    """A data set that the recipe reads.

    Attributes:
        title: heading of its column; its name in the recipe if empty.
        sources: what to read, the first that is there: a file or folder under `data_dir` (packed
            or not), a file for each split, or `hub:NAME`.
        obtain: where the data can be had, a sentence.
        train_rows: train rows of the full-size set, so that a part of it is said to be one.
        evaluate_on: `dev` scores the rows of the development file, where those of test have no
            labels, without drawing a test split from train.
        metrics: those that the paper tells, the main one first; the recipe's if empty.
        settings: of `totune.compare`, for this data set.
    """

    title: str = ""
    sources: tuple[str | SplitFiles, ...] = Field(min_length=1)
    obtain: str
    train_rows: int | None = None
    evaluate_on: Literal["dev", "test"] = "test"
    metrics: tuple[str, ...] = ()
    settings: dict[str, Any] = {}


class EncoderChoice(_Plain):
    """An encoder that the recipe compares.

    Attributes:
        model: what is used unless another is asked for; None where one must be named.
        paper: what the paper used.
        config: in place of a model, its configuration, for recipes that only plan.
        obtain: how one can be had, where none is used by default.
    """

    model: str | None = DEFAULT_ENCODER
    paper: str = ""
    config: dict[str, Any] = {}
    obtain: str = ""


class Variant(_Plain):
    """What a row does differently on one data set; what is left out stays."""

    strategy: str | None = None
    head: str | None = None
    options: dict[str, Any] = {}


class RecipeRow(_Plain):
    """A row of the table: a candidate, or an ensemble of candidates.

    Attributes:
        label: what it is called.
        encoder: one of the recipe's; the first if empty.
        strategy: the strategy or baseline that is run.
        head: the task network (strategies only).
        options: what differs from its defaults; `head.NAME` for the head's.
        only: the data sets that it is run on; all if empty.
        variants: what differs on single data sets.
        ensemble: in place of a strategy: labels of rows whose runs of equal seeds are combined.
        paper: the paper's mean of each metric on each data set; empty where it has no such row.
    """

    label: str
    encoder: str = ""
    strategy: str = ""
    head: str = "linear"
    options: dict[str, Any] = {}
    only: tuple[str, ...] = ()
    variants: dict[str, Variant] = {}
    ensemble: tuple[str, ...] = ()
    paper: Figures = {}

    def runs_on(self, data: str) -> bool:
        """Whether the row has a cell for a data set."""
        return not self.only or data in self.only

    def candidate(self, data: str = "") -> Candidate:
        """What is run on a data set."""
        changed = self.variants.get(data, Variant())
        options = {**self.options, **changed.options}
        strategy, head = changed.strategy or self.strategy, changed.head or self.head
        return Candidate(strategy, options, self.label, head)


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
    """Candidates over seeds, a study for each data set and encoder.

    Attributes:
        seeds: how many.
        settings: of `totune.compare`, for all studies.
    """

    kind: Literal["study"]
    seeds: int = Field(default=3, ge=1)
    settings: dict[str, Any] = {}


class ParameterPlan(_Plain):
    """Counts what every row trains, without the head's last layer; nothing is trained."""

    kind: Literal["plan"]
    seeds: Literal[1] = 1


class Evidence(_Plain):
    """A comparison of two rows in the results of another recipe.

    Attributes:
        recipe: whose results are read.
        first: label of one row.
        second: of the other.
        data: the data sets that count.
        expect: how the first scores beside the second: `higher`, `lower`, or `alike`.
    """

    recipe: str
    first: str
    second: str
    data: tuple[str, ...] = Field(min_length=1)
    expect: Literal["higher", "lower", "alike"]


class Guideline(_Plain):
    """A rule of the paper with what would bear it out."""

    rule: str
    evidence: tuple[Evidence, ...] = Field(min_length=1)


class Judgement(_Plain):
    """Judges guidelines by the results of other recipes; nothing is trained.

    Attributes:
        margin: how far apart scores may be that count as alike, in the metric's own scale.
    """

    kind: Literal["judgement"]
    seeds: Literal[1] = 1
    margin: float = Field(default=0.01, gt=0)
    guidelines: tuple[Guideline, ...] = Field(min_length=1)


class PaperTest(_Plain):
    """What the paper tells of a two-sided Welch t-test."""

    t: float
    df: float
    p: float


class WelchPlan(_Plain):
    """A two-sided Welch t-test: mean of row `first` minus mean of row `second`.

    Attributes:
        data: the data set; the first if empty.
        paper: the paper's result, if it has this test.
    """

    first: str
    second: str
    metric: str
    data: str = ""
    paper: PaperTest | None = None


class DifferenceRow(_Plain):
    """A row that shows the score of row `first` minus that of row `second`.

    Attributes:
        paper: the paper's difference, where it tells that and not the scores.
    """

    label: str
    first: str
    second: str
    paper: Figures = {}


class AnalysisPlan(_Plain):
    """An analysis of the studies, once they have run.

    Attributes:
        name: of `totune list analyses`.
        options: what differs from its defaults.
        data: the data sets whose studies are looked into; all if empty.
        rows: labels of the rows whose models are looked into; all if empty.
        corpora: of `divergence`: sources of the corpora, as of `DataSource`.
        reference: of `divergence`: what they are compared with, files under `data_dir`.
        columns: of `divergence`: the columns `text`, `pair` and `by`.
    """

    name: str
    options: dict[str, Any] = {}
    data: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    corpora: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    columns: dict[str, str] = {}


class Recipe(_Plain):
    """A table or figure of a paper.

    Attributes:
        title: what is reproduced.
        paper: which paper, and where in it.
        data: the data sets by name, in the order of the table.
        encoders: by name; the first is that of rows which name none.
        run: how the rows are run.
        metrics: those that the paper tells, the main one first.
        tolerance: how far a mean may lie from the paper's; empty where none is set, because
            something material differs (the encoder).
        tests: the tests that the paper tells, and their like.
        differences: rows of the table across data sets that show what one row scores above another.
        analyses: what is looked into afterwards.
        notes: what differs from the paper and what is odd in it.
    """

    name: str
    title: str
    paper: str
    data: dict[str, DataSource] = {}
    encoders: dict[str, EncoderChoice] = Field(default={"encoder": EncoderChoice()}, min_length=1)
    run: Annotated[
        CrossValidation | StudyPlan | ParameterPlan | Judgement, Field(discriminator="kind")
    ]
    metrics: tuple[str, ...] = Field(default=("accuracy",), min_length=1)
    rows: tuple[RecipeRow, ...] = ()
    tolerance: dict[str, float] = {}
    tests: tuple[WelchPlan, ...] = ()
    differences: tuple[DifferenceRow, ...] = ()
    analyses: tuple[AnalysisPlan, ...] = ()
    notes: tuple[str, ...] = ()

    def metrics_of(self, data: str) -> tuple[str, ...]:
        """The metrics of a data set, the main one first."""
        return self.data[data].metrics or self.metrics

    def title_of(self, data: str) -> str:
        return self.data[data].title or data

    def encoder_of(self, row: RecipeRow) -> str:
        return row.encoder or next(iter(self.encoders))
