"""The first mistakes that a stranger makes in Python, one a row. Each message says what happened, with the
value, and what to do. Those with the programs: tests/programs/first_mistakes.py."""

import os
import re
import shutil

import numpy as np
import pytest

import shardloader as sl
from conftest import CLASSES, SAMPLES, make_images

PIXELS = np.zeros((8, 8, 3), np.uint8)


@pytest.fixture(scope="module")
def here(tmp_path_factory, folder):
    """The working folder of a stranger: photos/, out/ (a data set), other/ (one of another size), ..."""
    path = tmp_path_factory.mktemp("stranger")
    make_images(path / "photos", each=2)
    shutil.copytree(folder, path / "out")
    sl.convert(path / "photos", path / "other", resize=16, crop=16)
    (path / "empty").mkdir()
    (path / "texts").mkdir()
    (path / "texts" / "note.txt").write_text("no image")
    (path / "broken" / "ant").mkdir(parents=True)
    (path / "broken" / "ant" / "0.jpg").write_bytes(b"\xff\xd8 cut off")
    (path / "short.csv").write_text("path,label\nant/000.png\n")
    return path


def write(image, label=0, key="a", **options):
    shutil.rmtree("written", ignore_errors=True)
    with sl.Writer("written", **{"resize": 8, "crop": 8, **options}) as writer:
        writer.add(key, image, label)


def load(**options):
    return sl.Loader("out", **{"batch_size": 4, **options})


def resume():
    load().load_state_dict(sl.Loader("other", batch_size=4).state_dict())


def keep_all():
    kept = list(load())
    assert kept


