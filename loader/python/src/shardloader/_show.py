"""Samples as pictures, for people: Dataset.show() and what a notebook shows of a data set."""

from __future__ import annotations

import base64
import contextlib
import html
import os
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from ._base import check
from ._base.numpy import np
from ._errors import CorruptError, InvalidArgumentError, ShardError, UnsupportedError

Pixels = Any  # uint8 [row, column, 3]

FIRST_LOOK = 12  # pictures of a data set's own representation
WHITE = (255, 255, 255)


def color_of(number: int) -> tuple[int, int, int]:
    """Pascal VOC's colour of a class: the bits of the number, three at a time, are the highest bits of red,
    green and blue. shardctl has the same."""
    red = green = blue = 0
    for bit in range(7, -1, -1):
        red |= (number & 1) << bit
        green |= (number >> 1 & 1) << bit
        blue |= (number >> 2 & 1) << bit
        number >>= 3
    return red, green, blue


# --- pixels -------------------------------------------------------------------------------------------------


def _float_values(array: Any, dtype: str) -> Any:
    """bfloat16 is its bits where ml_dtypes is not installed."""
    if dtype == "bfloat16" and array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def rgb_of(array: Any, dtype: str, layout: str, mean: Sequence[float], std: Sequence[float]) -> Pixels:
    """A stored image as uint8 RGB: normalisation undone, one or two channels as gray, further ones left out.
    uint16 is divided by 257."""
    if layout == "nchw":
        array = array.transpose(1, 2, 0)
    if array.dtype != np.uint8:
        if dtype == "uint16":
            values = array.astype(np.float32) / 257
        else:
            channels = array.shape[-1]
            scale = np.resize(np.asarray(std, np.float32), channels)
            values = (
                _float_values(array, dtype) * scale + np.resize(np.asarray(mean, np.float32), channels)
            ) * 255
        array = np.nan_to_num(np.rint(values)).clip(0, 255).astype(np.uint8)
    return np.ascontiguousarray(array[..., :3] if array.shape[-1] >= 3 else np.repeat(array[..., :1], 3, -1))


def gray_range(array: Any) -> Pixels:
    """One channel of any dtype: gray from the smallest to the largest value that is not 0. In maps of depth 0
    stands for no value."""
    values = np.squeeze(array, -1).astype(np.float64) if array.ndim == 3 else array.astype(np.float64)
    known = np.isfinite(values) & (values != 0)
    gray = np.zeros(values.shape)
    if known.any():
        low, high = values[known].min(), values[known].max()
        gray[known] = 32 + 223 * (values[known] - low) / (high - low) if high > low else 255
    return np.repeat(np.rint(gray).astype(np.uint8)[..., None], 3, -1)


def blend_mask(picture: Pixels, mask: Any) -> None:
    """Each class in its colour, half transparent; class 0 is left as it is, 255 of uint8 becomes white."""
    for number in np.unique(mask):
        if number == 0:
            continue
        color = WHITE if mask.dtype == np.uint8 and number == 255 else color_of(int(number))
        there = mask == number
        picture[there] = (picture[there].astype(np.uint16) + np.asarray(color, np.uint16) + 1) // 2


