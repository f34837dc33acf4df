"""Tensors of the library as arrays of the framework that was asked for."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .._errors import InvalidArgumentError, UnsupportedError
from .numpy import np

FRAMEWORKS = ("torch", "numpy", "jax", "cupy")

# dtype names of the C++ library as Python's frameworks spell them.
DTYPES = {"u8": "uint8", "u16": "uint16", "f16": "float16", "bf16": "bfloat16", "f32": "float32"}


def name_of(dtype: Any) -> str:
    """A dtype of torch or numpy, or text, as text: torch.float16 and np.float16 are "float16". "": none."""
    if isinstance(dtype, str) or type(dtype).__module__.partition(".")[0] == "torch":
        return str(dtype).removeprefix("torch.")
    try:
        return str(np.dtype(dtype).name)  # Any in the stubs of some versions of numpy
    except TypeError:
        return ""


def dtype_name(dtype: Any) -> str:
    """ "uint8", "uint16", "float16", "bfloat16" or "float32" of any spelling: "f16", "float16",
    torch.float16, np.float16, a numpy dtype."""
    name = name_of(dtype)
    name = DTYPES.get(name, name)
    if name not in DTYPES.values():
        expected = ", ".join(f'"{long}" ("{short}")' for short, long in DTYPES.items())
        raise InvalidArgumentError(
            f"dtype is {dtype!r}; expected one of {expected}, or a dtype of numpy or torch"
        )
    return name


def to_numpy(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The same memory as an array, which keeps it alive.
    bfloat16: ml_dtypes' where installed, else its bits in uint16."""
    array = np.asarray(tensor)
    if tensor.dtype == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            return array
        return array.view(ml_dtypes.bfloat16)
    return array


def default_framework(on_cuda: bool) -> str | None:
    """torch where it is installed (or imported); else numpy on the host, cupy on a GPU."""
    if "torch" in sys.modules or importlib.util.find_spec("torch"):
        return "torch"
    if not on_cuda:
        return "numpy"
    return "cupy" if importlib.util.find_spec("cupy") else None


class Framework:
    """How one framework takes batches: which stream is current,
    and what an array of it is made of a tensor by."""

    device = "cpu"  # or "cuda:N"

    # None: the host waits for the batch. -1: the consumer of DLPack says its stream later.
    def stream(self) -> int | None:
        return None

    current_stream: Callable[[], int] | None = (
        None  # of the calling thread; asked when the last array of a batch dies
    )

    def images(self, tensor: Tensor) -> Any:
        """Shares the batch's memory."""
        raise NotImplementedError

    def labels(self, tensor: Tensor) -> Any:
        """A copy: labels are small and often kept, and must not keep a whole batch from being used again."""
        raise NotImplementedError

    def labels_of(self, core: Any) -> Any:
        """The labels of a batch."""
        return self.labels(core.column("labels", 0))

    def forget(self) -> None:
        """Another epoch begins, or the same one again."""

    def mask(self, core: Any) -> Any:
        """Of a batch, as booleans: a copy."""
        return self.labels(core.mask)


class Numpy(Framework):
    def images(self, tensor: Tensor) -> np.ndarray[Any, Any]:
        return to_numpy(tensor)

    def labels(self, tensor: Tensor) -> np.ndarray[Any, Any]:
        return to_numpy(tensor).copy()


class Torch(Framework):
    def __init__(self, ordinal: int) -> None:
        import torch

        self._bool, self._split = torch.bool, torch.unsafe_split_with_sizes
        self._inference = torch.is_inference_mode_enabled
        self._kept: tuple[Any, Any] | None = None  # see labels_of()
        self._from_dlpack = torch.utils.dlpack.from_dlpack
        if ordinal >= 0:
            if torch.version.cuda is None:
                raise InvalidArgumentError(
                    f'device "cuda:{ordinal}": this PyTorch ({torch.__version__}) was built without CUDA; '
                    "install one that was built with it, "
                    'or use framework=None or "cupy"'
                )
            if not torch.cuda.is_available():
                raise InvalidArgumentError(
                    f'device "cuda:{ordinal}": PyTorch finds no GPU that it can use '
                    '(torch.cuda.is_available() is False); use device="cpu"'
                )
            torch.cuda.init()
            raw = getattr(
                torch._C, "_cuda_getCurrentRawStream", None
            )  # what current_stream() asks, without an object
            if raw is not None:
                self.current_stream = lambda: raw(ordinal)
            else:
                self.current_stream = lambda: torch.cuda.current_stream(ordinal).cuda_stream
            self.stream = self.current_stream  # type: ignore[method-assign]

    def images(self, tensor: Tensor) -> Any:
        return self._from_dlpack(tensor.capsule())

    def labels(self, tensor: Tensor) -> Any:
        return self._from_dlpack(tensor.capsule()).clone()

    def labels_of(self, core: Any) -> Any:
        """Batches that were made as one are copied as one, in the stream of the first: a copy for each takes
        20 us of PyTorch's and the driver's time, half of what batches of 16 have on the link."""
        place = core.place
        if place is None:
            return self.labels(core.column("labels", 0))
        mode = self._inference()  # what is copied in it is of use there alone
        key = (core.epoch, core.index - place, self.stream(), threading.get_ident(), mode)
        kept = self._kept
        if kept is None or kept[0] != key or place == 0:
            copy = self.labels(core.column_together("labels"))
            # One storage for all of them, but each counts its own versions for autograd.
            kept = self._kept = (key, self._split(copy, core.rows_together))
        return kept[1][place]

    def forget(self) -> None:
        self._kept = None

    def mask(self, core: Any) -> Any:
        return self.labels(core.mask_bytes).view(
            self._bool
        )  # PyTorch takes booleans by DLPack from some version on


