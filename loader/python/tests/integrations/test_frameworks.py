"""The same batches as arrays of each framework that is installed, and through DLPack."""

import gc
import re
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import shardloader as sl
from conftest import SAMPLES, ids_of


def loader_of(data, framework, **options):
    return sl.Loader(
        data,
        **{
            "batch_size": 10,
            "framework": framework,
            "shuffle": False,
            "prefetch": 2,
            "layout": "nhwc",
            **options,
        },
    )


def address(array):
    return array.__array_interface__["data"][0]


# --- DLPack -------------------------------------------------------------------------------------------------


def test_dlpack_objects_share_the_batch_with_numpy(data, reference):
    batches = loader_of(data, None).epoch(0)
    tensor, labels = next(batches)
    assert isinstance(tensor, sl.types.Tensor)
    assert (tensor.shape, tensor.dtype, tensor.device) == ((10, 32, 32, 3), "uint8", "cpu")
    assert tensor.__dlpack_device__() == (1, 0)
    array, view = np.from_dlpack(tensor), np.asarray(tensor)
    assert address(array) == address(view)
    np.testing.assert_array_equal(array, reference[0][:10])
    np.testing.assert_array_equal(np.from_dlpack(labels), reference[1][:10])
    assert np.from_dlpack(labels).dtype == np.int64


def test_what_was_made_by_dlpack_holds_the_batch(data, reference):
    batches = loader_of(data, None, prefetch=1).epoch(0)
    array = np.from_dlpack(next(batches)[0])
    other = np.from_dlpack(next(batches)[0])
    gc.collect()
    with pytest.raises(sl.ResourceError):
        next(batches)
    np.testing.assert_array_equal(array, reference[0][:10])
    del array
    assert next(batches).batch_index == 2
    np.testing.assert_array_equal(other, reference[0][10:20])


def test_a_capsule_that_nobody_takes_holds_nothing_for_long(data):
    batches = loader_of(data, None, prefetch=1)
    for tensor, _ in batches:
        assert "dltensor_versioned" in repr(tensor.__dlpack__(max_version=(1, 0)))
        assert "dltensor_versioned" not in repr(tensor.__dlpack__())


class Taken:
    """A consumer that names its stream, which numpy does not."""

    def __init__(self, tensor, stream):
        self.tensor, self.stream = tensor, stream

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**{**options, "stream": self.stream})


# The array API standard lets a consumer pass None alone for memory of the host, and -1 for no order.
# Bytes of the host are there before the batch is handed out, so each stream is ordered after them.
@pytest.mark.parametrize("stream", [None, -1, 0, 1, 2, 2**40])
def test_streams_do_not_matter_on_the_host(data, reference, stream):
    tensor, labels = next(loader_of(data, None).epoch(0))
    array = np.from_dlpack(Taken(tensor, stream))
    assert address(array) == address(np.asarray(tensor))
    np.testing.assert_array_equal(array, reference[0][:10])
    np.testing.assert_array_equal(np.from_dlpack(Taken(labels, stream)), reference[1][:10])
    assert '"dltensor"' in repr(tensor.__dlpack__(stream=stream))
    for one in (tensor, data._core.sample(0)):  # a view of the read-only mapping
        assert '"dltensor_versioned"' in repr(one.__dlpack__(stream=stream, max_version=(1, 0)))


@pytest.mark.parametrize("stream", [-2, "a", 2.5, 2**64, []])
def test_what_is_no_stream_is_refused(data, stream):
    tensor, _ = next(loader_of(data, None).epoch(0))
    with pytest.raises(BufferError, match=f"stream is {re.escape(repr(stream))}: expected None, -1, 1, or"):
        tensor.__dlpack__(stream=stream)


def test_dlpack_refuses_what_it_cannot_do(data):
    tensor, _ = next(iter(loader_of(data, None)))
    with pytest.raises(BufferError, match="copy"):
        tensor.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="another device"):
        tensor.__dlpack__(dl_device=(2, 0))
    sample = data._core.sample(0)  # a view of the read-only mapping
    with pytest.raises(BufferError, match="read-only"):
        sample.__dlpack__()
    with pytest.raises(BufferError, match="read-only"):
        sample.capsule()
    with pytest.raises((BufferError, TypeError)):
        memoryview(sample).cast("B")[0] = 1
    assert memoryview(sample).readonly and memoryview(sample).shape == (32, 32, 3)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_buffers_have_numpys_formats(data, dtype):
    tensor, _ = next(iter(loader_of(data, None, dtype=dtype)))
    assert np.asarray(tensor).dtype == np.from_dlpack(tensor).dtype == np.dtype(dtype)


