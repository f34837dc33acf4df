import ctypes
import gc
import os
import pickle
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import shardloader as sl
from conftest import CLASSES, EACH, SAMPLES, SIDE, read_by_offset


def test_samples_and_labels_are_those_that_numpy_reads_by_offset(data, reference):
    images, labels = reference
    assert len(data) == SAMPLES == len(images)
    for i, (image, label) in enumerate(data):
        assert image.dtype == np.uint8 and image.shape == data.shape == (SIDE, SIDE, 3)
        np.testing.assert_array_equal(image, images[i])
        assert label == labels[i] and isinstance(label, int)
    np.testing.assert_array_equal(data.labels, labels)


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_floats_are_those_that_numpy_reads(make, dtype):
    folder = make(preset="eval", dtype=dtype)
    data = sl.Dataset(folder)
    assert data.dtype == dtype and data.shape == (3, SIDE, SIDE)
    image = data[7][0]
    if dtype == "bfloat16":
        image = image.view(np.uint16)
    np.testing.assert_array_equal(image, read_by_offset(folder)[0][7])


@pytest.mark.parametrize("codec", ["packed", "zstd:1"])
def test_codecs_give_the_same_samples_as_copies(make, codec, reference):
    data = sl.Dataset(make(codec=codec))
    assert data.codec == codec
    for i in range(SAMPLES):
        np.testing.assert_array_equal(data[i][0], reference[0][i])
    assert (
        data[0][0].__array_interface__["data"] != data[0][0].__array_interface__["data"]
        or data[0][0].flags.writeable
    )
    with pytest.raises(sl.UnsupportedError, match="codec"):
        data.shard_images(0)


def test_a_sample_is_a_read_only_view_of_the_mapping(data, reference):
    first, again = data[3][0], data[3][0]
    assert first.__array_interface__["data"][0] == again.__array_interface__["data"][0]
    assert not first.flags.writeable and not first.flags.owndata
    with pytest.raises(ValueError):
        first[0] = 1
    shard = data.shard_images(0)
    assert (
        shard.shape == (8, SIDE, SIDE, 3)
        and shard[3].__array_interface__["data"][0] == first.__array_interface__["data"][0]
    )
    np.testing.assert_array_equal(shard, reference[0][:8])


@pytest.mark.parametrize("bytes_left", [0, 4096])
def test_a_shard_that_was_cut_since_is_an_error(folder, tmp_path, bytes_left):
    out = tmp_path / "set"
    shutil.copytree(folder, out)
    data = sl.Dataset(out)
    data[0], data.shard_images(0)
    os.truncate(next(out.glob("shard-00000*")), bytes_left)
    for read in (lambda: data[0], lambda: data.shard_images(0)):
        with pytest.raises(sl.CorruptError, match="shard-00000.*changed while it was in use"):
            read()


def test_a_view_outlives_its_data_set(folder, reference):
    image = sl.Dataset(folder)[5][0]
    gc.collect()
    np.testing.assert_array_equal(image, reference[0][5])


def test_numbers_count_from_both_ends_and_end(data):
    assert data[-1][1] == data[SAMPLES - 1][1] == 2
    assert data.keys[-1] == data.keys[SAMPLES - 1] == f"{CLASSES[-1]}/{EACH - 1:03}.png"
    for index in (SAMPLES, -SAMPLES - 1, 2**40):
        with pytest.raises(IndexError, match=str(index)):
            data[index]
        with pytest.raises(IndexError):
            data.keys[index]
    with pytest.raises(TypeError):
        data["0"]


def test_it_says_what_it_holds(data):
    assert data.classes == CLASSES
    assert list(data.keys[:2]) == ["ant/000.png", "ant/001.png"] and len(data.keys) == SAMPLES
    assert (
        data.dtype == "uint8"
        and data.layout == "nhwc"
        and data.codec == "none"
        and data.columns == ("labels",)
    )
    assert np.allclose(data.mean, [0.485, 0.456, 0.406]) and np.allclose(data.std, [0.229, 0.224, 0.225])
    assert data.info["pipeline"]["filter"] == "bilinear" and data.info["shards"][0] == (
        "shard-00000.safetensors",
        8,
    )
    assert "60 samples" in repr(data)
    with pytest.raises(KeyError, match="boxes"):
        data.column("boxes")


