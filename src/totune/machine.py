"""What this machine can do: processor, memory, devices, the precision that is fast, versions."""

import ctypes
import os
import platform
import re
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import psutil
import torch

from totune.errors import ConfigError
from totune.registry import did_you_mean

Precision = Literal["bf16", "fp32"]

_SETTINGS = ("auto", "bf16", "fp32")
_PACKAGES = ("totune", "torch", "transformers", "tokenizers", "scikit-learn", "scipy", "numpy")
# x86 and Arm spellings of "multiplies bfloat16 matrices in hardware"
_BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}
_CPUINFO = Path("/proc/cpuinfo")
_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
# Parameters of glibc's mallopt(3).
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_NEVER = 2**31 - 1


@dataclass(frozen=True)
class Machine:
    """The facts that costs depend on.

    Attributes:
        processor: its name as the system gives it.
        cores: that this process may use.
        memory_bytes: of the whole machine.
        bf16_flags: the processor's bfloat16 instructions ("avx512_bf16", "amx_bf16", "bf16").
        cuda_devices: the name of each CUDA device.
        system: operating system and architecture.
    """

    processor: str
    cores: int
    memory_bytes: int
    bf16_flags: tuple[str, ...]
    cuda_devices: tuple[str, ...]
    system: str


def describe() -> Machine:
    """This machine, as recorded in every study."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return Machine(
        processor=_processor_name(),
        cores=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
        bf16_flags=_bf16_flags(),
        cuda_devices=tuple(torch.cuda.get_device_name(index) for index in range(count)),
        system=f"{platform.system()} {platform.machine()}",
    )


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def choose_precision(setting: str, device: torch.device | str = "cpu") -> Precision:
    """The precision to compute in: "auto" is bfloat16 where the hardware multiplies it natively.

    Args:
        setting: "auto", "bf16" or "fp32".
        device: where the encoder runs.

    Raises:
        ConfigError: if `setting` is none of the three.
    """
    if setting not in _SETTINGS:
        raise ConfigError(
            f"precision={setting!r} is not a precision. {did_you_mean(setting, _SETTINGS)}"
        )
    if setting == "auto":
        return "bf16" if _has_fast_bf16(torch.device(device)) else "fp32"
    return "bf16" if setting == "bf16" else "fp32"


def reset_peak_memory(device: torch.device | str = "cpu") -> bool:
    """Makes `peak_memory` count from now on; False where the system cannot forget a peak."""
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return True
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)  # what is freed but kept is not this count's
    try:
        _CLEAR_REFS.write_text("5")  # proc(5): resets the peak resident set size
    except OSError:
        return False
    return _linux_peak() is not None


def keep_freed_memory() -> bool:
    """Makes freed memory stay with the process for its next allocation; holds until it ends.

    By default the C library gives every large freed block back to the system, and the system
    clears each page of the next one. The gradient of an embedding table alone is tens of
    megabytes per step, and clearing its pages can take ten times as long as computing it. The
    process's peak memory stays about the same; it only falls later, at `reset_peak_memory`.

    Returns:
        Whether it was done: on Linux with the GNU C library.
    """
    library = _glibc()
    if library is None:
        return False
    no_mapping = library.mallopt(_M_MMAP_MAX, 0)
    no_trimming = library.mallopt(_M_TRIM_THRESHOLD, _NEVER)
    return bool(no_mapping and no_trimming)


def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None


def peak_memory(device: torch.device | str = "cpu") -> int:
    """Bytes at the highest: resident memory of this process, or allocated memory of a CUDA device.

    Since the last `reset_peak_memory` that returned True, else since the process began.
    """
    if torch.device(device).type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    linux = _linux_peak()
    if linux is not None:
        return linux
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def matmul_rate(
    dtype: torch.dtype, device: torch.device | str = "cpu", size: int = 1024, seconds: float = 0.3
) -> float:
    """The measured rate of square matrix multiplication in GFLOP/s (a product is 2 size^3).

    Args:
        dtype: of the matrices [size, size].
        device: where to multiply.
        size: rows and columns.
        seconds: how long to measure; the fastest product counts, so that other work disturbs less.
    """
    place = torch.device(device)
    left, right = (torch.randn(size, size, device=place).to(dtype) for _ in range(2))
    fastest = float("inf")
    _timed_product(left, right)  # the first product also prepares kernels
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        fastest = min(fastest, _timed_product(left, right))
    return 2 * size**3 / fastest / 1e9


def _timed_product(left: torch.Tensor, right: torch.Tensor) -> float:
    started = time.perf_counter()
    left @ right
    if left.is_cuda:
        torch.cuda.synchronize(left.device)
    return time.perf_counter() - started


def _has_fast_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        # Ampere (compute capability 8.0) is the first generation with native bfloat16.
        return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)
    return device.type == "cpu" and bool(_bf16_flags())


def _cpuinfo(*fields: str) -> str | None:
    """The first of these fields in Linux's description of the processor."""
    try:
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(rf"^(?:{'|'.join(fields)})\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return found[1].strip() if found else None


def _processor_name() -> str:
    return _cpuinfo("model name", "Model") or platform.processor() or platform.machine()


def _bf16_flags() -> tuple[str, ...]:
    flags = _cpuinfo("flags", "Features") or ""
    return tuple(sorted(_BF16_FLAGS.intersection(flags.split())))


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _linux_peak() -> int | None:
    """Linux's peak resident set size of this process in bytes, if it gives one."""
    try:
        found = re.search(r"^VmHWM:\s*(\d+) kB", _STATUS.read_text(), flags=re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None
