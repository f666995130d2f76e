"""The worked example of CONTRIBUTING.md, followed to the letter."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tiny_data import save_encoder, write_reviews

import totune
from totune import heads, strategies
from totune.heads.base import HEADS
from totune.strategies.base import STRATEGIES

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
FILES = re.compile(r"`src/totune/(\w+)/(\w+\.py)`.*?```python\n(.*?)```", re.DOTALL)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's files in folders that are searched after the package's own."""
    packages = {"heads": heads, "strategies": strategies}
    found = FILES.findall(PAGE.read_text(encoding="utf-8"))
    assert [folder for folder, _, _ in found] == ["heads", "strategies"]
    for folder, name, code in found:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(code, encoding="utf-8")
        package = packages[folder]
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / folder)])
    registries = (HEADS, STRATEGIES)
    for registry in registries:
        registry.names()  # modules register once, so all of the package's own must have
    before = [dict(registry._members) for registry in registries]
    for registry in registries:
        monkeypatch.setattr(registry, "_loaded", False)
    yield
    for registry, members in zip(registries, before, strict=True):
        registry._members = members


@pytest.mark.usefixtures("example")
def test_the_example_trains(tmp_path: Path) -> None:
    study = totune.compare(
        write_reviews(tmp_path / "reviews.csv", 60),
        model=str(save_encoder(tmp_path / "encoder")),
        out=tmp_path / "study",
        strategies=["norms-first"],
        head="max-mean",
        folds=1,
        seeds=1,
        options={"num_train_epochs": 2},
    )
    [record] = study.records
    assert record.status == "finished"
    assert [epoch.phase for epoch in record.epochs] == ["norms", "all", "all"]
    assert record.config["head"] == {"name": "max-mean", "options": {"dropout": 0.1}}