# --- PyTorch ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def test_torch_is_taken_where_it_is_installed(data, torch):
    images, labels = next(iter(loader_of(data, "auto")))
    assert isinstance(images, torch.Tensor) and isinstance(labels, torch.Tensor)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_torch_tensors_are_numpys_arrays(data, torch, dtype):
    options = {"dtype": getattr(torch, dtype), "layout": "nchw"}
    ours = loader_of(data, "torch", **options)
    count = 0
    for (images, labels), (expected, expected_labels) in zip(
        ours.epoch(0), loader_of(data, "numpy", **options).epoch(0)
    ):
        assert (
            images.dtype == getattr(torch, dtype) and labels.dtype == torch.int64 and images.is_contiguous()
        )
        bits = images.view(torch.uint8).numpy()
        np.testing.assert_array_equal(bits, np.ascontiguousarray(expected).view(np.uint8))
        np.testing.assert_array_equal(labels.numpy(), expected_labels)
        count += len(labels)
    assert count == SAMPLES


def test_torch_tensors_share_and_hold_the_batch(data, torch, reference):
    loader = loader_of(data, "torch", prefetch=1)
    places = set()
    for epoch in range(3):
        for images, _ in loader.epoch(epoch):
            places.add(images.data_ptr())
            images.zero_()  # the memory is ours
    del images
    assert len(places) == 2
    batches = loader.epoch(0)
    part = next(batches)[0][3:5].permute(0, 3, 1, 2)
    other = next(batches)[0]
    with pytest.raises(sl.ResourceError, match="held"):
        next(batches)
    np.testing.assert_array_equal(part.permute(0, 2, 3, 1).numpy(), reference[0][3:5])
    del part
    assert next(batches).batch_index == 2
    np.testing.assert_array_equal(other.numpy(), reference[0][10:20])


def test_a_batch_that_autograd_keeps_lives_until_backward(data, torch):
    loader = loader_of(data, "torch", prefetch=1, dtype="float32")
    weight = torch.ones(3, requires_grad=True)
    batches = loader.epoch(0)
    images = next(batches)[0]
    expected = images.sum((0, 1, 2)).clone()
    loss = (images * weight).sum()
    del images
    for _ in range(2):
        next(batches)  # uses the other slot
    loss.backward()
    torch.testing.assert_close(weight.grad, expected)


def test_torch_tensors_die_on_threads_without_a_hang(data, torch):
    loader = loader_of(data, "torch", prefetch=4, batch_size=2)
    for epoch in range(3):
        for images, _ in loader.epoch(epoch):
            thread = threading.Thread(target=lambda kept: kept.sum(), args=(images,))
            del images
            thread.start()
            thread.join()


