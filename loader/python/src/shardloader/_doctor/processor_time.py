"""Processor time of this process and its children, from /proc."""

from __future__ import annotations

import os

_TICK = os.sysconf("SC_CLK_TCK")


def cores_of(seconds: float, of: float) -> float:
    """How many CPUs were busy. The times are counted in steps, so a short one may give more CPUs than this
    process may use, which cannot be."""
    return min(max(0.0, seconds) / of, float(len(os.sched_getaffinity(0))))


def _all_processes() -> dict[int, tuple[int, float]]:
    """By process id: the parent, and the seconds used by the process and by its children that have ended."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()  # the name before it may hold blanks
        except OSError:  # it has ended meanwhile
            continue
        found[int(name)] = (int(fields[1]), sum(map(int, fields[11:15])) / _TICK)
    return found


def library_seconds() -> float:
    """Of this library's threads in this process, as far as they have not ended."""
    total = 0.0
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/stat", "rb") as file:
                name, _, rest = file.read().rpartition(b")")
        except OSError:
            continue
        if b"(shard-" in name:
            total += sum(map(int, rest.split()[11:13])) / _TICK
    return total


def processor_seconds() -> float:
    """Seconds of processor time that this process and all its descendants have used. It never decreases
    while children are waited for, as DataLoader does. The kernel counts in steps of 10 ms."""
    processes = _all_processes()
    children: dict[int, list[int]] = {}
    for process, (parent, _) in processes.items():
        children.setdefault(parent, []).append(process)
    total, todo = 0.0, [os.getpid()]
    while todo:
        process = todo.pop()
        total += processes[process][1] if process in processes else 0.0
        todo += children.get(process, ())
    return total
