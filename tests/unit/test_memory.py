"""Freed memory stays with the process where the C library can be told so."""

import platform
import subprocess
import sys

import pytest

from totune import machine

PROGRAM = """
import ctypes, sys

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

if sys.argv[1] == "kept":
    from totune.machine import keep_freed_memory
    assert keep_freed_memory()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
block = library.malloc(ctypes.c_size_t(64 << 20))
ctypes.memset(block, 1, 64 << 20)
full = resident()
library.free(ctypes.c_void_p(block))
print((full - resident()) >> 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs the GNU C library")
@pytest.mark.parametrize(("setting", "returned"), [("kept", False), ("default", True)])
def test_a_freed_block_is_kept(setting: str, returned: bool) -> None:
    command = [sys.executable, "-c", PROGRAM, setting]
    mebibytes = int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert (mebibytes > 32) == returned


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not machine.keep_freed_memory()