def test_rank_and_world_size_of_torch_distributed_come_first(data, torch, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
    loader = loader_of(data, "torch")
    assert (loader.rank, loader.world_size) == (2, 3)
    assert ids_of(loader)[:10] == list(range(20, 30))


def test_a_process_group_that_comes_later_is_followed_or_an_error(data, torch, monkeypatch):
    early, late, given = (
        loader_of(data, "torch"),
        loader_of(data, "torch"),
        loader_of(data, "torch", rank=0, world_size=2),
    )
    assert next(iter(late)).ids[0] == 0
    next(iter(given))
    with monkeypatch.context() as group:
        group.setattr(torch.distributed, "is_initialized", lambda: True)
        group.setattr(torch.distributed, "get_rank", lambda: 1)
        group.setattr(torch.distributed, "get_world_size", lambda: 2)
        assert (early.rank, early.world_size, len(early)) == (1, 2, 3)
        assert next(iter(early)).ids[0] == 10
        for begin in (lambda: late.epoch(1), lambda: next(iter(late)), lambda: len(late)):
            with pytest.raises(
                ValueError,
                match="torch.distributed says rank 1 of 2, but this loader began its first epoch as rank 0 "
                "of 1",
            ):
                begin()
        assert next(iter(given)).ids[0] == 0
    assert next(iter(late)).ids[0] == 0 and next(iter(early)).ids[0] == 10  # the group was destroyed


def test_state_dicts_go_through_torch_save(data, torch, tmp_path):
    loader = loader_of(data, "torch")
    next(loader.epoch(3))
    torch.save(loader.state_dict(), tmp_path / "state.pt")
    other = loader_of(data, "torch")
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert next(other.epoch(3)).batch_index == 1


# --- torchvision --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first, second", [("torchvision", "shardloader"), ("shardloader", "torchvision")])
def test_torchvisions_libjpeg_and_ours_work_in_one_process(torch, tmp_path, first, second):
    """Each decodes the same before and after the other did, and after the other met an invalid file;
    both give the same pixels."""
    pytest.importorskip("torchvision", reason="torchvision is not installed")
    script = """
        import os, sys
        import FIRST
        import SECOND
        import numpy as np, shardloader as sl, torch, torchvision.io as io

        noise = torch.randint(0, 9, (3, 96, 96), generator=torch.Generator().manual_seed(1))
        rows = (torch.arange(96)[:, None] * 2 + torch.arange(96)[None] + noise).clamp(0, 255)
        os.makedirs("images/a")
        io.write_jpeg(rows.to(torch.uint8), "images/a/whole.jpg", quality=90)
        whole = open("images/a/whole.jpg", "rb").read()

        def theirs():
            return io.decode_jpeg(io.read_file("images/a/whole.jpg")).permute(1, 2, 0).numpy()

        def ours(name):
            out = sl.convert("images", name, preset="train", resize=96, crop=96, overwrite=True)
            return np.array(sl.Dataset(name)[0][0]), out.rejects

        def check():
            pixels, rejects = ours("out")
            assert rejects == 0
            np.testing.assert_array_equal(pixels, theirs())
            return pixels

        if "FIRST" == "torchvision":
            theirs()
        before = check()
        with open("images/a/invalid.jpg", "wb") as file:
            file.write(whole[:300])
        try:
            io.decode_jpeg(io.read_file("images/a/invalid.jpg"))
        except RuntimeError:
            pass
        else:
            raise AssertionError("torchvision decodes a part of the header")
        np.testing.assert_array_equal(theirs(), before)
        pixels, rejects = ours("rejected")
        assert rejects == 1
        np.testing.assert_array_equal(pixels, before)
        np.testing.assert_array_equal(theirs(), before)
        os.remove("images/a/invalid.jpg")
        np.testing.assert_array_equal(check(), before)
        """
    script = textwrap.dedent(script).replace("FIRST", first).replace("SECOND", second)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


# --- what frameworks do with a batch ------------------------------------------------------------------------


def test_to_the_same_device_is_the_batch_itself(data, torch):
    batch = next(iter(loader_of(data, "torch")))
    for device in ("cpu", torch.device("cpu")):
        assert batch.to(device) is batch is batch.to(device, non_blocking=True)
    for framework in ("numpy", None):
        batch = next(iter(loader_of(data, framework)))
        assert batch.to("cpu") is batch is batch.to(torch.device("cpu"))
        with pytest.raises(
            ValueError, match='cannot be moved to cuda:0: make the loader with device="cuda:0"'
        ):
            batch.to("cuda:0")


def test_to_another_device_takes_everything_along(data, torch):
    loader = loader_of(data, "torch", tail="pad", prefetch=1)
    batches = loader.epoch(2)
    batch = next(batches)
    moved = batch.to("meta")  # a device that is there everywhere
    assert isinstance(moved, sl.types.Batch) and moved is not batch
    for part in (moved.images, moved.labels, moved.ids, moved.mask, moved.column("labels")):
        assert part.device.type == "meta" and len(part) == 10
    assert (moved.epoch, moved.batch_index, moved.images.dtype, moved.mask.dtype) == (
        2,
        0,
        torch.uint8,
        torch.bool,
    )
    assert moved.to("meta") is moved
    with pytest.raises(KeyError, match="boxes"):
        moved.column("boxes")
    del batch
    assert (
        next(batches).batch_index == 1 and next(batches).batch_index == 2
    )  # what was moved holds no memory of the loader


def test_a_batch_that_was_rebuilt_says_what_it_lacks(data):
    batch = next(iter(loader_of(data, "numpy")))
    rebuilt = type(batch)(part for part in batch)
    assert rebuilt.images is batch.images
    with pytest.raises(AttributeError, match="rebuilt from its images and labels"):
        _ = rebuilt.mask


def test_ids_and_mask_are_where_the_labels_are(data, torch):
    batch = list(loader_of(data, "torch", batch_size=16, tail="pad", prefetch=8))[-1]
    assert (batch.ids.dtype, batch.mask.dtype, batch.ids.device) == (
        torch.int64,
        torch.bool,
        batch.labels.device,
    )
    assert (
        batch.ids[batch.mask].tolist() == list(range(48, 60))
        and int((batch.labels == batch.labels)[batch.mask].sum()) == 12
    )
    tensors = list(loader_of(data, None, batch_size=16, tail="pad", prefetch=8))[-1]
    assert (
        np.asarray(tensors.mask).tolist() == [True] * 12 + [False] * 4
        and np.from_dlpack(tensors.ids).dtype == np.int64
    )


def test_accelerate_keeps_batches_whole(data, torch):
    accelerate = pytest.importorskip("accelerate", reason="Accelerate is not installed")
    from accelerate.utils import send_to_device

    loader = loader_of(data, "torch", tail="pad")
    prepared = accelerate.Accelerator(cpu=True).prepare(loader)
    assert prepared is loader
    for batch in prepared:
        moved = send_to_device(batch, torch.device("cpu"))
        assert moved is batch and moved.mask.all()


# --- Lightning ----------------------------------------------------------------------------------------------


@pytest.fixture
def lightning():
    return pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")


def module_of(lightning, torch, seen, wrong=None):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(3, 3)

        def loss(self, batch):
            images, labels = batch
            assert isinstance(batch, sl.types.Batch) and len(batch.ids) == len(batch.column("labels")) == len(
                labels
            )
            return torch.nn.functional.cross_entropy(self.net(images.float().mean((2, 3))), labels)

        def training_step(self, batch, index):
            seen.append(
                ("train", self.current_epoch, batch.epoch, batch.batch_index, tuple(batch.ids.tolist()))
            )
            if wrong is not None and (self.current_epoch, index) == wrong:
                raise LookupError("stopped")
            return self.loss(batch)

        def validation_step(self, batch, index):
            seen.append(
                (
                    "val",
                    self.current_epoch,
                    batch.epoch,
                    batch.batch_index,
                    tuple(batch.ids[batch.mask].tolist()),
                )
            )
            self.log("val_loss", self.loss(batch))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    return Module()


def trainer_of(lightning, folder, epochs, callbacks=(), **options):
    return lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=epochs,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        callbacks=list(callbacks),
        **options,
    )


