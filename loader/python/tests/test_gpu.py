"""The loader on a GPU with PyTorch. `pytest -m gpu`; skipped, with the reason, where there is none."""

import numpy as np
import pytest

import shardloader as sl
from conftest import SAMPLES

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.cuda.is_available() or not sl.has_cuda:
    pytest.skip("no CUDA: " + ("shardloader was built without it" if not sl.has_cuda else "no device"), allow_module_level=True)

OPTIONS = {"batch_size": 10, "random_resized_crop": 24, "flip": True, "dtype": "float16", "layout": "nchw"}


def loader_of(data, **options):
    return sl.Loader(data, **{"device": "cuda:0", "framework": "torch", "prefetch": 2, **OPTIONS, **options})


def busy(milliseconds=20):
    """Keeps the current stream busy, so that work that is not ordered behind it comes before it."""
    torch.cuda._sleep(int(milliseconds * 1.5e6))


@pytest.mark.parametrize("codec", ["none", "packed", "zstd:1"])
@pytest.mark.parametrize("transport", ["auto", "staged", "resident"])
def test_the_same_bits_as_on_the_host(make, codec, transport):
    folder = make(codec=codec)
    host = sl.Loader(folder, framework="torch", **OPTIONS)
    seen = 0
    for ours, theirs in zip(loader_of(folder, transport=transport).epoch(1), host.epoch(1)):
        assert ours[0].device == ours[1].device == torch.device("cuda:0")
        assert torch.equal(ours[0].cpu().view(torch.int16), theirs[0].view(torch.int16)) and torch.equal(ours[1].cpu(), theirs[1])
        seen += len(ours[1])
    assert seen == SAMPLES


@pytest.mark.parametrize("default_stream", [True, False])
def test_work_in_the_current_stream_sees_the_batch_and_holds_it(folder, default_stream):
    host = [batch[0].clone() for batch in sl.Loader(folder, framework="torch", **OPTIONS).epoch(0)]
    stream = torch.cuda.default_stream() if default_stream else torch.cuda.Stream()
    loader = loader_of(folder, prefetch=1)
    for _ in range(3):
        copies = []
        with torch.cuda.stream(stream):
            for images, _ in loader.epoch(0):
                busy()  # the copy below is late, and the tensor is gone before it runs
                copies.append(images.clone())
                del images
        stream.synchronize()
        for copy, expected in zip(copies, host):
            assert torch.equal(copy.cpu(), expected)


def test_a_tensor_that_dies_under_another_stream_is_held_for_both(folder):
    host = [batch[0].clone() for batch in sl.Loader(folder, framework="torch", **OPTIONS).epoch(0)]
    side = torch.cuda.Stream()
    copies = []
    for images, _ in loader_of(folder, prefetch=1).epoch(0):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            busy()
            copies.append(images.clone())
            del images  # the stream of its last use is current
    torch.cuda.synchronize()
    for copy, expected in zip(copies, host):
        assert torch.equal(copy.cpu(), expected)


def test_dlpack_objects_order_the_stream_that_takes_them(folder):
    host = [batch[0].clone() for batch in sl.Loader(folder, framework="torch", **OPTIONS).epoch(0)]
    for (tensor, labels), expected in zip(loader_of(folder, framework=None).epoch(0), host):
        assert tensor.device == "cuda:0" and tensor.__dlpack_device__() == (2, 0)
        with pytest.raises(BufferError):
            memoryview(tensor)
        assert torch.equal(torch.from_dlpack(tensor).cpu(), expected)
        assert torch.from_dlpack(labels).device.type == "cuda"


def test_holding_all_batches_is_an_error(folder):
    kept, batches = [], loader_of(folder, prefetch=1).epoch(0)
    with pytest.raises(sl.ResourceError, match="held"):
        for images, _ in batches:
            kept.append(images)
    assert len(kept) == 2
    kept.pop()
    del images
    assert next(batches).index == 2


def test_batches_outlive_the_loader(folder):
    expected = next(sl.Loader(folder, framework="torch", **OPTIONS).epoch(0))[0]
    with loader_of(folder) as loader:
        images = next(loader.epoch(0))[0]
    del loader
    torch.cuda.synchronize()
    assert torch.equal(images.cpu(), expected)


def test_a_training_step_with_autograd(folder):
    loader = loader_of(folder, prefetch=1, dtype="float32")
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(3)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for epoch in range(3):
        for images, labels in loader.epoch(epoch):
            loss = torch.nn.functional.cross_entropy(net(images), labels)
            del images
            optimizer.zero_grad()
            loss.backward()  # frees what autograd kept of the batch, on its own thread
            optimizer.step()
    assert np.isfinite(loss.item())


def test_cuda_is_torchs_current_device(folder):
    last = torch.cuda.device_count() - 1
    with torch.cuda.device(last):
        loader = loader_of(folder, device="cuda")
        assert loader.device == f"cuda:{last}"
        assert next(iter(loader))[0].device == torch.device("cuda", last)
    with pytest.raises(ValueError, match="numpy"):
        loader_of(folder, framework="numpy")
