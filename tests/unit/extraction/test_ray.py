"""Ray Data writes the same files; these tests need Ray, and start it on this machine."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.extraction.conftest import Extract

from totune.errors import ConfigError, DataError


@pytest.fixture
def local_ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cluster of two processors whose workers find this checkout."""
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[3] / "src"))
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    assert ray.is_initialized()  # what was there before stays
    ray.shutdown()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("shard-*"))}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("default")  # Ray has several of its own
@pytest.mark.usefixtures("local_ray")
def test_ray_writes_the_same_bytes(run: Extract, texts_file: Path):
    here = contents(run("here").folder)
    there = run("there", executor="ray")
    assert contents(there.folder) == here
    assert len(there) == 25
    # What is finished is read past there too.
    (there.folder / "shard-00001.safetensors").unlink()
    again = run("there", executor="ray")
    assert again.facts["last_command"]["shards"] == 1
    assert contents(again.folder) == here
    # And a fault is told as here.
    lines = texts_file.read_text().splitlines()
    texts_file.write_text("\n".join([*lines[:15], "14,a,b,c", *lines[16:]]) + "\n")
    with pytest.raises(DataError, match=r"texts.csv line 16 has 4 fields, not 3"):
        run("faulty", executor="ray")


def test_ray_is_asked_for_where_it_is_missing(run: Extract, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'totune\[ray\]'"):
        run(executor="ray")
