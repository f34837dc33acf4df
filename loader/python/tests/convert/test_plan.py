"""Shards of a conversion that are handed out: claim=True, and plan(), convert_shard(),
finish() under schedulers."""

import filecmp
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import threading

import pytest

import shardloader as sl
from conftest import SAMPLES, SIDE, make_images

OPTIONS = {"preset": "train", "resize": SIDE, "crop": SIDE, "samples_per_shard": 8, "jobs": 1}
SHARDS = 8


def assert_same(folder, out):
    names = sorted(os.listdir(folder))
    assert sorted(os.listdir(out)) == names
    assert filecmp.cmpfiles(folder, out, names, False)[1:] == ([], [])


def test_shards_in_any_order_and_several_times(images, folder, tmp_path):
    plan = pickle.loads(pickle.dumps(sl.plan(images, tmp_path / "out", **OPTIONS)))
    assert (plan.shards, plan.inputs) == (SHARDS, SAMPLES) and not (tmp_path / "out").exists()
    assert len(pickle.dumps(plan)) < 2000
    with pytest.raises(ValueError, match="shard 0 of 8 .* is not finished"):
        sl.finish(plan)
    for shard in (7, 0, 3, 3, 1, 2, 4, 5, 6):
        result = sl.convert_shard(plan, shard)
        assert result.shard == shard and result.samples == (4 if shard == 7 else 8) and result.rejects == 0
    assert sl.convert_shard(plan, 0).was_complete
    assert not (tmp_path / "out" / "dataset.json").exists()
    result = sl.finish(plan)
    assert result.complete and result.samples == SAMPLES
    assert sl.finish(plan).was_complete and sl.convert_shard(plan, 0).was_complete
    assert_same(folder, tmp_path / "out")
    with pytest.raises(ValueError, match="there is no shard 8"):
        sl.convert_shard(plan, 8)


def test_threads_convert_the_same_shards_at_once(images, folder, tmp_path):
    plan = sl.plan(images, tmp_path / "out", **OPTIONS)
    threads = [
        threading.Thread(target=lambda: [sl.convert_shard(plan, i) for i in range(plan.shards)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sl.finish(plan)
    assert_same(folder, tmp_path / "out")


def test_what_convert_does_is_continued(images, folder, tmp_path):
    plan = sl.plan(images, tmp_path / "out", **OPTIONS)
    sl.convert_shard(plan, 5)
    assert sl.convert(images, tmp_path / "out", **OPTIONS).converted == SAMPLES - 8
    assert_same(folder, tmp_path / "out")


def test_other_images_than_planned_are_refused(tmp_path):
    images = make_images(tmp_path / "images", each=2)
    plan = sl.plan(images, tmp_path / "out", resize=8, crop=8)
    (images / "ant" / "000.png").unlink()
    sl._plan._plans.clear()  # as in another process
    with pytest.raises(ValueError, match="not those of the plan: 5 images, planned 6"):
        sl.convert_shard(plan, 0)
    for name in ("rank", "claim", "overwrite"):
        with pytest.raises(ValueError, match=f"{name} is no option of plan"):
            sl.plan(images, tmp_path / "out", **{name: 1})


def test_processes_of_the_standard_library(images, folder, tmp_path):
    plan = sl.plan(images, tmp_path / "out", **OPTIONS)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.starmap(sl.convert_shard, [(plan, i) for i in range(plan.shards)], chunksize=1)
    sl.finish(plan)
    assert_same(folder, tmp_path / "out")


def test_dask(images, folder, tmp_path):
    distributed = pytest.importorskip("distributed", reason="dask and distributed are not installed")
    plan = sl.plan(images, tmp_path / "out", **OPTIONS)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        results = client.gather(client.map(sl.convert_shard, [plan] * plan.shards, range(plan.shards)))
    assert sum(result.samples for result in results) == SAMPLES
    sl.finish(plan)
    assert_same(folder, tmp_path / "out")


def test_ray(images, folder, tmp_path):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    plan = sl.plan(images, tmp_path / "out", **OPTIONS)
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        logging_level="ERROR",
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
    )
    try:
        results = ray.get([ray.remote(sl.convert_shard).remote(plan, i) for i in range(plan.shards)])
    finally:
        ray.shutdown()
    assert sum(result.samples for result in results) == SAMPLES
    sl.finish(plan)
    assert_same(folder, tmp_path / "out")


@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_spark(images, folder, tmp_path, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    plan = sl.plan(images, tmp_path / "out", **OPTIONS)
    spark = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        results = (
            spark.sparkContext.parallelize(range(plan.shards), plan.shards)
            .map(lambda i: sl.convert_shard(plan, i))
            .collect()
        )
    finally:
        spark.stop()
    assert sum(result.samples for result in results) == SAMPLES
    sl.finish(plan)
    assert_same(folder, tmp_path / "out")


def claim(images, out):
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"""
import shardloader as sl
done = sl.convert({str(images)!r}, {str(out)!r}, claim=True, **{OPTIONS!r})
print(done.converted_shards, done.complete, done.samples)
""",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_that_claim_shards(images, folder, tmp_path):
    processes = [claim(images, tmp_path / "out") for _ in range(3)]
    told = [process.communicate(timeout=100)[0].split() for process in processes]
    assert sum(int(own) for own, _, _ in told) == SHARDS
    assert {(complete, samples) for _, complete, samples in told} == {("True", str(SAMPLES))}
    assert_same(folder, tmp_path / "out")
    with pytest.raises(ValueError, match="without claim=True"):
        sl.convert(images, tmp_path / "out", claim=True, overwrite=True, **OPTIONS)
    with pytest.raises(ValueError, match="claim=True and world_size 2"):
        sl.convert(images, tmp_path / "other", claim=True, rank=0, world_size=2, **OPTIONS)


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI is not installed")
def test_open_mpi(images, folder, tmp_path):
    code = (
        f"import shardloader as sl; sl.convert({str(images)!r}, {str(tmp_path / 'out')!r}, claim=True, "
        f"**{OPTIONS!r})"
    )
    subprocess.run(
        ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "3", sys.executable, "-c", code],
        check=True,
        timeout=100,
    )
    assert_same(folder, tmp_path / "out")
