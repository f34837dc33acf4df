"""A loader that nobody holds any more ends at once: without the garbage collector,
whatever else is still held.

Each case runs in a process of its own, which counts its threads, descriptors and memory."""

import subprocess
import sys
import textwrap

import pytest

import shardloader as sl
from conftest import ids_of

PREAMBLE = """
import gc, os, sys, time
import numpy  # the package imports it later, with threads of its own
import shardloader as sl

gc.disable()
folder = sys.argv[1]

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def use():
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

def settled(threads):  # the kernel takes a joined thread off its list a little later
    until = time.monotonic() + 30
    while use()[0] > threads and time.monotonic() < until:
        time.sleep(0.01)
    return use()

def make(**options):  # 7 batches of 8 x 3 x 96 x 96 floats: 885 kB each
    return sl.Loader(folder, **{"batch_size": 8, "framework": "numpy", "threads": 4, "prefetch": 3,
                                "random_resized_crop": 96, "dtype": "float32", **options})

before = use()[0]  # numpy has threads too

def check(cell, rounds=60, kept=0):
    cell()  # what Python itself keeps from a first time
    threads, descriptors = settled(before)
    assert threads == before, (threads, before)
    memory = resident()
    for _ in range(rounds):
        cell()
    assert settled(threads) == (threads, descriptors), (use(), threads, descriptors)
    grown = resident() - memory  # a loader that stayed would be 3.5 MB, so 60 of them 212 MB
    assert grown < 40e6 + kept, grown
    print("ended", flush=True)
"""

CELLS = {
    "never iterated": """
        def cell():
            make()
    """,
    "an epoch that was left by break": """
        def cell():
            loader = make()
            for images, labels in loader:
                break
            for images, labels in loader.epoch(3):
                break
    """,
    "all epochs to their ends": """
        def cell():
            loader = make(transport="staged")
            for epoch in range(2):
                for batch in loader.epoch(epoch):
                    pass
    """,
    "an iterator that is still held": """
        held = []
        def cell():
            loader = make()
            held[:] = [iter(loader), loader.epoch(0)]
            next(held[1])
            begun, = [loader.epoch(1)]
            next(begun)
            held.append(begun)
    """,
    # As in a notebook, the loader is a global: a frame that holds it as its own variable would keep it.
    "an iterator that a traceback holds": """
        held = []
        def train(batches):
            for number, batch in enumerate(batches):
                if number == 2:
                    raise LookupError("a fault in the loop")
        def cell():
            global loader
            loader = make()
            try:
                train(loader.epoch(0))
            except LookupError as error:
                held[:] = [error]
            del loader
    """,
    "errors of its own that are kept": """
        held = []
        def hold_all():
            kept = []
            for batch in loader.epoch(0):
                kept.append(batch)
        def cell():
            global loader
            loader = make(prefetch=1)
            held.clear()
            for fault in (lambda: loader.epoch(-1), lambda: loader.load_state_dict({"state": "rubbish"}),
                          lambda: loader.load_state_dict({}), lambda: loader.set_augment(7), hold_all):
                try:
                    fault()
                except (sl.ShardError, KeyError) as error:
                    held.append(error)
            assert len(held) == 5
            del loader
    """,
    "a last batch": """
        held = []
        def cell():
            for batch in make():
                held[:] = [batch]
                break
    """,
}


def run(code, folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(code), str(folder), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stdout + done.stderr


@pytest.mark.parametrize("case", CELLS)
def test_a_loader_that_was_dropped_ends(folder, case):
    run(textwrap.dedent(CELLS[case]) + "\ncheck(cell)\n", folder)


def test_a_batch_that_outlives_its_loader_holds_its_own_memory_only(folder):
    run(
        """
        held = []
        folder = sl.Dataset(folder)  # a batch holds it
        def cell():
            loader = make(prefetch=40)  # 41 batches of 885 kB: 36 MB
            for batch in loader:
                break
            held.append(batch)
        check(cell, rounds=20, kept=20 * 2e6)
        """,
        folder,
    )


def test_a_batch_that_outlives_its_loader_is_intact(folder):
    run(
        """
        def two(loader):
            return [(batch.images, batch.images.copy(), batch) for batch, _ in zip(loader.epoch(0), range(2))]
        kept = two(make())
        for _ in range(3):
            two(make(seed=1))
        for images, copy, batch in kept:
            assert (images == copy).all() and len(batch.ids) == 8 and batch.mask.all()
            assert (batch.column("labels") == batch.labels).all()
        print("ended")
        """,
        folder,
    )


# --- an epoch that is iterated on although its loader is gone -----------------------------------------------


def loader_of(data, **options):
    return sl.Loader(data, **{"batch_size": 8, "framework": "numpy", "threads": 2, **options})


def test_a_loop_over_a_loader_without_a_name_is_an_epoch(data):
    expected = ids_of(loader_of(data), 0)
    assert [int(i) for batch in loader_of(data) for i in batch.ids] == expected
    assert [int(i) for batch in loader_of(data).epoch(2) for i in batch.ids] == ids_of(loader_of(data), 2)


@pytest.mark.parametrize("taken", [0, 1, 3, 6, 7])
def test_an_iterator_goes_on_where_its_loader_was_dropped(data, taken):
    expected = ids_of(loader_of(data), 4)
    loader = loader_of(data)
    batches = loader.epoch(4)
    seen = [int(i) for _ in range(taken) for i in next(batches).ids]
    del loader
    assert len(batches) == 7 - taken
    seen += [int(i) for batch in batches for i in batch.ids]
    assert seen == expected
    assert list(batches) == []


def test_an_iterator_of_a_loader_that_was_resumed_and_dropped(data):
    first = loader_of(data)
    batches = first.epoch(2)
    seen = [int(i) for _ in range(3) for i in next(batches).ids]
    second = loader_of(data)
    second.load_state_dict(first.state_dict())
    rest = iter(second)
    del second
    assert len(rest) == 4
    assert seen + [int(i) for batch in rest for i in batch.ids] == ids_of(first, 2)


def test_a_closed_loader_stays_closed(data):
    with loader_of(data) as loader:
        batches = loader.epoch(0)
        next(batches)
    with pytest.raises(ValueError, match="closed"):
        next(batches)
    del loader
    with pytest.raises(ValueError, match="closed"):
        next(batches)