# What was done: (a call, its error, the value that the message has, what it says to do).
MISTAKES = {
    # Paths.
    "a data set that is not there": (
        lambda: sl.Dataset("trian"),
        FileNotFoundError,
        'trian" does not exist',
        'has no "trian": correct the path',
    ),
    "a folder above it that is not there": (
        lambda: sl.Loader("nowhere/deep/out"),
        FileNotFoundError,
        'nowhere/deep/out" does not exist',
        'has no "nowhere": correct the path',
    ),
    "a folder of photos for a data set": (
        lambda: sl.Dataset("photos"),
        FileNotFoundError,
        'photos" is not a data set: it has no dataset.json',
        "convert the images in it first; Source\\(.* loads them as they are",
    ),
    "an empty folder for a data set": (
        lambda: sl.Dataset("empty"),
        FileNotFoundError,
        'empty" is not a data set',
        "give the folder that a conversion wrote",
    ),
    "an address with one slash": (
        lambda: sl.Dataset("s3:/bucket/train"),
        FileNotFoundError,
        "s3:/bucket/train",
        "an address begins with s3://",
    ),
    "images that are not there": (
        lambda: sl.convert("photo", "new"),
        FileNotFoundError,
        'no such folder: "photo"',
        'has no "photo": correct the path',
    ),
    "an empty folder of images": (
        lambda: sl.convert("empty", "new"),
        ValueError,
        'no images found in "empty"',
        "expected files such as .jpg, .png or .webp in it or in folders below",
    ),
    "a folder without images": (
        lambda: sl.convert("texts", "new"),
        ValueError,
        r'no images found in "texts".*1 skipped, first "note.txt"',
        "expected files such as",
    ),
    "one image for a folder": (
        lambda: sl.convert("photos/ant/000.png", "new"),
        ValueError,
        '"photos/ant/000.png" is not a folder',
        "give the folder that holds the images",
    ),
    "output inside input": (
        lambda: sl.convert("photos", "photos/out"),
        ValueError,
        'out "photos/out" is inside images "photos"',
        "choose a folder outside",
    ),
    "output over other files": (
        lambda: sl.convert("photos", "texts"),
        ValueError,
        '"texts" is not empty and holds no data set',
        "choose an empty or a new folder",
    ),
    "a file for the output": (
        lambda: sl.convert("photos", "short.csv"),
        ValueError,
        '"short.csv" is not a folder',
        "choose an empty or a new folder",
    ),
    "output over a data set of other options": (
        lambda: sl.convert("photos", "other", resize=24, crop=16),
        ValueError,
        '"other" holds a conversion with other options.*"short 16" recorded, "short 24" requested',
        "use another folder, or overwrite=True",
    ),
    # Options of a conversion.
    "a mean of 255": (
        lambda: sl.convert("photos", "new", mean=(123.7, 116.3, 103.5), std=(58, 57, 57)),
        ValueError,
        "mean 123.7 and std 58 in channel 0",
        "divide those of bytes by 255",
    ),
    "a preset that is none": (
        lambda: sl.convert("photos", "new", preset="training"),
        ValueError,
        'preset "training"',
        "expected train or eval",
    ),
    "a codec that is none": (
        lambda: sl.convert("photos", "new", codec="gzip"),
        ValueError,
        'codec "gzip" is not known',
        "use none, packed, zstd, jpeg",
    ),
    "a crop larger than the resized image": (
        lambda: sl.convert("photos", "new", resize=32, crop=64),
        ValueError,
        "crop is 64x64, larger than the 32x32",
        "make the crop smaller or resize larger",
    ),
    "workers of another converter": (
        lambda: sl.convert("photos", "new", workers=8),
        TypeError,
        "'workers'",
        "jobs= counts threads",
    ),
    "labels that are not there": (
        lambda: sl.convert("photos", "new", labels="labels.csv"),
        FileNotFoundError,
        'cannot open "labels.csv"',
        'has no "labels.csv": correct the path',
    ),
    "a table whose labels are missing": (
        lambda: sl.convert("photos", "new", labels="short.csv"),
        ValueError,
        '"short.csv": line 2: 1 fields',
        "2 are expected",
    ),
    "classes without one of the folders": (
        lambda: sl.convert("photos", "new", classes=["ant", "bee"]),
        ValueError,
        'is of the class "cow", which is not one of the 2',
        "add its name to the list, or leave its images out",
    ),
    "images that are all damaged": (
        lambda: sl.convert("broken", "new"),
        ValueError,
        r'none of the 1 inputs could be stored \(the first, "ant/0.jpg": ',
        "see the reasons in .*rejects.csv",
    ),
    # The loader.
    "a GPU where there is none": (
        lambda: load(device="cuda:7"),
        RuntimeError,
        'device "cuda:7"',
        'use device="cpu"|use the host instead|choose one of them',
    ),
    "a device that is none": (
        lambda: load(device="gpu"),
        ValueError,
        "device is 'gpu'",
        'expected "cpu", "cuda" or "cuda:N"',
    ),
    "a batch larger than the data set": (
        lambda: iter(load(batch_size=1000)).__next__(),
        ValueError,
        f"{SAMPLES} samples are fewer than the global batch of 1000",
        'use a smaller batch_size, or tail="short"',
    ),
    "a dtype that no model of this loader takes": (
        lambda: load(dtype="float64"),
        ValueError,
        "dtype is 'float64'",
        'expected one of "uint8".*"float32"',
    ),
    "a mean of 255 for the loader": (
        lambda: load(dtype="float32", mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4)),
        ValueError,
        "123.7",
        "by 255|at most 1",
    ),
    "a crop larger than the samples": (
        lambda: load(center_crop=224),
        ValueError,
        "the crop of 224 x 224 is larger than the stored samples of 32 x 32",
        "lower center_crop",
    ),
    "two crops": (
        lambda: load(center_crop=16, random_crop=24),
        ValueError,
        "center_crop is 16 and random_crop is 24",
        "give one of them",
    ),
    "an option with another name": (
        lambda: load(batchsize=8),
        TypeError,
        "'batchsize'",
        "did you mean batch_size",
    ),
    "num_workers of DataLoader": (
        lambda: load(num_workers=4),
        TypeError,
        "'num_workers'",
        "threads= counts threads",
    ),
    "transform of torchvision": (
        lambda: load(transform=print),
        TypeError,
        "'transform'",
        "augment=Augment.from_torchvision",
    ),
    "a policy by its name": (
        lambda: load(augment="randaugment"),
        ValueError,
        "augment is 'randaugment'",
        r"expected an Augment, such as Augment.rand_augment\(\)",
    ),
    "a flip of every image and more": (
        lambda: load(flip=2),
        ValueError,
        r"flip is 2",
        "0 to 1",
    ),
    "a framework that is not known": (
        lambda: load(framework="tensorflow"),
        ValueError,
        "framework is 'tensorflow'",
        'expected "torch", "jax"',
    ),
    "a column that is not there": (
        lambda: next(iter(load())).column("caption"),
        KeyError,
        'no column "caption"',
        'it has "labels"',
    ),
    "all batches of an epoch in a list": (
        keep_all,
        RuntimeError,
        "all 5 batches of the ring are held",
        r"keep copies: images.clone\(\)|raise prefetch",
    ),
    "a state of another data set": (
        resume,
        ValueError,
        "cannot resume: the state (is of|has) a data set",
        "open the data set of the run that wrote it|this loader",
    ),
    # Data sets and rows.
    "a sample beyond the end": (
        lambda: sl.Dataset("out")[SAMPLES],
        IndexError,
        f"sample {SAMPLES} of {SAMPLES}",
        f"expected 0 to {SAMPLES - 1}",
    ),
    "a class that is not there": (
        lambda: sl.Dataset("out").classes_only(["dog"]),
        ValueError,
        "no class 'dog'",
        "expected some of the 3: ant, bee, cow",
    ),
    "a split in per cent": (
        lambda: sl.Dataset("out").split(90),
        ValueError,
        "fraction is 90",
        "expected a number from 0 to 1",
    ),
    "data sets of two sizes": (
        lambda: sl.concat("out", "other"),
        ValueError,
        r"cannot be one data set.*\[32, 32, 3\]",
        "convert both with the same options",
    ),
    "a class name that was not declared": (
        lambda: write(PIXELS, "dog", classes=["cat", "cow"]),
        ValueError,
        "'dog' is no class",
        "expected one of cat, cow, or its number",
    ),
    "a class name without classes": (
        lambda: write(PIXELS, "dog"),
        ValueError,
        "'dog' is no class",
        r"give the names, classes=\[...\]",
    ),
    "pixels with the channels first": (
        lambda: write(np.zeros((3, 8, 8), np.uint8)),
        ValueError,
        r"uint8 \[3, 8, 8\]",
        r"expected .*uint8 \[row, column, channel\]",
    ),
    "pixels as floats": (
        lambda: write(np.zeros((8, 8, 3), np.float32)),
        ValueError,
        r"float32 \[8, 8, 3\]",
        "give uint8 pixels",
    ),
    "a number for a key": (
        lambda: write(PIXELS, key=1),
        ValueError,
        "the key is 1",
        "expected str, bytes or a path",
    ),
    "a list of archives": (
        lambda: sl.Source(["a-0.tar", "a-1.tar"]),
        ValueError,
        "images is a list of 2",
        r"photos-\{000..099\}.tar",
    ),
    "a writer into a finished data set": (
        lambda: sl.Writer("out", resize=8, crop=8),
        ValueError,
        '"out" holds a finished data set',
        "use another folder, or overwrite=True",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_says_what_happened_with_the_value_and_what_to_do(mistake, here, monkeypatch):
    monkeypatch.chdir(here)
    call, kind, happened, cure = MISTAKES[mistake]
    if "GPU" in mistake and sl.cuda_device_count() > 7:
        pytest.skip("there is such a GPU")
    before = sorted(os.listdir())
    with pytest.raises(kind) as caught:
        call()
    said = str(caught.value)
    assert re.search(happened, said, re.DOTALL), said
    assert re.search(cure, said, re.DOTALL), said
    shutil.rmtree("written", ignore_errors=True)
    shutil.rmtree("new", ignore_errors=True)
    assert sorted(os.listdir()) == before  # nothing else is left


def test_there_are_forty_of_them():
    assert len(MISTAKES) >= 40 and CLASSES == ("ant", "bee", "cow")
