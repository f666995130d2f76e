"""What analyses read other than hidden states, as small as it can be and still say something."""

from pathlib import Path
from typing import Any

import torch
from tests.encoder_zoo import tiny_encoder
from tests.tiny_runs import TinyTask, short, tiny_model
from tests.unit.report.sample_study import run_of, stacked

from totune.adapters.adapters import Adapters
from totune.analyses.forecast import ForecastInputs
from totune.analyses.inputs.corpora import NamedTexts
from totune.analyses.inputs.learning_curves import LearningCurveSetup, open_learning_curves
from totune.analyses.inputs.studies import AblationModel, open_data
from totune.analyses.label_cost import LabelCost
from totune.encoders.mixing import Readout
from totune.machine import Precision
from totune.model import Model
from totune.progress import Progress
from totune.runs.records import StudyInfo

# Texts, and what strategies might score on them.
WIKI = NamedTexts("wiki", ["the city is old", "the river is long", "a city by the river"])
CHAT = NamedTexts("chat", ["uh yeah you know", "you know the city uh"])
SCORES = {"wiki again": {"frozen": 0.8, "tuned": 0.9}, "chat": {"frozen": 0.7, "tuned": 0.65}}

# A study whose runs have epochs; of a baseline there are none.
INFO = StudyInfo(
    name="films",
    task="classification",
    data={},
    model={},
    metric="accuracy",
    metrics=["accuracy"],
    strategies=["tf-idf", "stack-and-finetune", "fine-tuning"],
    seeds=[0, 1],
    settings={},
    versions={},
    machine={},
)
RUNS = [run_of("tf-idf", 0), stacked(0, 2, 0.061), stacked(1, 4, 0.055), run_of("fine-tuning", 0)]


def trained_on(
    kind: str,
    encoder: str = "bert",
    readout: Readout | None = None,
    precision: Precision = "fp32",
    noise: float = 0.3,
    seed: int = 0,
    **options: Any,
) -> tuple[AblationModel, TinyTask]:
    """A model whose adapters are large enough to be missed, as if trained."""
    tiny = TinyTask.of(kind)
    chosen = {} if readout is None else {"layers": readout.layers, "pooling": readout.pooling}
    strategy = short("adapters", bottleneck_size=6, **chosen, **options)
    model, _ = tiny_model(strategy, tiny_encoder(encoder), tiny.task)
    model.precision = precision
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in adapters_in(model).parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    metric = tiny.task.metrics[0]
    return AblationModel("adapters", seed, model.eval(), metric, lambda _: tiny.dev), tiny


def adapters_in(model: Model) -> Adapters:
    assert isinstance(model.encoder.inserted, Adapters)
    return model.encoder.inserted


def settings_in(folder: Path) -> dict[str, Any]:
    """Settings of whoever reads the encoder of `folder`."""
    return {
        "model": str(folder / "encoder"),
        "cache_dir": folder / "cache",
        "precision": "fp32",
    }


def setup_in(folder: Path, out: Path, analysis: LabelCost) -> LearningCurveSetup:
    """What learning curves need, from the encoder and the reviews of `folder`."""
    names = analysis.strategies or ()
    options = {"num_train_epochs": 1} if "fine-tuning" in names else {}
    place = {**settings_in(folder), "options": options}
    chosen = {"strategies": analysis.strategies, "seeds": analysis.seeds}
    return open_learning_curves(folder / "reviews.csv", out, Progress(), **chosen, **place)


def forecast_inputs(folder: Path, name: str = "reviews.csv", **facts: Any) -> ForecastInputs:
    """What a forecast is made from, from the encoder and a table of `folder`."""
    columns = {"text": "first", "pair": "second"} if name == "pairs.csv" else {}
    return ForecastInputs(
        open_data(folder / name, **settings_in(folder), **columns).context, **facts
    )