def shrunk(picture: Pixels, most: int) -> Pixels:
    """With at most `most` rows and columns: each pixel is the mean of those that it covers."""
    rows, columns = picture.shape[:2]
    longer = max(rows, columns)
    if longer <= most:
        return picture
    values = picture.astype(np.float32)
    for axis, extent in ((0, rows), (1, columns)):
        small = max(1, extent * most // longer)
        edges = np.arange(small + 1) * extent // small
        values = np.add.reduceat(values, edges[:-1], axis)
        counts = np.diff(edges).astype(np.float32)
        values /= counts[:, None, None] if axis == 0 else counts[None, :, None]
    return np.rint(values).astype(np.uint8)


def draw_frame(
    picture: Pixels, box: Sequence[float], scale: tuple[float, float], color: Any, thick: int
) -> None:
    """The border of left, top, right, bottom, to the inside.
    scale: pixels of the picture per unit, x and y."""
    rows, columns = picture.shape[:2]
    left, right = (int(np.clip(np.nan_to_num(at) * scale[0], 0, columns)) for at in (box[0], box[2]))
    top, bottom = (int(np.clip(np.nan_to_num(at) * scale[1], 0, rows)) for at in (box[1], box[3]))
    right, bottom = max(right, min(left + 1, columns)), max(bottom, min(top + 1, rows))
    inside = picture[top:bottom, left:right]
    for edge in (inside[:thick], inside[-thick:], inside[:, :thick], inside[:, -thick:]):
        edge[:] = color


def draw_dot(picture: Pixels, x: float, y: float, color: Any) -> None:
    """Five by five pixels around a place; what falls outside is not drawn."""
    if np.isfinite(x) and np.isfinite(y) and abs(x) < 1e6 and abs(y) < 1e6:
        column, row = int(x), int(y)
        picture[max(row - 2, 0) : max(row + 3, 0), max(column - 2, 0) : max(column + 3, 0)] = color


def png_of(picture: Pixels) -> bytes:
    """A PNG file. Each row is stored as the difference to the one above."""
    rows, columns = picture.shape[:2]
    lines = picture.reshape(rows, columns * 3)
    differences = np.diff(lines, axis=0, prepend=np.zeros((1, columns * 3), np.uint8))  # modulo 256
    filtered = np.concatenate([np.full((rows, 1), 2, np.uint8), differences], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(filtered.tobytes(), 6))
        + chunk(b"IEND", b"")
    )


# --- tiles --------------------------------------------------------------------------------------------------


class _Tile:
    def __init__(self, picture: Pixels | None, caption: str, hint: str, below: str = "") -> None:
        self.picture, self.caption, self.hint, self.below = picture, caption, hint, below

    def html(self, size: int) -> str:
        if self.picture is None:
            image = (
                f'<div style="width:{size}px;height:{size}px;border:1px dashed;overflow:hidden">'
                f"{html.escape(self.hint)}</div>"
            )
        else:
            rows, columns = self.picture.shape[:2]
            factor = size / max(rows, columns)  # small pictures are enlarged
            width, height = round(columns * factor), round(rows * factor)
            sharp = "image-rendering:pixelated;" if factor >= 2 else ""
            image = (
                f'<img src="data:image/png;base64,{base64.b64encode(png_of(self.picture)).decode()}" '
                f'width="{width}" height="{height}" alt="{html.escape(self.hint)}" '
                f'title="{html.escape(self.hint)}" style="{sharp}margin:0">'
            )
        line = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap;font-size:12px;line-height:1.4"
        below = f'<div style="{line};opacity:.75">{html.escape(self.below)}</div>' if self.below else ""
        return (
            f'<div style="width:{size}px"><div style="height:{size}px;display:flex;align-items:end">{image}'
            f'</div><div style="{line}">{html.escape(self.caption)}</div>{below}</div>'
        )


def _short(value: Any, most: int = 60) -> str:
    text = " ".join(str(value.tolist() if isinstance(value, np.ndarray) else value).split())
    return text if len(text) <= most else text[: most - 1] + "…"