def test_labels_may_be_vectors_from_a_table(images, tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text("path,a,b\n" + "".join(f"ant/{i:03}.png,{i},{i / 4}\n" for i in range(EACH)))
    sl.convert(images, tmp_path / "out", preset="train", resize=SIDE, crop=SIDE, labels=table)
    data = sl.Dataset(tmp_path / "out")
    label = data[3][1]
    assert label.dtype == np.float32 and label.tolist() == [3.0, 0.75]
    loader = sl.Loader(data, batch_size=4, shuffle=False, framework="numpy")
    np.testing.assert_array_equal(next(iter(loader))[1], data.labels[:4])


def test_it_is_pickled_by_its_path(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder.parent)
    stored = pickle.dumps(sl.Dataset("out"))  # a relative path
    assert len(stored) < 1000
    monkeypatch.chdir(tmp_path)
    copy = pickle.loads(stored)
    assert copy.path == str(folder) and copy[0][1] == 0


def test_threads_share_it(folder, reference):
    data = sl.Dataset(folder)  # shards are opened by whoever comes first
    wrong = []

    def look(first):
        for i in range(first, first + SAMPLES):
            if not np.array_equal(data[i % SAMPLES][0], reference[0][i % SAMPLES]):
                wrong.append(i)

    threads = [threading.Thread(target=look, args=(7 * t,)) for t in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_child_of_fork_reads_on(data, reference):
    data[0]
    child = os.fork()
    if child == 0:
        os._exit(0 if all(np.array_equal(data[i][0], reference[0][i]) for i in range(SAMPLES)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_errors_are_pythons_own(tmp_path, folder):
    with pytest.raises(FileNotFoundError, match="does not exist") as caught:
        sl.Dataset(tmp_path / "none")
    assert isinstance(caught.value, sl.ShardError) and isinstance(caught.value, sl.NotFoundError)
    with pytest.raises(FileNotFoundError, match="not a data set"):
        sl.Dataset(tmp_path)
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "shard-00002.safetensors").unlink()
    with pytest.raises(RuntimeError, match="shard-00002") as corrupt:
        sl.Dataset(copy)
    assert isinstance(corrupt.value, sl.CorruptError)
    assert pickle.loads(pickle.dumps(corrupt.value)).args == corrupt.value.args


def test_verify_finds_a_flipped_byte(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    sl.Dataset(copy).verify()
    shard = copy / "shard-00003.safetensors"
    content = bytearray(shard.read_bytes())
    content[-(2 * SIDE * SIDE * 3) - 5] ^= 1  # in sample 5 of 8
    shard.write_bytes(content)
    with pytest.raises(sl.CorruptError, match="shard-00003") as caught:
        sl.Dataset(copy).verify(threads=3)
    assert [(found.file, found.sample) for found in caught.value.findings] == [("shard-00003.safetensors", 5)]


def test_verify_finds_labels_outside_the_classes(folder, tmp_path):
    """Every digest is right: only a look at the labels finds it."""
    try:
        xxhash = ctypes.CDLL("libxxhash.so.0")
    except OSError:
        pytest.skip("no libxxhash.so.0 to sign dataset.json with")
    xxhash.XXH3_64bits.restype = ctypes.c_uint64
    xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    copy = shutil.copytree(folder, tmp_path / "copy")
    stated = copy / "dataset.json"
    text = stated.read_text()
    last = f',\n    "{CLASSES[-1]}"\n'
    assert last in text
    signed = text.replace(last, "\n")[: text.rindex('  "digest"') - len(last) + 1].encode()
    stated.write_bytes(signed + b'  "digest": "xxh3:%016x"\n}\n' % xxhash.XXH3_64bits(signed, len(signed)))
    with pytest.raises(
        sl.CorruptError,
        match=f"has the label {len(CLASSES) - 1}, dataset.json has {len(CLASSES) - 1} classes",
    ):
        sl.Dataset(copy).verify()


def test_importing_it_imports_no_framework():
    code = (
        "import sys, shardloader; print([name for name in ('torch', 'jax', 'cupy', "
        "'tqdm') if name in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
