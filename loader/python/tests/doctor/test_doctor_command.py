"""python -m shardloader doctor: the machine, and a script that is run with its loaders watched."""

import os
import re
import subprocess
import sys
import textwrap
import time
import types

import pytest

from shardloader._doctor.machine import Gpu, MachineCheck, check_driver, check_link, read_gpus, text_of
from shardloader._doctor.script import Watched, Watches

pytestmark = pytest.mark.alone
GOOD = Gpu(0, "NVIDIA H100", "580.10", 5, 5, 16, 16)


def doctor(*arguments, **variables):
    return subprocess.run(
        [sys.executable, "-m", "shardloader", "doctor", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **variables},
    )


def lines_of(text):
    """{"memory": (ok, is, should be, to do)}"""
    found = re.findall(
        r"^(ok  |LOOK) ([^:]+): (.*)\n {7}should be: (.*)(?:\n {7}to do: (.*))?$", text, re.MULTILINE
    )
    return {name: (state == "ok  ", what, should, todo) for state, name, what, should, todo in found}


def test_every_line_says_what_is_and_what_should_be_and_those_to_look_at_what_to_do(tmp_path):
    done = doctor("--folder", tmp_path)
    lines = lines_of(done.stdout)
    assert {"GPU", "CPUs", "memory", "open files", "disk", "io_uring"} <= set(lines), done.stdout
    assert all(what and should for _, what, should, _ in lines.values())
    assert all(good != bool(todo) for good, _, _, todo in lines.values())
    assert str(tmp_path) in lines["disk"][1]
    assert done.returncode == (0 if all(good for good, *_ in lines.values()) else 1), done.stderr


def test_a_folder_that_is_not_there_and_a_low_limit_of_files_are_looked_at(tmp_path):
    command = f"ulimit -Sn 1024; exec {sys.executable} -m shardloader doctor --folder {tmp_path}/nowhere"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    lines = lines_of(done.stdout)
    assert done.returncode == 1
    assert not lines["disk"][0] and "No such file" in lines["disk"][1] and "a folder that" in lines["disk"][3]
    assert not lines["open files"][0] and lines["open files"][1].startswith("1024 at most")
    assert "ulimit -n" in lines["open files"][3]


# The GPU, as nvidia-smi tells it.


def test_nvidia_smi_is_read_with_what_it_does_not_know():
    text = "0, NVIDIA H100 80GB HBM3, 580.159.04, 1, 5, 16, 16\n1, Tesla T4, 535.1, [N/A], [N/A], 8, 16\nx\n"
    assert read_gpus(text) == [
        Gpu(0, "NVIDIA H100 80GB HBM3", "580.159.04", 1, 5, 16, 16),
        Gpu(1, "Tesla T4", "535.1", 0, 0, 8, 16),
    ]


def test_a_link_with_fewer_lanes_or_a_lower_rate_is_looked_at():
    good = check_link(GOOD, 52.0)
    assert not good.advice and good.should_be == "PCIe generation 5 x16, at least 47.3 GB/s"
    assert "52.0 GB/s measured" in good.what_is
    assert "only 8 of 16 lanes" in check_link(GOOD._replace(width=8), 25.0).advice
    assert "stays at generation 3 under load" in check_link(GOOD._replace(generation=3), 12.0).advice
    assert "NUMA" in check_link(GOOD, 20.0).advice
    # An idle link is slow by design, and that is no reason to do something.
    idle = check_link(GOOD._replace(generation=1), None)
    assert not idle.advice and "idle; not measured" in idle.what_is
    unknown = check_link(Gpu(0, "?", "1", 0, 0, 0, 0), None)
    assert not unknown.advice and "not known" in unknown.what_is and unknown.should_be == "not known"


def test_a_driver_older_than_the_cuda_of_pytorch_is_looked_at():
    assert not check_driver(GOOD, "13.0").advice
    assert "from 580 on" in check_driver(GOOD._replace(driver="550.54.15"), "13.0").advice
    assert not check_driver(GOOD._replace(driver="550.54.15"), "12.8").advice
    assert not check_driver(GOOD._replace(driver="550.54.15"), None).advice


def test_the_text_of_a_check():
    assert text_of([MachineCheck("a", "1", "2", ""), MachineCheck("b", "3", "4", "mend it")]) == (
        "ok   a: 1\n       should be: 2\nLOOK b: 3\n       should be: 4\n       to do: mend it"
    )


# A script.


def written(folder, text):
    path = folder / "script.py"
    path.write_text(textwrap.dedent(text))
    return path


def share_in(text):
    """What doctor says, and what the script has measured itself."""
    said = [float(number) / 100 for number in re.findall(r"waiting for data: +([\d.]+)%", text)]
    true = [float(number) for number in re.findall(r"^true (.*)$", text, re.MULTILINE)]
    return said, true


OWN_ACCOUNT = """
import sys, time

def loop(loader, step_seconds, epochs=1):
    waited = worked = 0
    for epoch in range(epochs):
        begin = time.perf_counter()
        batches = iter(loader)
        while True:
            batch = next(batches, None)
            now = time.perf_counter()
            if batch is None:
                break
            waited += now - begin
            time.sleep(step_seconds)
            begin = time.perf_counter()
            worked += begin - now
    print("true", waited / (waited + worked))
"""


