"""Facts about the machine, and the precision that follows from them."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from totune import machine
from totune.errors import ConfigError

INTEL = "processor\t: 0\nmodel name\t: Some Xeon\nflags\t\t: fpu avx512f avx512_bf16 amx_bf16\n"
OLD = "processor\t: 0\nmodel name\t: Old One\nflags\t\t: fpu sse2 avx2\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd bf16 i8mm\n"


@pytest.fixture
def cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(machine, "_CPUINFO", file)
    return file


def test_describe_gives_plain_facts() -> None:
    facts = machine.describe()
    assert facts.cores >= 1
    assert facts.memory_bytes > 2**28
    assert facts.processor
    assert json.loads(json.dumps(dataclasses.asdict(facts)))["cores"] == facts.cores


def test_versions_name_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_PACKAGES", ("torch", "no-such-package"))
    found = machine.versions()
    assert found["torch"] == torch.__version__
    assert found["no-such-package"] == "not installed"
    assert found["python"].startswith("3.")


@pytest.mark.parametrize(
    ("text", "flags", "precision"),
    [
        (INTEL, ("amx_bf16", "avx512_bf16"), "bf16"),
        (ARM, ("bf16",), "bf16"),
        (OLD, (), "fp32"),
        ("", (), "fp32"),
    ],
)
def test_auto_precision_follows_the_processor(
    cpuinfo: Path, text: str, flags: tuple[str, ...], precision: str
) -> None:
    cpuinfo.write_text(text)
    assert machine.describe().bf16_flags == flags
    assert machine.choose_precision("auto") == precision


def test_without_cpuinfo_the_safe_precision_is_chosen(cpuinfo: Path) -> None:
    assert not cpuinfo.exists()
    assert machine.choose_precision("auto") == "fp32"
    assert machine.describe().processor


def test_a_named_precision_is_taken(cpuinfo: Path) -> None:
    cpuinfo.write_text(OLD)
    assert machine.choose_precision("bf16") == "bf16"
    cpuinfo.write_text(INTEL)
    assert machine.choose_precision("fp32") == "fp32"


@pytest.mark.parametrize(("capability", "precision"), [((7, 5), "fp32"), ((8, 0), "bf16")])
def test_auto_precision_on_cuda(
    capability: tuple[int, int], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert machine.choose_precision("auto", "cuda:0") == precision


def test_an_unknown_precision_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"'bf61'.*Did you mean 'bf16'"):
        machine.choose_precision("bf61")


def test_peak_memory_rises_and_can_be_reset() -> None:
    size = 64 * 2**20
    resettable = machine.reset_peak_memory()
    before = machine.peak_memory()
    block = torch.ones(size // 4)
    peak = machine.peak_memory()
    assert peak - before > 0.8 * size if resettable else peak >= before
    del block
    # The kernel counts pages in small lots per processor, so equal peaks may differ a little.
    assert machine.peak_memory() == pytest.approx(peak, abs=2**20)
    if resettable:
        machine.reset_peak_memory()
        assert machine.peak_memory() < peak - 0.8 * size


def test_peak_memory_without_linux_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_STATUS", tmp_path / "none")
    monkeypatch.setattr(machine, "_CLEAR_REFS", tmp_path / "none" / "none")
    assert machine.reset_peak_memory() is False
    assert machine.peak_memory() > 2**24


def test_matmul_rate_is_counted_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_timed_product", lambda *_: 0.5)
    rate = machine.matmul_rate(torch.float32, size=100, seconds=0.01)
    assert rate == pytest.approx(2 * 100**3 / 0.5 / 1e9)
    monkeypatch.undo()
    assert machine.matmul_rate(torch.float32, size=128, seconds=0.02) > 0.01