class _Look:
    """What of a data set is drawn."""

    def __init__(self, data: Any, size: int, targets: bool) -> None:
        self.data, self.size = data, size
        images = data._info["images"] if targets else {}
        self.masks = [name for name, (role, _, _) in images.items() if role == "mask"]
        self.further = [
            name for name, (role, _, shape) in images.items() if role == "image" and len(shape) == 3
        ]
        kinds = data._info["kinds"]
        self.boxes = targets and kinds.get("boxes", ("",))[0] == "ragged" and tuple(kinds["boxes"][2]) == (4,)
        points = kinds.get("keypoints", ("", "", ()))
        self.keypoints = targets and points[0] == "ragged" and len(points[2]) == 2 and points[2][1] == 3
        self.texts = [name for name, (kind, _, _) in kinds.items() if kind == "text"]
        self.seen: dict[str, tuple[int, int, int]] = {}  # classes of masks and boxes, and their colours

    def tiles(self, index: int) -> list[_Tile]:
        data = self.data
        try:
            array, label = data[index]
            key = data.keys[index]
            named = isinstance(label, int) and 0 <= label < len(data.classes)
            caption = f"#{index} {data.classes[label] if named else _short(label)}"
            free = 0 in data.shape
            rows, columns = array.shape[1:] if data.layout == "nchw" else array.shape[:2]
            picture = rgb_of(array, data.dtype, data.layout, data.mean, data.std)
            picture = self._with_targets(picture, index)
            hint = [key] + ([f"{columns}x{rows}"] if free else [])
            texts = [data._value(index, name) for name in self.texts]
            hint += [f"{name}: {_short(text, 200)}" for name, text in zip(self.texts, texts)]
            tiles = [_Tile(picture, caption, "\n".join(hint), _short(texts[0]) if texts else "")]
            tiles += [
                _Tile(made, name, f"{key}: {name}")
                for name in self.further
                if (made := self._further(data.image(name, index))) is not None
            ]
            return tiles
        except CorruptError as error:
            return [_Tile(None, f"#{index}", str(error))]

    def _with_targets(self, picture: Pixels, index: int) -> Pixels:
        data = self.data
        rows, columns = picture.shape[:2]
        if self.masks and not picture.flags.writeable:
            picture = picture.copy()
        for name in self.masks:
            mask = np.squeeze(data.image(name, index))
            if mask.shape == (rows, columns):
                blend_mask(picture, mask)
                for number in np.unique(mask)[:40].tolist():
                    if number not in (0, 255):
                        self.seen[f"{name} {number}"] = color_of(number)
        picture = shrunk(picture, self.size).copy()
        scale = (picture.shape[1] / columns, picture.shape[0] / rows)
        if self.boxes:
            self._draw_boxes(picture, index, scale)
        if self.keypoints:
            points = np.asarray(data._value(index, "keypoints"), np.float64)
            for row in points:
                for number, (x, y, visible) in enumerate(row):
                    if visible != 0:
                        draw_dot(picture, x * scale[0], y * scale[1], color_of(number % 255 + 1))
        return picture

    def _draw_boxes(self, picture: Pixels, index: int, scale: tuple[float, float]) -> None:
        data = self.data
        boxes = data._value(index, "boxes")
        labelled = "box_labels" in data.columns
        numbers = np.ravel(data._value(index, "box_labels")) if labelled else np.zeros(len(boxes), int)
        for box, number in zip(boxes, numbers.tolist()):
            color = color_of(int(number) % 255 + 1)
            draw_frame(picture, box, scale, color, 2)
            if labelled:
                known = 0 <= number < len(data.categories)
                self.seen[data.categories[int(number)] if known else f"box {number}"] = color

    def _further(self, array: Any) -> Pixels | None:
        if array.ndim == 3 and array.shape[-1] == 3 and array.dtype == np.uint8:
            return shrunk(np.ascontiguousarray(array), self.size)
        if array.ndim == 3 and array.shape[-1] == 1 and array.dtype.kind in "uif":
            return shrunk(gray_range(array), self.size)
        return None

    def legend(self) -> str:
        entries = [
            f'<span style="white-space:nowrap"><span style="display:inline-block;width:10px;height:10px;'
            f'background:rgb{color}"></span> {html.escape(name)}</span>'
            for name, color in list(self.seen.items())[:40]
        ]
        return f'<div style="font-size:12px">{" &nbsp; ".join(entries)}</div>' if entries else ""