def test_a_script_with_our_loader(folder, tmp_path):
    script = written(
        tmp_path,
        OWN_ACCOUNT
        + f"""
import shardloader as sl
loop(sl.Loader({str(folder)!r}, batch_size=2, random_resized_crop=32, dtype="float32"), 0.005, epochs=2)
for images, labels in sl.Loader({str(folder)!r}, batch_size=4, framework="numpy").epoch(3):
    pass
print("arguments", sys.argv[1:], __name__, sys.path[0])
sys.exit(7)
""",
    )
    done = doctor(script, "--lr", "0.1")
    assert done.returncode == 7, done.stderr
    assert f"arguments ['--lr', '0.1'] __main__ {tmp_path}" in done.stdout
    said, true = share_in(done.stdout)
    assert len(said) == 2 and said[0] == pytest.approx(true[0], abs=0.05), done.stdout
    assert done.stdout.count(f"loader:            shardloader.Loader of {str(folder)!r}") == 2
    assert "60 batches" in done.stdout and "15 batches" in done.stdout


def test_a_script_with_data_loaders(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    script = written(
        tmp_path,
        OWN_ACCOUNT
        + """
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __init__(self, seconds):
        self.seconds = seconds
    def __len__(self):
        return 480
    def __getitem__(self, index):
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        return torch.zeros(4)

loop(DataLoader(Slow(0.003), batch_size=8), 0.01)
loop(DataLoader(Slow(0.002), batch_size=8, num_workers=2), 0.002, epochs=2)
loop(DataLoader(Slow(0.0002), batch_size=8), 0.02)
""",
    )
    done = doctor(script)
    assert done.returncode == 0, done.stderr
    said, true = share_in(done.stdout)
    assert len(said) == len(true) == 3
    for ours, theirs in zip(said, true):
        assert ours == pytest.approx(theirs, rel=0.1, abs=0.02), done.stdout
    cores = [float(number) for number in re.findall(r"data loading uses: +([\d.]+)", done.stdout)]
    loops = [float(number) / 1000 for number in re.findall(r"([\d.]+) ms with the loader", done.stdout)]
    # CPU seconds for each batch: those that the data set burns, and what the loader takes itself.
    assert 0.024 * 0.9 < cores[0] * loops[0] < 0.04, done.stdout
    assert 0.016 * 0.8 < cores[1] * loops[1] < 0.04, done.stdout


def test_a_script_is_ended_after_the_seconds(folder, tmp_path):
    script = written(
        tmp_path,
        f"""
        import time, shardloader as sl
        loader = sl.Loader({str(folder)!r}, batch_size=2)
        while True:
            for batch in loader:
                time.sleep(0.01)
        """,
    )
    done = doctor("--seconds", "1.5", script)
    assert done.returncode == 0 and "was ended after 1.5 s of its loops" in done.stderr
    assert "waiting for data:" in done.stdout


def test_a_script_that_fails_keeps_its_traceback_and_its_report(folder, tmp_path):
    script = written(
        tmp_path,
        f"""
        import shardloader as sl
        for batch in sl.Loader({str(folder)!r}, batch_size=2):
            pass
        raise RuntimeError("mine")
        """,
    )
    done = doctor(script)
    assert done.returncode == 1 and "RuntimeError: mine" in done.stderr and "30 batches" in done.stdout


def test_a_script_without_loaders_is_told_what_else_there_is(tmp_path):
    done = doctor(written(tmp_path, "print('nothing')"))
    assert done.returncode == 0 and "call shardloader.doctor(loader, step)" in done.stdout
    missing = doctor(tmp_path / "missing.py")
    assert missing.returncode == 2
    assert "missing.py" in missing.stderr and "expected a Python program" in missing.stderr


def test_watching_changes_nothing_of_what_a_loader_delivers(folder, tmp_path):
    text = f"""
    import shardloader as sl
    loader = sl.Loader({str(folder)!r}, batch_size=8, framework="numpy")
    print([len(iter(loader)), sum(int(batch.ids.sum()) for batch in loader), loader.state_dict()["batch"]])
    """
    script = written(tmp_path, text)
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert plain in doctor(script).stdout


class FakeGpu:
    """A queue of work that runs behind the host's back, with a clock of its own: torch.cuda as far as doctor
    uses it."""

    def __init__(self):
        self.free_at = 0.0  # when everything that was queued is done

    def queue(self, seconds):
        self.free_at = max(self.free_at, time.perf_counter()) + seconds

    def is_initialized(self):
        return True

    def Event(self, enable_timing):
        gpu = self

        class Event:
            def record(self):
                self.at = max(gpu.free_at, time.perf_counter())

            def synchronize(self):
                time.sleep(max(0.0, self.at - time.perf_counter()))

            def elapsed_time(self, end):
                return (end.at - self.at) * 1000

        return Event()


@pytest.mark.parametrize("step_seconds, load_seconds, true", [(0.02, 0.03, 1 / 3), (0.03, 0.02, 0.0)])
def test_time_in_which_the_gpu_works_on_is_no_waiting(monkeypatch, step_seconds, load_seconds, true):
    # The host queues a step and waits in next() all the time; the GPU is idle for a third of it, or never.
    gpu = FakeGpu()
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=gpu))

    def batches():
        for _ in range(40):
            time.sleep(load_seconds)
            yield 0

    watches = Watches(0)
    for _ in Watched(batches(), time.perf_counter(), watches.of("loader"), watches):
        gpu.queue(step_seconds)
        if true == 0.0:  # else it would run away from the host
            time.sleep(step_seconds - load_seconds)
    (found,) = watches.diagnoses()
    assert found.waiting == pytest.approx(true, abs=0.07)
