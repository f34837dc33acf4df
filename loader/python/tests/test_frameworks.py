"""The same batches as arrays of each framework that is installed, and through DLPack."""

import gc
import threading

import numpy as np
import pytest

import shardloader as sl
from conftest import SAMPLES, ids_of


def loader_of(data, framework, **options):
    return sl.Loader(data, **{"batch_size": 10, "framework": framework, "shuffle": False, "prefetch": 2, **options})


def address(array):
    return array.__array_interface__["data"][0]


# --- DLPack -----------------------------------------------------------------------------------------------------------


def test_dlpack_objects_share_the_batch_with_numpy(data, reference):
    batches = loader_of(data, None).epoch(0)
    tensor, labels = next(batches)
    assert isinstance(tensor, sl.Tensor)
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
    assert next(batches).index == 2
    np.testing.assert_array_equal(other, reference[0][10:20])


def test_a_capsule_that_nobody_takes_holds_nothing_for_long(data):
    batches = loader_of(data, None, prefetch=1)
    for tensor, _ in batches:
        assert "dltensor_versioned" in repr(tensor.__dlpack__(max_version=(1, 0)))
        assert "dltensor_versioned" not in repr(tensor.__dlpack__())


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


# --- PyTorch ----------------------------------------------------------------------------------------------------------


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
    for (images, labels), (expected, expected_labels) in zip(ours.epoch(0), loader_of(data, "numpy", **options).epoch(0)):
        assert images.dtype == getattr(torch, dtype) and labels.dtype == torch.int64 and images.is_contiguous()
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
    assert next(batches).index == 2
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


def test_state_dicts_go_through_torch_save(data, torch, tmp_path):
    loader = loader_of(data, "torch")
    next(loader.epoch(3))
    torch.save(loader.state_dict(), tmp_path / "state.pt")
    other = loader_of(data, "torch")
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert next(other.epoch(3)).index == 1


# --- JAX --------------------------------------------------------------------------------------------------------------


def test_jax_arrays_are_copies(data, reference):
    pytest.importorskip("jax", reason="JAX is not installed")
    kept = [images for images, _ in loader_of(data, "jax", prefetch=1)]
    np.testing.assert_array_equal(np.concatenate(kept), reference[0])