class Sheet:
    """Pictures of samples, which a notebook shows where this object is the value of a cell: what
    Dataset.show() returns. Under each picture are the sample's index and class; the key and texts appear
    under the pointer. It holds the pictures and no data set.

    indices: those of the samples.
    """

    def __init__(self, indices: Sequence[int], body: str) -> None:
        self.indices, self._body = tuple(indices), body

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"<{len(self)} samples as pictures: a notebook shows them, save('sheet.html') writes a page>"

    def _repr_html_(self) -> str:
        return self._body

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a page with the pictures in it, which needs no other file. path: ends in .html.
        InvalidArgumentError for another name; OSError if the file cannot be written."""
        path = check.path("path", path)
        if not path.lower().endswith((".html", ".htm")):
            check.refuse("path", path, "a name that ends in .html (`shardctl show -o FILE.png` makes a PNG)")
        written = f"{path}.{os.getpid()}.part"  # nothing half-written has the name
        try:
            with open(written, "w", encoding="utf-8") as file:
                file.write(
                    '<!doctype html>\n<meta charset="utf-8">\n'
                    '<meta name="color-scheme" content="light dark">\n'
                    f'<title>Samples</title>\n<body style="font-family:sans-serif">\n{self._body}\n'
                )
            os.replace(written, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(written)
            raise OSError(error.errno, error.strerror, path) from None


def chosen(samples: Any, size: int, seed: int) -> list[int]:
    """Indices: those that are given, or so many random ones, ascending."""
    if isinstance(samples, (range, slice)) or (hasattr(samples, "__len__") and not isinstance(samples, str)):
        listed = range(*samples.indices(size)) if isinstance(samples, slice) else samples
        indices = [check.whole("an index of samples", index, -size, size - 1) for index in listed]
        if not indices:
            raise InvalidArgumentError("samples names no sample; expected a number or some indices")
        return [index + size if index < 0 else index for index in indices]
    count = min(check.whole("samples", samples, 1), size)
    generator = np.random.default_rng(check.whole("seed", seed))
    return sorted(int(index) for index in generator.choice(size, count, replace=False))


def sheet_of(data: Any, samples: Any, seed: int, size: int, targets: bool) -> Sheet:
    size = check.whole("size", size, 16, 4096)
    targets = check.flag("targets", targets)
    if data.layout == "tensor":
        raise UnsupportedError(
            f"the samples are tensors {list(data.shape)} whose axes have no meaning, and no images; "
            "data[i] is the array"
        )
    indices = chosen(samples, len(data), seed)
    look = _Look(data, size, targets)
    tiles = "".join(tile.html(size) for index in indices for tile in look.tiles(index))
    return Sheet(indices, f'<div style="display:flex;flex-wrap:wrap;gap:10px">{tiles}</div>{look.legend()}')


def facts_of(data: Any) -> str:
    """One line about a data set."""
    info, shape = data._info, list(data.shape)
    form = "images of any size" if 0 in shape else f"{data.dtype} {shape} {data.layout}"
    parts = [f"<b>{len(data):,} samples</b>", form, f"codec {data.codec}"]
    if data.classes:
        names = ", ".join(data.classes[:8]) + (", …" if len(data.classes) > 8 else "")
        parts.append(f"{len(data.classes):,} classes: {names}")
    further = [*data.columns[1:], *info["images"]]
    if further:
        parts.append("also " + ", ".join(further))
    if info["rejects"]:
        parts.append(f"{info['rejects']:,} of {info['inputs']:,} inputs rejected")
    head, *rest = parts
    return (
        f'<div style="margin-bottom:8px">{head} · {html.escape(" · ".join(rest))}'
        f"<br><code>{html.escape(data.path)}</code></div>"
    )


def html_of(data: Any) -> str:
    """What a notebook shows of a data set: a line of facts and the first look."""
    try:
        pictures = sheet_of(data, FIRST_LOOK, 0, 128, True)._repr_html_()
    except ShardError:  # a representation never fails; show() says what is wrong
        pictures = ""
    return facts_of(data) + pictures
