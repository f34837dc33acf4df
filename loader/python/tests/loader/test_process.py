"""What happens around the loader: signals, fork, the end of the interpreter, shards that go away."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import shardloader as sl
from conftest import make_images, read_by_offset

PATIENCE = 60  # seconds; for machines with other work

# Every thread but this one sleeps in pause() from now on: what waits for the library waits for ever.
STOP_OTHER_THREADS = """
import ctypes, os, signal
libc = ctypes.CDLL(None)
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
def stop_threads(before):
    libc.signal(signal.SIGUSR1, ctypes.cast(libc.pause, ctypes.c_void_p))
    for thread in set(os.listdir("/proc/self/task")) - before:
        libc.syscall(234, os.getpid(), int(thread), int(signal.SIGUSR1))  # tgkill
"""


def python(code, *arguments, **options):
    # A background job inherits SIGINT as ignored, and Python then raises no KeyboardInterrupt.
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def interrupt(process):
    killer = threading.Timer(PATIENCE, process.kill)
    killer.start()
    assert process.stdout.readline() == "waiting\n", process.communicate(timeout=PATIENCE)[1]
    killer.cancel()
    for _ in range(PATIENCE // 5):  # Python's handler may be there a moment before the wait is
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(
                timeout=5
            )  # a second signal would interrupt what the first one has led to
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    pytest.fail(f"no end: {process.communicate()}")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="tgkill's number is that of x86-64")
@pytest.mark.parametrize("transport", ["staged", "mapped"])
def test_ctrl_c_ends_a_wait_that_would_not_end(folder, transport):
    # staged: the feeder and its threads stop, and next() waits for a batch.
    # mapped: so it is, or a batch was begun and the wait is for its bytes.
    process = python(
        STOP_OTHER_THREADS
        + """
import sys, threading
import shardloader as sl
before = set(os.listdir("/proc/self/task"))
loader = sl.Loader(sys.argv[1], batch_size=4, prefetch=1, framework="numpy", transport=sys.argv[2], threads=2)
batches = loader.epoch(0)
next(batches)
stop_threads(before)
threading.Timer(0.3, lambda: print("waiting", flush=True)).start()  # while the main thread waits, others run
try:
    for epoch in range(1000000):
        for batch in (batches if epoch == 0 else loader.epoch(epoch)):
            pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
