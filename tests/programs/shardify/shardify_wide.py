#!/usr/bin/env python3
"""shardify on images that RGB of 8 bits cannot hold: PNG and TIFF of 16 bits, bands, floats, pages, arrays.
Values are compared with numpy, and a resize with the exact one in float64."""

import json
import struct
import sys
import zlib

try:
    import numpy as np
except ImportError:
    print("no numpy")
    sys.exit(77)

from shardify_support import TestCase, all_keys, main, png, rejects, shardctl, shardify, write

AS_IS = ["--layout", "nhwc", "--quiet"]


def png_of(pixels, interlaced=False):
    """[row, column, channel] of uint8 or uint16; 1 to 4 channels."""
    height, width, channels = pixels.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    big = pixels.astype(pixels.dtype.newbyteorder(">"))
    parts = [big]
    if interlaced:
        parts = [
            big[y::dy, x::dx]
            for y, x, dy, dx in (
                (0, 0, 8, 8),
                (0, 4, 8, 8),
                (4, 0, 8, 4),
                (0, 2, 4, 4),
                (2, 0, 4, 2),
                (0, 1, 2, 2),
                (1, 0, 2, 1),
            )
        ]
    rows = b"".join(b"\0" + row.tobytes() for part in parts if part.size for row in part)
    header = struct.pack(
        ">IIBBBBB", width, height, 8 * pixels.itemsize, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, interlaced
    )
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def tiff_of(
    *pages,
    order="<",
    planes=False,
    photometric=None,
    extra=None,
    tile=0,
    deflate=False,
    orientation=None,
    kinds=(),
):
    """Pages of [row, column, channel]. `kinds`: NewSubfileType of each."""
    out = bytearray(struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 0))
    link = 4
    for number, pixels in enumerate(pages):
        height, width, channels = pixels.shape
        pixels = pixels.astype(pixels.dtype.newbyteorder(order))
        parts = [pixels[..., c : c + 1] for c in range(channels)] if planes else [pixels]
        blocks = []
        for part in parts:
            if tile:
                padded = np.zeros(
                    (-(-height // tile) * tile, -(-width // tile) * tile, part.shape[2]), part.dtype
                )
                padded[:height, :width] = part
                blocks += [
                    padded[y : y + tile, x : x + tile]
                    for y in range(0, height, tile)
                    for x in range(0, width, tile)
                ]
            else:
                blocks += [part[y : y + 7] for y in range(0, height, 7)]
        data = [zlib.compress(block.tobytes()) if deflate else block.tobytes() for block in blocks]
        offsets = []
        for block in data:
            offsets.append(len(out))
            out += block + b"\0" * (len(block) % 2)
        kind = {"u": 1, "i": 2, "f": 3}[pixels.dtype.kind]
        fields = {
            254: (4, [kinds[number] if kinds else 0]),
            256: (4, [width]),
            257: (4, [height]),
            258: (3, [8 * pixels.itemsize] * channels),
            259: (3, [8 if deflate else 1]),
            262: (3, [photometric if photometric is not None else 2 if channels == 3 else 1]),
            277: (3, [channels]),
            284: (3, [2 if planes else 1]),
            339: (3, [kind] * channels),
        }
        if extra is not None or channels not in (1, 3):
            fields[338] = (3, extra if extra is not None else [0] * (channels - 1))
        if orientation:
            fields[274] = (3, [orientation])
        at, sizes = (324, 325) if tile else (273, 279)
        fields[at], fields[sizes] = (4, offsets), (4, [len(block) for block in data])
        if tile:
            fields[322], fields[323] = (4, [tile]), (4, [tile])
        else:
            fields[278] = (4, [7])
        entries = bytearray()
        for tag, (type_, values) in sorted(fields.items()):
            raw = struct.pack(f"{order}{len(values)}{'H' if type_ == 3 else 'I'}", *values)
            if len(raw) > 4:
                place = len(out)
                out += raw + b"\0" * (len(raw) % 2)
                raw = struct.pack(order + "I", place)
            entries += struct.pack(order + "HHI", tag, type_, len(values)) + raw.ljust(4, b"\0")
        struct.pack_into(order + "I", out, link, len(out))
        out += struct.pack(order + "H", len(fields)) + entries
        link = len(out)
        out += b"\0\0\0\0"
    return bytes(out)


def stored(out):
    """The samples of a data set without codec, as an array."""
    info = json.loads((out / "dataset.json").read_text())
    arrays = []
    for shard in info["shards"]:
        raw = (out / shard["file"]).read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        images = json.loads(raw[8 : 8 + length])["images"]
        begin, end = images["data_offsets"]
        dtype = {"U8": "u1", "U16": "<u2", "F16": "<f2", "F32": "<f4"}[images["dtype"]]
        arrays.append(
            np.frombuffer(raw[8 + length + begin : 8 + length + end], dtype).reshape(images["shape"])
        )
    return np.concatenate(arrays)


def resized(pixels, height, width, kernel=lambda x: np.maximum(0, 1 - np.abs(x))):
    """The antialiased resize in float64, [row, column, channel]."""

    def weights(source, out):
        scale = source / out
        inverse = 1.0 / max(
            scale, 1.0
        )  # in the order of Pillow's steps: a box filter has its edges between pixels
        all_weights = np.array(
            [kernel((np.arange(source) - (x + 0.5) * scale + 0.5) * inverse) for x in range(out)]
        )
        return all_weights / all_weights.sum(1, keepdims=True)

    columns = np.einsum("xw,hwc->hxc", weights(pixels.shape[1], width), pixels.astype(np.float64))
    return np.einsum("yh,hxc->yxc", weights(pixels.shape[0], height), columns)


class Wide(TestCase):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(7)
        self.images = self.path / "images"
        self.images.mkdir(exist_ok=True)

    def noise(self, *shape, dtype=np.uint16):
        if np.dtype(dtype).kind == "f":
            return self.random.normal(0, 1000, shape).astype(dtype)
        info = np.iinfo(dtype)
        return self.random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)

    def convert(self, source, *options, code=0):
        self.count = getattr(self, "count", 0) + 1
        out = self.path / f"out-{self.count}"
        self.assert_code(shardify(source, out, *AS_IS, *options), code)
        return out

    def info(self, out):
        return json.loads((out / "dataset.json").read_text())

    def test_png_of_16_bits_is_kept_whole(self):
        color = self.noise(20, 24, 3)
        write(self.images / "a.png", png_of(color))
        write(self.images / "b.png", png_of(color[..., ::-1], interlaced=True))
        write(self.images / "c.png", png_of(np.dstack([color, self.noise(20, 24, 1)])))  # alpha
        write(self.images / "d.png", png_of(color[..., :1]))  # gray is replicated
        out = self.convert(self.images, "--dtype", "u16", "--squash", "24x20")
        info = self.info(out)
        self.assertEqual((info["version"], info["dtype"], info["shape"]), (2, "u16", [20, 24, 3]))
        self.assertEqual(info["mean"], [0.485, 0.456, 0.406])
        samples = stored(out)
        np.testing.assert_array_equal(samples[0], color)
        np.testing.assert_array_equal(samples[1], color[..., ::-1])
        np.testing.assert_array_equal(samples[2], color)
        np.testing.assert_array_equal(samples[3], color[..., :1].repeat(3, 2))
        self.assert_code(shardctl("verify", out), 0)
        # As floats: (value / 65535 - mean) / std.
        floats = stored(
            self.convert(self.images, "--dtype", "f32", "--channels", "keep", "--squash", "24x20")
        )
        mean, std = (np.array(info[name], np.float32) for name in ("mean", "std"))
        np.testing.assert_array_equal(floats[0], (color.astype(np.float32) / np.float32(65535) - mean) / std)

    def test_depth_maps_stay_one_channel_and_8_bits_become_value_x_257(self):
        depth = self.noise(10, 12, 1)
        write(self.images / "a.png", png_of(depth))
        write(self.images / "b.png", png_of(self.noise(10, 12, 2)))  # gray and alpha
        gray = self.noise(10, 12, 1, dtype=np.uint8)
        write(self.images / "c.png", png_of(gray))
        write(self.images / "d.png", png(3, 12, 10))  # RGB: a reject
        out = self.convert(self.images, "--dtype", "u16", "--squash", "12x10", code=1)
        self.assertEqual(self.info(out)["shape"], [10, 12, 1])
        self.assertEqual(self.info(out)["mean"], [0, 0, 0])
        np.testing.assert_array_equal(stored(out)[0], depth)
        np.testing.assert_array_equal(stored(out)[2], gray.astype(np.uint16) * 257)
        self.assertEqual(list(rejects(out)), ["d.png"])
        self.assertIn("it has 3 channels, the samples have 1", rejects(out)["d.png"])

    def test_resize_is_within_half_a_unit_of_float64(self):
        filters = {
            "bilinear": lambda x: np.maximum(0, 1 - np.abs(x)),
            "box": lambda x: ((x > -0.5) & (x <= 0.5)).astype(float),
            "bicubic": lambda x: np.where(
                np.abs(x) < 1,
                (1.5 * np.abs(x) - 2.5) * x * x + 1,
                np.where(np.abs(x) < 2, ((np.abs(x) - 5) * np.abs(x) + 8) * np.abs(x) * -0.5 + 2, 0),
            ),
            "lanczos": lambda x: np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0),
        }
        color = self.noise(41, 37, 3)
        write(self.images / "a.png", png_of(color))
        for name, kernel in filters.items():
            for width, height in ((23, 19), (61, 53), (37, 31)):  # odd: no pixel lies on the edge of a box
                samples = stored(
                    self.convert(
                        self.images, "--dtype", "u16", "--squash", f"{width}x{height}", "--filter", name
                    )
                )
                exact = np.clip(resized(color, height, width, kernel), 0, 65535)
                off = np.abs(samples[0] - exact).max()
                self.assertLess(off, 0.5 + 1e-6, (name, width, height))
                if name != "box":  # which copies pixels where it enlarges
                    self.assertGreater(off, 0.4)

    def test_tiff_files_of_any_bands(self):
        for number, (pixels, options) in enumerate(
            (
                (self.noise(20, 24, 1), {}),
                (self.noise(20, 24, 3), {"order": ">"}),
                (self.noise(20, 24, 13), {"planes": True}),
                (self.noise(20, 24, 13), {"tile": 16, "deflate": True}),
                (self.noise(20, 24, 6, dtype=np.uint8), {"tile": 16, "planes": True}),
                (self.noise(20, 24, 4), {"photometric": 2, "extra": [0]}),
                (self.noise(20, 24, 1, dtype=np.float32), {}),
                (self.noise(20, 24, 5, dtype=np.float32), {"order": ">", "deflate": True}),
                (self.noise(20, 24, 2, dtype=np.float16), {}),
                (self.noise(20, 24, 1, dtype=np.float64), {}),
                (self.noise(20, 24, 1, dtype=np.int16), {"order": ">"}),
            )
        ):
            folder = self.path / f"tiff-{number}"
            write(folder / "a.tif", tiff_of(pixels, **options))
            kept = (
                "u16"
                if pixels.dtype == np.uint16
                else "u8"
                if pixels.dtype == np.uint8
                else "f16"
                if pixels.dtype == np.float16
                else "f32"
            )
            arguments = ["--dtype", "u16"] if kept == "u16" else []
            out = self.convert(folder, *arguments, "--squash", "24x20")
            self.assertEqual(
                (self.info(out)["dtype"], self.info(out)["shape"]), (kept, list(pixels.shape)), number
            )
            np.testing.assert_array_equal(stored(out)[0], pixels.astype(stored(out).dtype), str(number))
            self.assert_code(shardctl("verify", out), 0)

    def test_alpha_is_dropped_and_orientation_applied(self):
        pixels = self.noise(6, 9, 4)
        for orientation in range(1, 9):
            write(
                self.images / f"{orientation}.tif",
                tiff_of(pixels, photometric=2, extra=[2], orientation=orientation),
            )
        base = pixels[..., :3]
        upright = {1: base, 2: base[:, ::-1], 3: base[::-1, ::-1], 4: base[::-1]}
        swapped = base.transpose(1, 0, 2)
        upright |= {5: swapped, 6: swapped[:, ::-1], 7: swapped[::-1, ::-1], 8: swapped[::-1]}
        for orientation, expected in upright.items():
            height, width, _ = expected.shape
            samples = stored(self.convert(self.images, "--dtype", "u16", "--squash", f"{width}x{height}"))
            np.testing.assert_array_equal(samples[orientation - 1], expected, str(orientation))

    def test_pages(self):
        pages = [self.noise(8, 9, 1) for _ in range(12)]
        write(self.images / "a.tif", tiff_of(*pages))
        write(self.images / "b.tif", tiff_of(pages[3], pages[4], kinds=[0, 1]))  # the second is a preview
        first = self.convert(self.images, "--dtype", "u16", "--squash", "9x8")
        self.assertEqual(all_keys(first), ["a.tif", "b.tif"])
        np.testing.assert_array_equal(stored(first), [pages[0], pages[3]])
        out = self.convert(self.images, "--dtype", "u16", "--squash", "9x8", "--pages")
        self.assertEqual(all_keys(out), [f"a.tif#{i}" for i in range(12)] + ["b.tif#0"])
        np.testing.assert_array_equal(stored(out), [*pages, pages[3]])
        self.assert_code(
            shardify(self.images, out, *AS_IS, "--dtype", "u16", "--squash", "9x8", "--pages"), 0
        )
        write(self.path / "labels.csv", b"path,label\na.tif,1\n")
        refused = shardify(
            self.images,
            self.path / "no",
            *AS_IS,
            "--dtype",
            "u16",
            "--squash",
            "9x8",
            "--pages",
            "--labels",
            self.path / "labels.csv",
        )
        self.assert_code(refused, 2)
        self.assertIn("these name files, not pages", refused.err)

    def test_arrays_keep_dtype_and_channels(self):
        for number, (array, shape, kept) in enumerate(
            (
                (self.noise(4, 20, 24, 13), (20, 24, 13), "u16"),
                (self.noise(4, 13, 20, 24), (20, 24, 13), "u16"),
                (self.noise(4, 20, 24), (20, 24, 1), "u16"),
                (self.noise(4, 20, 24, 3), (20, 24, 3), "u16"),
                (self.noise(4, 20, 24, 4).astype(">u2"), (20, 24, 4), "u16"),
                (self.noise(4, 20, 24, 2, dtype=np.uint8), (20, 24, 2), "u8"),
                (self.noise(4, 20, 24, 13, dtype=np.float32), (20, 24, 13), "f32"),
                (self.noise(4, 5, 20, 24, dtype=np.float16), (20, 24, 5), "f16"),
                (self.noise(4, 20, 24, dtype=np.float64), (20, 24, 1), "f32"),
                (self.noise(4, 20, 24, dtype=np.int16), (20, 24, 1), "f32"),
            )
        ):
            source = self.path / f"{number}.npy"
            np.save(source, array)
            out = self.convert(source, "--squash", "24x20")
            info = self.info(out)
            self.assertEqual((info["dtype"], info["shape"]), (kept, list(shape)), number)
            expected = (
                array.transpose(0, 2, 3, 1)
                if array.shape[-1] == 24 and array.ndim == 4
                else array.reshape(4, *shape)
            )
            np.testing.assert_array_equal(stored(out), expected.astype(stored(out).dtype), str(number))
        ambiguous = self.path / "ambiguous.npy"
        np.save(ambiguous, self.noise(4, 13, 20, 13))
        out = self.path / "no"
        result = shardify(ambiguous, out, *AS_IS, "--squash", "24x20")
        self.assert_code(result, 2)
        self.assertIn("may be its second or its last axis", result.err)
        np.save(self.path / "c.npy", self.noise(4, 20, 24).astype(np.complex64))
        result = shardify(self.path / "c.npy", out, *AS_IS, "--squash", "24x20")
        self.assert_code(result, 2)
        self.assertIn("images are uint8, uint16", result.err)

    def test_mean_and_std_for_each_channel(self):
        np.save(self.path / "x.npy", self.noise(3, 8, 9, 5))
        five = ["--mean", "0.1,0.2,0.3,0.4,0.5", "--std", "1,2,3,4,5"]
        out = self.convert(self.path / "x.npy", "--squash", "9x8", *five)
        self.assertEqual(
            (self.info(out)["mean"], self.info(out)["std"]), ([0.1, 0.2, 0.3, 0.4, 0.5], [1, 2, 3, 4, 5])
        )
        floats = stored(self.convert(self.path / "x.npy", "--squash", "9x8", *five, "--dtype", "f32"))
        values = np.load(self.path / "x.npy").astype(np.float32) / np.float32(65535)
        np.testing.assert_array_equal(
            floats, (values - np.float32([0.1, 0.2, 0.3, 0.4, 0.5])) / np.float32([1, 2, 3, 4, 5])
        )
        for given, why in (
            (["--mean", "0,0,0", "--std", "1,1,2"], "have 3 numbers, the samples 5 channels"),
            (["--mean", "0.1,0.2,0.3,0.4,0.5"], "give both"),
        ):
            result = shardify(self.path / "x.npy", self.path / "no", *AS_IS, "--squash", "9x8", *given)
            self.assert_code(result, 2)
            self.assertIn(why, result.err)

    def test_what_does_not_fit_says_so(self):
        np.save(self.path / "f.npy", self.noise(3, 8, 9, dtype=np.float32))
        out = self.path / "no"
        result = shardify(self.path / "f.npy", out, *AS_IS, "--squash", "9x8", "--dtype", "u16")
        self.assert_code(result, 2)
        self.assertIn("dtype f32 keeps them", (out / "rejects.csv").read_text())
        write(self.images / "a.png", png_of(self.noise(8, 9, 3)))
        for options, why in (
            (["--dtype", "u16", "--codec", "packed"], "codec packed holds images of 8 bits"),
            (["--dtype", "u8", "--channels", "3"], "u8 would keep 8 of them"),
            (["--channels", "0"], "expected keep, or a number"),
            (["--dtype", "i16"], "expected u8, u16"),
        ):
            folder = self.path / f"no-{options[-1]}"
            result = shardify(self.images, folder, *AS_IS, "--squash", "9x8", *options)
            self.assert_code(result, 2)
            text = result.err + (
                (folder / "rejects.csv").read_text() if (folder / "rejects.csv").exists() else ""
            )
            self.assertIn(why, text)

    def test_floats_that_the_dtype_cannot_hold_are_rejects(self):
        small, large = (np.full((4, 5, 1), value, np.float32) for value in (5, 70000))
        large[0, 0] = np.inf  # which stays
        write(self.images / "a.tif", tiff_of(small))
        write(self.images / "b.tif", tiff_of(large))
        size = ["--squash", "5x4"]
        why = (
            "the value 70000 at row 0, column 1 of its sample is too large for dtype f16: dtype f32 keeps it"
        )
        out = self.convert(self.images, "--dtype", "f16", *size, code=1)
        self.assertEqual(all_keys(out), ["a.tif"])
        self.assertIn(why, rejects(out)["b.tif"])
        np.testing.assert_array_equal(stored(self.convert(self.images, *size))[1], large)
        rgb = self.path / "rgb"
        for name in ("a.png", "b.png"):
            write(rgb / name, png(3, 5, 4))
        out = self.convert(rgb, "--pair", f"depth={self.images},dtype=f16", *size, code=1)
        self.assertIn(why, rejects(out)["b.png"])
        array = np.ones((2, 4, 5))
        array[1, 2, 3] = -1e300
        np.save(self.path / "x.npy", array)
        out = self.convert(self.path / "x.npy", *size, code=1)
        self.assertIn(
            "the value -1e+300 at row 2, column 3 is too large for dtype f32", rejects(out)["x.npy/000001"]
        )

    def test_codec_zstd_and_hostile_headers(self):
        smooth = (np.add.outer(np.arange(64) * 300, np.arange(64) * 200)).astype(np.uint16)[..., None]
        write(self.images / "a.png", png_of(smooth))
        out = self.convert(self.images, "--dtype", "u16", "--squash", "64x64", "--codec", "zstd")
        self.assert_code(shardctl("verify", out), 0)
        self.assertLess(sum(shard["size_bytes"] for shard in self.info(out)["shards"]), 4096 + 500)
        # A header that claims 60,000 x 60,000 pixels of 4,000 bands in a file of some bytes.
        claim = bytearray(tiff_of(self.noise(2, 2, 1)))
        for tag in (256, 257):
            at = claim.index(struct.pack("<HHI", tag, 4, 1)) + 8
            claim[at : at + 4] = struct.pack("<I", 60_000)
        write(self.images / "b.tif", bytes(claim))
        cut = tiff_of(self.noise(20, 20, 1))
        write(self.images / "c.tif", cut[:200] + cut[600:])
        out = self.convert(self.images, "--dtype", "u16", "--squash", "64x64", code=1)
        self.assertEqual(list(rejects(out)), ["b.tif", "c.tif"])


if __name__ == "__main__":
    main()
