"""Codec packed with numpy alone, as docs/format.md describes it.
python3 read_packed.py SHARD INDEX OUT.npy    writes one sample with three channels: uint8, float16 or float32
"""

import json
import sys

import numpy as np


def unpack(frame, channels, height, width):
    """A frame (uint8 array) -> uint8 [channel, row, column]."""
    assert frame[0] == 1 and frame[1] < 2 and frame[2:8].view("<u2").tolist() == [channels, height, width]
    if frame[1] == 0:  # stored
        return frame[16 : 16 + channels * height * width].reshape(channels, height, width)
    strips, pairs = (width + 31) // 32, (height + 1) // 2
    ends = 16 * frame[8 : 8 + 4 * strips].view("<u4").astype(int)
    x = np.zeros((strips, channels, height + 1, 33), int)  # with what stands before the first row and column
    residuals = np.zeros((strips, channels, 2 * pairs, 32), int)
    first, count = (8 + 4 * strips + 15) // 16 * 16, 2 * channels * pairs
    for s, (begin, end) in enumerate(zip([first, *ends], ends)):
        strip = frame[begin:end]
        x[s] = strip[:channels, None, None]
        codes = np.stack([strip[4 : 4 + count] & 15, strip[4 : 4 + count] >> 4], 1).ravel().astype(int)
        widths = codes - 8 * (codes > 8)
        biases = np.where(codes > 0, (1 << widths >> 1) - (codes > 8), 0)
        at = 4 + count + np.concatenate([[0], np.cumsum(2 * widths)])  # where each group begins, and the end
        assert begin + (at[-1] + 15) // 16 * 16 == end, "a strip does not end where its codes say"
        bits, values = np.unpackbits(strip, bitorder="little"), np.zeros((len(codes), 16), int)
        for w in range(1, 9):
            g = np.flatnonzero(widths == w)
            values[g] = bits[8 * at[g, None, None] + np.arange(16 * w).reshape(16, w)] @ (1 << np.arange(w))
        values = (values - biases[:, None]).reshape(pairs, channels, 4, 2, 8)
        residuals[s] = values.transpose(1, 0, 3, 2, 4).reshape(channels, 2 * pairs, 32)
    assert ends[-1] == len(frame), "the frame does not end where its last strip does"
    for row in range(1, height + 1):
        for column in range(1, 33):
            left, up, corner = (x[:, :, row - r, column - c] for r, c in ((0, 1), (1, 0), (1, 1)))
            predicted = left + up - np.clip(corner, np.minimum(left, up), np.maximum(left, up))
            x[:, :, row, column] = predicted + residuals[:, :, row - 1, column - 1] & 255
    planes = x[:, :, 1:, 1:].transpose(1, 2, 0, 3).reshape(channels, height, 32 * strips)[:, :, :width]
    if channels >= 3:
        planes[[0, 2]] += planes[1] + 128
    return planes.astype(np.uint8)


if __name__ == "__main__":
    file, index = np.fromfile(sys.argv[1], np.uint8), int(sys.argv[2])
    data = 8 + int(file[:8].view("<u8")[0])
    head = json.loads(bytes(file[8:data]))
    meta, table = head["__metadata__"], lambda name: file[data:][slice(*head[name]["data_offsets"])]
    nhwc, shape = meta["layout"] == "nhwc", [int(axis) for axis in meta["shape"].split(",")]
    c, h, w = shape[-1:] + shape[:-1] if nhwc else shape
    frame = table("image_frames")[slice(*table("frame_offsets").view("<u8")[index : index + 2].tolist())]
    sample = unpack(frame, c, h, w)
    if meta["dtype"] != "u8":
        mean, std = (np.array(meta[key].split(","), np.float32)[:, None, None] for key in ("mean", "std"))
        sample = ((sample / np.float32(255) - mean) / std).astype({"f16": "<f2", "f32": "<f4"}[meta["dtype"]])
    np.save(sys.argv[3], sample.transpose(1, 2, 0) if nhwc else sample)
