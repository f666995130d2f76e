"""Keeping freed memory within the process, so that every step does not ask the system anew."""

import ctypes
import platform

# Parameters of glibc's mallopt(3).
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_NEVER = 2**31 - 1


def keep_freed_memory() -> bool:
    """Makes freed memory stay with the process for its next allocation; holds until it ends.

    By default the C library gives every large freed block back to the system, and the system
    clears each page of the next one. The gradient of an embedding table alone is tens of
    megabytes per step, and clearing its pages can take ten times as long as computing it. The
    process's peak memory stays about the same; it only falls later.

    Returns:
        Whether it was done: on Linux with the GNU C library.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    library = ctypes.CDLL(None)
    no_mapping = library.mallopt(_M_MMAP_MAX, 0)
    no_trimming = library.mallopt(_M_TRIM_THRESHOLD, _NEVER)
    return bool(no_mapping and no_trimming)
