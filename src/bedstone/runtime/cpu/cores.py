"""Which cores the threads of a pool may use."""

import os
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(cpus: Path = _CPUS, quota: Path = _QUOTA) -> tuple[int, ...]:
    """One logical CPU of each physical core this process may use, lowest number first.

    Hardware threads of one core share its arithmetic units, so a second one adds nothing to a
    kernel. A container's time quota caps the number: threads beyond it would only be throttled.
    """
    seen: set[str] = set()
    cores: list[int] = []
    for cpu in sorted(os.sched_getaffinity(0)):
        core = _siblings(cpus, cpu)
        if core not in seen:
            seen.add(core)
            cores.append(cpu)
    return tuple(cores[: _quota_cpus(quota, len(cores))])


def _siblings(cpus: Path, cpu: int) -> str:
    """What names the physical core of `cpu`; its own number where the kernel does not say."""
    try:
        return (cpus / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)


def _quota_cpus(quota: Path, cores: int) -> int:
    try:
        limit, period = quota.read_text().split()
        return cores if limit == "max" else max(1, int(limit) // int(period))
    except (OSError, ValueError):
        return cores
