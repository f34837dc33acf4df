"""The loader on a GPU with PyTorch. `pytest -m gpu`; skipped, with the reason, where there is none."""

import threading

import numpy as np
import pytest

import shardloader as sl
from conftest import SAMPLES

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.cuda.is_available() or not sl.has_cuda:
    pytest.skip(
        "no CUDA: " + ("shardloader was built without it" if not sl.has_cuda else "no device"),
        allow_module_level=True,
    )

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
        assert torch.equal(ours[0].cpu().view(torch.int16), theirs[0].view(torch.int16)) and torch.equal(
            ours[1].cpu(), theirs[1]
        )
        seen += len(ours[1])
    assert seen == SAMPLES


@pytest.mark.parametrize("codec", ["none", "packed", "zstd:1"])
@pytest.mark.parametrize("transport", ["auto", "staged", "resident"])
def test_targets_are_those_of_the_host(tmp_path, codec, transport):
    rng = np.random.default_rng(0)
    columns = {
        "mask": sl.ImageField("uint8", 40, 40, 1, role="mask", codec=codec),
        "wide": sl.ImageField("uint16", 40, 40, 1, role="mask"),
        "depth": sl.ImageField("uint16", 40, 40, 1),
        "camera": sl.ImageField("uint8", 40, 40, 3, codec=codec),
        "latent": sl.ImageField("float16", 5, 3, layout="tensor"),
        "boxes": sl.Ragged("float32", 4),
    }
    with sl.Writer(
        tmp_path / "set",
        columns=columns,
        squash=(40, 40),
        dtype="uint8",
        layout="nhwc",
        codec=codec,
        samples_per_shard=16,
    ) as writer:
        for number in range(40):
            image = rng.integers(0, 256, (40, 40, 3), dtype=np.uint8) // (1 + number % 3 * 60)
            corner = rng.uniform(0, 30, (number % 5, 2))
            row = {
                "mask": image[..., :1],
                "wide": image[..., :1].astype(np.uint16) * 200,
                "depth": image[..., 1:2].astype(np.uint16) * 256,
                "camera": image,
                "latent": rng.normal(size=(5, 3)).astype(np.float16),
                "boxes": np.concatenate([corner, corner + 10], 1).astype(np.float32),
            }
            writer.add(f"{number}", image, 0, **row)
    moves = [
        sl.ops.affine((-90, 90), (0.1, 0.1), (0.7, 1.4)),
        sl.ops.perspective(0.4),
        sl.ops.turns(),
        sl.ops.padded_crop(5, reflect=True),
    ]
    views = [
        sl.Augment(random_resized_crop=32, flip=True, ops=moves),
        sl.Augment(random_crop=24, flip=True),
        sl.Augment.rand_augment(2, 9, random_resized_crop=(20, 28)),
    ]
    fields = {
        "mask": sl.Pixels("nearest", fill=255),
        "wide": "nearest",
        "depth": sl.Pixels("bilinear", dtype="float16"),
        "camera": "bilinear",
        "latent": "stored",
        "boxes": sl.Boxes(),
    }
    options = {
        "batch_size": 8,
        "framework": "torch",
        "views": views,
        "fields": fields,
        "correspondence": True,
        "seed": 3,
    }
    host = [
        [batch.targets(view) for view in range(3)]
        for batch in sl.Loader(tmp_path / "set", **options).epoch(1)
    ]
    loader = sl.Loader(tmp_path / "set", device="cuda:0", transport=transport, prefetch=2, **options)
    for _ in range(2):  # resident: the second time from memory
        for batch, expected in zip(loader.epoch(1), host):
            for view in range(3):
                for name, value in batch.targets(view).items():
                    assert value.device == torch.device("cuda:0")
                    assert torch.equal(
                        value.cpu().view(torch.uint8), expected[view][name].view(torch.uint8)
                    ), (name, view)
    cutmix = {
        "batch_size": 8,
        "framework": "torch",
        "augment": views[0],
        "fields": {"mask": "nearest"},
        "as_stored": ["boxes"],
        "cutmix": 1.0,
    }
    for ours, theirs in zip(
        sl.Loader(tmp_path / "set", device="cuda:0", **cutmix).epoch(0),
        sl.Loader(tmp_path / "set", **cutmix).epoch(0),
    ):
        assert torch.equal(ours.field("mask").cpu(), theirs.field("mask"))


@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.parametrize("default_stream", [True, False])
def test_work_in_the_current_stream_sees_the_batch_and_holds_it(folder, default_stream, together):
    host = [batch[0].clone() for batch in sl.Loader(folder, framework="torch", **OPTIONS).epoch(0)]
    stream = torch.cuda.default_stream() if default_stream else torch.cuda.Stream()
    loader = loader_of(folder, prefetch=1, together=together)
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
    assert next(batches).batch_index == 2


def test_batches_outlive_the_loader(folder):
    expected = next(sl.Loader(folder, framework="torch", **OPTIONS).epoch(0))[0]
    with loader_of(folder) as loader:
        images = next(loader.epoch(0))[0]
    del loader
    torch.cuda.synchronize()
    assert torch.equal(images.cpu(), expected)