os._exit(0)  # the threads cannot be joined
""",
        folder,
        transport,
    )
    out, err = interrupt(process)
    assert out == "interrupted\n", err


def test_ctrl_c_leaves_a_loader_that_works_on(folder):
    process = python(
        """
        import sys
        import shardloader as sl
        loader = sl.Loader(sys.argv[1], batch_size=4, framework="numpy")
        epoch = 0
        try:
            print("waiting", flush=True)
            for epoch in range(10**9):
                for batch in loader.epoch(epoch):
                    pass
        except KeyboardInterrupt:
            print(sum(1 for _ in loader.epoch(epoch + 1)))
        """,
        folder,
    )
    out, err = interrupt(process)
    assert (out, process.returncode) == ("15\n", 0), err


def test_ctrl_c_stops_a_conversion_that_then_goes_on(tmp_path, make):
    images = make_images(tmp_path / "images", each=2)
    for i in range(20000):
        os.link(images / "ant" / "000.png", images / "bee" / f"more{i}.png")
    process = python(
        """
        import sys
        import shardloader as sl
        told = []
        def progress(done, planned, rejected):
            if done > 0 and not told:
                told.append(done)
                print("waiting", flush=True)
        try:
            sl.convert(sys.argv[1], sys.argv[2], preset="train", resize=224, crop=224, jobs=1,
                       samples_per_shard=100, progress=progress)
            print("all done")
        except KeyboardInterrupt:
            print("interrupted")
        """,
        images,
        tmp_path / "out",
    )
    out, err = interrupt(process)
    assert out == "interrupted\n", err
    with pytest.raises(FileNotFoundError, match="incomplete conversion"):
        sl.Dataset(tmp_path / "out")
    with pytest.raises(ValueError, match="resize"):  # another conversion than the one that is there
        sl.convert(images, tmp_path / "out", preset="train", resize=32, crop=32, samples_per_shard=100)


@pytest.mark.parametrize("what", ["next", "epochs", "close", "convert"])
def test_a_daemon_thread_does_not_abort_the_end_of_the_interpreter(folder, tmp_path, what):
    # The thread is in the library, or asks for the GIL, when the interpreter ends.
    code = """
        import sys, threading, time
        import shardloader as sl
        folder, what, images, out = sys.argv[1:]
        begun = threading.Event()
        def work():
            if what == "convert":
                while True:
                    begun.set()
                    sl.convert(images, out, preset="train", resize=32, crop=32, overwrite=True)
            while True:
                loader = sl.Loader(folder, batch_size=4, framework="numpy", threads=2)
                begun.set()
                for epoch in range(1000 if what == "epochs" else 1):
                    for batch in loader.epoch(epoch):
                        if what == "next":
                            time.sleep(0)
                if what == "close":
                    loader.close()
        for _ in range(3 if what != "convert" else 1):
            threading.Thread(target=work, daemon=True).start()
        begun.wait()
        time.sleep(0.05)
        """
    images = make_images(tmp_path / "images", each=2) if what == "convert" else tmp_path
    for _ in range(int(os.environ.get("SHARD_TEST_EXITS", "5"))):
        process = python(code, folder, what, images, tmp_path / "out")
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, (process.returncode, err)


def test_a_loader_is_refused_in_a_child_of_fork_and_goes_on_in_the_parent(folder):
    loader = sl.Loader(folder, batch_size=8, framework="numpy")
    batches = loader.epoch(0)
    kept = next(batches)

    def in_the_child():
        nonlocal batches, kept, loader
        for number, call in enumerate(
            (lambda: next(batches), lambda: loader.epoch(1), loader.stats, loader.state_dict)
        ):
            try:
                call()
                return 1 + number
            except sl.UnsupportedError as error:
                if "fork" not in str(error):
                    return 1 + number
        loader.cancel()
        batches = kept = loader = None  # neither hangs nor disturbs the parent
        own = sl.Loader(folder, batch_size=8, framework="numpy")
        return 0 if sum(1 for _ in own.epoch(0)) == 7 else 8

    child = os.fork()
    if child == 0:
        code = 9  # of an unexpected error
        try:
            code = in_the_child()
        finally:
            os._exit(code)
    deadline = time.monotonic() + PATIENCE
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    assert os.waitstatus_to_exitcode(ended[1]) == 0
    assert [batch.batch_index for batch in batches] == [1, 2, 3, 4, 5, 6] and kept.batch_index == 0


@pytest.mark.parametrize("framework", ["numpy", "torch", None])
def test_the_interpreter_ends_with_everything_alive(folder, framework):
    if framework == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    process = python(
        """
        import sys
        import shardloader as sl
        data = sl.Dataset(sys.argv[1])
        loader = sl.Loader(data, batch_size=4, framework=eval(sys.argv[2]))
        batches = loader.epoch(0)
        kept = [next(batches) for _ in range(3)]
        sys.kept = kept, loader, batches  # outlives the module
        print("end")
        """,
        folder,
        repr(framework),
    )
    out, err = process.communicate(timeout=PATIENCE)
    assert (out, err, process.returncode) == ("end\n", "", 0)


def test_a_shard_that_is_cut_is_an_error_that_names_it(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    loader = sl.Loader(copy, batch_size=8, shuffle=False, framework="numpy", prefetch=1)
    batches = loader.epoch(0)
    next(batches)
    os.truncate(copy / "shard-00005.safetensors", 5000)
    with pytest.raises(sl.CorruptError, match="shard-00005"):
        for _ in range(2):
            for _ in batches:
                pass
            batches = loader.epoch(1)
    with pytest.raises(sl.CorruptError, match="shard-00005"):  # again and again
        next(batches)


def test_verify_always_names_the_sample(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    shard = copy / "shard-00001.safetensors"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    assert len(read_by_offset(copy)[0]) == 60
    with pytest.raises(sl.CorruptError, match="shard-00001.*15|shard-00001.*sample 7"):
        for _ in sl.Loader(copy, batch_size=4, verify="always", framework="numpy").epoch(0):
            pass