def pair_of(data):
    options = {"framework": "torch", "batch_size": 12}
    return sl.Loader(data, seed=2, **options), sl.Loader(
        data, shuffle=False, **{**options, "batch_size": 16}, tail="short"
    )


def test_lightning_trains_each_epoch_once_and_keeps_batches(data, torch, lightning, tmp_path):
    seen = []
    train, val = pair_of(data)
    trainer_of(lightning, tmp_path, 3, enable_checkpointing=False).fit(
        module_of(lightning, torch, seen), train, val
    )
    assert [(mine, theirs, index) for kind, mine, theirs, index, _ in seen if kind == "train"] == [
        (e, e, i) for e in range(3) for i in range(5)
    ]
    whole = loader_of(data, "torch", shuffle=True, seed=2, batch_size=12)
    for epoch in range(3):
        assert [
            i for kind, mine, _, _, ids in seen if kind == "train" and mine == epoch for i in ids
        ] == ids_of(whole, epoch)
        assert sorted(
            {i for kind, mine, _, _, ids in seen if kind == "val" and mine == epoch for i in ids}
        ) == list(range(SAMPLES))


@pytest.mark.parametrize(
    "when", ["at the end of the epoch", "after validation", "in the epoch", "by save_checkpoint"]
)
def test_lightning_resumes_where_it_was(data, torch, lightning, tmp_path, when):
    from lightning.pytorch.callbacks import ModelCheckpoint

    whole = []
    trainer_of(lightning, tmp_path, 4, enable_checkpointing=False).fit(
        module_of(lightning, torch, whole), *pair_of(data)
    )
    options = {"dirpath": tmp_path, "filename": "state", "enable_version_counter": False, "save_top_k": 1}
    callbacks = {
        "at the end of the epoch": [ModelCheckpoint(save_on_train_epoch_end=True, **options)],
        "after validation": [ModelCheckpoint(save_on_train_epoch_end=False, **options)],
        "in the epoch": [ModelCheckpoint(every_n_train_steps=3, **options)],
        "by save_checkpoint": [],
    }[when]
    first = []
    trainer = trainer_of(lightning, tmp_path, 4 if when == "in the epoch" else 2, callbacks)
    module = module_of(lightning, torch, first, wrong=(2, 3) if when == "in the epoch" else None)
    if when == "in the epoch":
        with pytest.raises(LookupError):
            trainer.fit(module, *pair_of(data))
        path = tmp_path / "state.ckpt"
    else:
        trainer.fit(module, *pair_of(data))
        path = tmp_path / "state.ckpt"
        if when == "by save_checkpoint":
            trainer.save_checkpoint(path)
    second = []
    trainer_of(lightning, tmp_path, 4, enable_checkpointing=False).fit(
        module_of(lightning, torch, second), *pair_of(data), ckpt_path=path
    )

    def trained(seen):
        return [(mine, theirs, index, ids) for kind, mine, theirs, index, ids in seen if kind == "train"]

    done = trained(first)
    if when == "in the epoch":
        done = done[:12]  # the last checkpoint is of step 12; what came after it is done again
    assert done + trained(second) == trained(whole)


# --- JAX ----------------------------------------------------------------------------------------------------


def test_jax_arrays_are_copies(data, reference):
    pytest.importorskip("jax", reason="JAX is not installed")
    kept = [images for images, _ in loader_of(data, "jax", prefetch=1)]
    np.testing.assert_array_equal(np.concatenate(kept), reference[0])