def test_a_training_step_with_autograd(folder):
    loader = loader_of(folder, prefetch=1, dtype="float32")
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(3)
    ).cuda()
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


def test_ids_and_mask_are_on_the_gpu_and_batches_move_whole(folder):
    loader = loader_of(folder, batch_size=16, tail="pad", shuffle=False, prefetch=8)
    batch = list(loader.epoch(0))[-1]
    assert batch.ids.device == batch.mask.device == batch.labels.device == torch.device("cuda:0")
    assert (batch.ids.dtype, batch.mask.dtype) == (torch.int64, torch.bool) and batch.ids[
        batch.mask
    ].tolist() == list(range(48, 60))
    for device in ("cuda:0", torch.device("cuda", 0), 0):
        assert batch.to(device) is batch is batch.to(device, non_blocking=True)
    moved = batch.to("cpu")
    assert (
        isinstance(moved, sl.types.Batch)
        and torch.equal(moved.images, batch.images.cpu())
        and torch.equal(moved.mask, batch.mask.cpu())
    )
    assert (moved.epoch, moved.batch_index) == (0, 3) and moved.column("labels").device.type == "cpu"


def test_the_short_tail_on_the_gpu(folder):
    batches = list(loader_of(folder, batch_size=16, drop_last=False, prefetch=8).epoch(0))
    assert (
        [len(batch.images) for batch in batches] == [len(batch.ids) for batch in batches] == [16, 16, 16, 12]
    )
    assert sorted(i for batch in batches for i in batch.ids.tolist()) == list(range(SAMPLES))


def test_a_dropped_loader_gives_its_device_memory_back(folder):
    def cell(kept):
        loader = loader_of(
            folder, random_resized_crop=224, dtype="float32", prefetch=30
        )  # 31 batches of 6 MB
        for batch in loader:
            kept[:] = [batch, iter(loader)]
            break

    kept = []
    cell(kept)
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    for _ in range(20):
        cell(kept)
    torch.cuda.synchronize()
    assert free - torch.cuda.mem_get_info()[0] < 100e6
    assert torch.isfinite(kept[0].images).all()


def test_graphs_are_captured_beside_a_loader_that_starts(folder):
    """100 captures in mode global, torch's default, while another thread makes loaders and runs them."""
    static = torch.zeros(1 << 16, device="cuda:0")
    done = threading.Event()
    failures, loaders = [], 0

    def load():
        nonlocal loaders
        try:
            while not done.is_set():
                for _ in loader_of(folder, framework=None).epoch(0):  # torch must not allocate meanwhile
                    pass
                loaders += 1
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for _ in range(100):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(20):
                    static.add_(1)
            before = static[0].item()
            graph.replay()
            assert static[0].item() == before + 20
    finally:
        done.set()
        thread.join()
    assert not failures and loaders > 0


def test_training_with_a_graph_as_the_documents_say(folder):
    host = [batch[0].clone() for batch in sl.Loader(folder, framework="torch", **OPTIONS).epoch(0)]
    loader = loader_of(folder)
    static = torch.empty_like(loader.epoch(0).__next__()[0])
    result = torch.empty((), dtype=torch.float64, device="cuda:0")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result.copy_(static.double().sum())
    for (images, _), expected in zip(loader.epoch(0), host):
        static.copy_(images)
        graph.replay()
        assert result.item() == pytest.approx(expected.double().sum().item(), rel=1e-9)


def test_a_batch_that_dies_while_its_stream_captures_is_an_error(folder):
    loader = loader_of(folder)
    batches = loader.epoch(0)
    batch = next(batches)
    static = torch.zeros(16, device="cuda:0")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static.add_(1)
        del batch
    with pytest.raises(sl.InvalidArgumentError, match="captures a CUDA graph"):
        next(batches)
    graph.replay()


def test_views_can_be_replaced_and_states_know_them(folder):
    def view(side):
        return sl.Augment(
            random_resized_crop=side, flip=0.5, color_jitter=(0.4, 0.4, 0.4, 0.1), ops=[sl.ops.affine(10)]
        )

    def batches(loader, epoch):
        return [batch[0].cpu().view(torch.int16).clone() for batch in loader.epoch(epoch)]

    options = {"batch_size": 10, "dtype": "float16", "layout": "nchw", "framework": "torch", "seed": 2}
    ours, theirs = (
        sl.Loader(folder, device=device, augment=view(12), prefetch=5, **options)
        for device in ("cuda:0", "cpu")
    )
    for epoch, side in enumerate((12, 24, 9)):
        for loader in (ours, theirs):
            loader.set_augment(view(side))
        running = ours.epoch(epoch)
        next(running)
        state = ours.state_dict()
        ours.set_augment(view(31))  # replaced again before the next epoch starts
        rest, expected = (
            [batch[0].cpu().view(torch.int16).clone() for batch in running],
            batches(theirs, epoch),
        )
        assert all(torch.equal(a, b) for a, b in zip(rest, expected[1:])) and len(rest) == len(expected) - 1
        resumed = sl.Loader(folder, device="cuda:0", augment=view(12), **options)
        resumed.load_state_dict(state)
        assert all(torch.equal(a, b) for a, b in zip(batches(resumed, epoch), expected[1:]))