class Cupy(Framework):
    def __init__(self, ordinal: int) -> None:
        import cupy

        if ordinal < 0:
            raise InvalidArgumentError('framework="cupy" needs device="cuda:N"')
        self._cupy = cupy
        self._ordinal = ordinal
        self.current_stream = self._current

    def _current(self) -> int:
        with self._cupy.cuda.Device(self._ordinal):
            return int(self._cupy.cuda.get_current_stream().ptr)

    def stream(self) -> int | None:
        return self._current()

    def images(self, tensor: Tensor) -> Any:
        with self._cupy.cuda.Device(self._ordinal):
            return self._cupy.from_dlpack(tensor)

    def labels(self, tensor: Tensor) -> Any:
        return self.images(tensor).copy()

    def mask(self, core: Any) -> Any:
        with self._cupy.cuda.Device(self._ordinal):
            return self.labels(core.mask_bytes).view(bool)


class Jax(Framework):
    """JAX runs its work on streams of its own, which it does not name:
    the host waits for the batch, and JAX gets a copy."""

    def __init__(self, ordinal: int) -> None:
        import jax.numpy

        self._array = jax.numpy.array
        self._on_cuda = ordinal >= 0
        self._from_dlpack = jax.numpy.from_dlpack

    def images(self, tensor: Tensor) -> Any:
        if not self._on_cuda:
            return self._array(to_numpy(tensor), copy=True)
        return self._array(self._from_dlpack(tensor), copy=True).block_until_ready()

    labels = images

    def mask(self, core: Any) -> Any:
        return self.images(core.mask_bytes).astype(bool)


class DLPack(Framework):
    """Objects with __dlpack__: their consumer says its stream."""

    def __init__(self, ordinal: int) -> None:
        self._on_cuda = ordinal >= 0

    def stream(self) -> int | None:
        return -1 if self._on_cuda else None

    def images(self, tensor: Tensor) -> Tensor:
        return tensor

    def labels(self, tensor: Tensor) -> Tensor:
        return tensor


def _require_gpu(ordinal: int) -> None:
    """Says what is missing before a framework is asked, which knows only its own part of it."""
    if not _core.has_cuda:
        raise UnsupportedError(
            f'device "cuda:{ordinal}": this build of shardloader has no CUDA: '
            "install it again where a CUDA compiler is found (CUDACXX, or nvcc in PATH), "
            'or use device="cpu"'
        )
    if int(_core.cuda_device_count()) == 0:
        raise UnsupportedError(
            f'device "cuda:{ordinal}": there is no GPU that this process can use: '
            "no driver of NVIDIA is loaded, or CUDA_VISIBLE_DEVICES hides all GPUs; "
            'use device="cpu"'
        )


def framework_of(name: str | None, ordinal: int) -> Framework:
    framework = _make_framework(name, ordinal)
    framework.device = "cpu" if ordinal < 0 else f"cuda:{ordinal}"
    return framework


def _make_framework(name: str | None, ordinal: int) -> Framework:
    if name == "auto":
        name = default_framework(ordinal >= 0)
    if name is None:
        return DLPack(ordinal)
    if name not in FRAMEWORKS:
        raise InvalidArgumentError(
            f'framework is {name!r}; expected "torch", "jax", "cupy", "numpy", "auto" or None'
        )
    if name == "numpy":
        if ordinal >= 0:
            raise InvalidArgumentError(
                'framework="numpy" needs device="cpu": numpy has no arrays in device memory'
            )
        return Numpy()
    if ordinal >= 0:
        _require_gpu(ordinal)
    try:
        return {"torch": Torch, "jax": Jax, "cupy": Cupy}[name](ordinal)
    except ImportError as error:
        raise InvalidArgumentError(
            f"framework={name!r}: it is not installed ({error}): install it, or choose another framework"
        ) from error
