#!/usr/bin/env python3
"""The tables of docs/benchmarks.md, section Loading: runs `shardbench load` case by case
and prints a row each.

  bench/scripts/loader_table.py SHARDBENCH FOLDER [--cases NAME,...] [--gigabytes 13] [--seconds S]
    [--images IMAGES] [--json FILE]

FOLDER receives the data sets (pseudo-random bytes; kept, so that a second run is quick). The cases of codec
packed are made of the photographs in IMAGES, each many times, by the shardify and shardctl beside SHARDBENCH;
the share is that of a link which carries samples as they are. Cases that need what is not there (a GPU, a
second GPU, images) are named as left out.
"""

import argparse
import json
import os
import subprocess
import sys

U8 = []
PHOTOS = {
    "photos-224": ["224", "none"],
    "photos-224-packed": ["224", "packed"],
    "photos-256-packed": ["256", "packed"],
}
PACKED, PACKED_256, PLAIN = ["photos-224-packed"], ["photos-256-packed"], ["photos-224"]
U8_256 = ["--make-side", "256"]
TINY = ["--make-side", "32"]
F16 = ["--make-dtype", "f16"]
BANDS = ["--make-side", "256", "--make-dtype", "u16", "--make-channels", "13"]  # satellite images
RESIZED = ["--crop", "random-resized:224", "--flip"]
TO_F16 = ["--dtype", "f16", "--layout", "nchw"]

# name, data set, arguments, what is wanted: a share of the limit or of a warm loader, seconds, or samples/s
GPU_CASES = [
    ("mapped-u8", U8, ["--transport", "mapped"], "share", 0.98),
    ("mapped-u8-f16", U8, ["--transport", "mapped", *TO_F16], "share", 0.97),
    ("mapped-rrc-f16", U8_256, ["--transport", "mapped", *RESIZED, *TO_F16], "share", 0.95),
    ("mapped-f16", F16, ["--transport", "mapped"], "share", 0.98),
    ("mapped-u16-13", BANDS, ["--transport", "mapped", "--batch-size", "32"], "share", 0.98),
    ("mapped-u16-13-f16", BANDS, ["--transport", "mapped", "--batch-size", "32", *TO_F16], "share", 0.98),
    ("mapped-u8-b64", U8, ["--transport", "mapped", "--batch-size", "64"], "share", 0.93),
    ("mapped-u8-b32", U8, ["--transport", "mapped", "--batch-size", "32"], "share", 0.93),
    ("mapped-u8-f16-b32", U8, ["--transport", "mapped", "--batch-size", "32", *TO_F16], "share", 0.95),
    ("mapped-u8-f16-b16", U8, ["--transport", "mapped", "--batch-size", "16", *TO_F16], "share", 0.85),
    ("staged-8", U8, ["--transport", "staged", "--threads", "8"], "share", 0.90),
    ("resident-f16", U8, ["--transport", "resident", *TO_F16], "samples", 5e6),
    (
        "tiny-resident",
        TINY,
        ["--transport", "resident", "--batch-size", "2000", "--crop", "random:28", "--flip", *TO_F16],
        "samples",
        12e6,
    ),
    ("direct", U8, ["--transport", "direct"], "share", 0.95),
    ("gpus-2", U8, ["--transport", "mapped", "--device", "cuda:0,1"], "share", 0.95),
    ("gpus-2-staged", U8, ["--transport", "staged", "--device", "cuda:0,1"], "share", 0.95),
    ("gpus-4", U8, ["--transport", "mapped", "--device", "cuda:0,1,2,3"], "share", 0.95),
    *(
        (f"first-10s-{transport}", U8, ["--transport", transport, "--first-seconds", "10"], "first", 0.95)
        for transport in ("mapped", "staged")
    ),
    ("open", None, ["--seconds", "0"], "open", 0.080),
    (
        "open-mapped",
        None,
        ["--seconds", "0", "--transport", "mapped", "--registered-bytes", "250GB"],
        "open",
        0.100,
    ),
    # What an epoch draws: to be held against mapped-u8.
    *(
        (f"drawn-{draw}", U8, ["--transport", "mapped", "--draw", draw], "share", 0.98 * 0.98)
        for draw in ("subset", "balanced", "weighted", "mix", "repeated")
    ),
    ("windowed", U8, ["--transport", "mapped", "--order", "windowed"], "share", 0.95),
    # Less budget than data: windows of 8 shards of 256 MiB move on by registering ahead.
    (
        "windowed-6GiB",
        U8,
        ["--transport", "mapped", "--order", "windowed", "--registered-bytes", "6GiB"],
        "share",
        0.95,
    ),
    ("packed-u8", PACKED, ["--transport", "mapped"], "share", 1.80),
    ("packed-f16", PACKED, ["--transport", "mapped", *TO_F16], "share", 1.80),
    ("packed-rrc-f16", PACKED_256, ["--transport", "mapped", *RESIZED, *TO_F16], "share", 1.75),
    ("packed-b32-f16", PACKED, ["--transport", "mapped", "--batch-size", "32", *TO_F16], "share", 1.60),
    ("packed-b16-f16", PACKED, ["--transport", "mapped", "--batch-size", "16", *TO_F16], "share", 1.20),
    ("packed-staged-8", PACKED, ["--transport", "staged", "--threads", "8", *TO_F16], "share", 1.60),
    ("packed-resident", PACKED, ["--transport", "resident", *TO_F16], "samples", 1.5e6),
    ("direct-photos", PLAIN, ["--transport", "direct"], "share", 0.95),
    ("direct-packed", PACKED, ["--transport", "direct"], "share", 1.80),
]
HOST = ["--device", "host", "--threads", "2"]
HOST_CASES = [
    ("host-u8", U8, [*HOST, "--transport", "mapped"], "share", 0.95),
    ("host-u8-f16", U8, [*HOST, *TO_F16], "samples", 1.7 * 19500),
    ("host-rrc-u8", U8_256, [*HOST, *RESIZED], "samples", 3 * 7120),
    ("host-rrc-f16", U8_256, [*HOST, *RESIZED, *TO_F16], "samples", 3 * 7120),
    ("host-open", None, [*HOST, "--seconds", "0"], "open", 0.150),
    ("host-packed-u8", PACKED, HOST, "samples", 24000),
    ("host-packed-f16", PACKED, [*HOST, *TO_F16], "samples", 20000),
]
SAMPLE_BYTES = {
    "": 224 * 224 * 3,
    "256": 256 * 256 * 3,
    "32": 32 * 32 * 3,
    "f16": 224 * 224 * 3 * 2,
    "bands": 256 * 256 * 13 * 2,
}


def make_photos(options, folder, size, codec):
    """A data set of options.photos samples: the images under many names."""
    if os.path.exists(os.path.join(options.folder, folder, "dataset.json")):
        return
    tools = os.path.dirname(os.path.abspath(options.shardbench))
    images = os.path.join(options.folder, "images")
    sources = [
        os.path.join(at, file)
        for at, _, files in os.walk(options.images)
        for file in files
        if file.lower().endswith((".jpg", ".jpeg"))
    ]
    for i in range(options.photos):
        link = os.path.join(images, f"{i % 10}", f"{i}.jpg")
        os.makedirs(os.path.dirname(link), exist_ok=True)
        if not os.path.lexists(link):
            os.symlink(os.path.abspath(sources[i % len(sources)]), link)
    subprocess.run(
        [
            os.path.join(tools, "shardify"),
            images,
            os.path.join(options.folder, folder),
            "--resize",
            "256",
            "--crop",
            size,
            "--dtype",
            "u8",
            "--layout",
            "nhwc",
            "--codec",
            codec,
            "--quiet",
        ],
        check=True,
    )


def run_case(options, case):
    name, data, arguments, kind, wanted = case
    if data and data[0] in PHOTOS:
        if not options.images:
            return {"case": name, "left_out": "needs --images"}
        folder, made = data[0], []
        make_photos(options, folder, *PHOTOS[folder])
    elif data is None:
        folder, made = "sparse", ["--make-sparse", "1281167", "--make-shards", "1000"]
    else:
        key = "bands" if data is BANDS else data[1] if data else ""
        folder = "random-" + (key or "u8")
        made = ["--make-random", str(int(options.gigabytes * 1e9 / SAMPLE_BYTES[key])), *data]
    command = [options.shardbench, "load", os.path.join(options.folder, folder), *made, *arguments]
    if "--seconds" not in arguments:
        command += ["--seconds", str(options.seconds)]
    runs = []
    for _ in range(4 if kind == "open" else 1):  # the first one may make the data set
        done = subprocess.run([*command, "--json", "-"], capture_output=True, text=True)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return {"case": name, "left_out": said[-1]}
        runs.append(json.loads(done.stdout))
    report = runs[-1]
    report["case"] = name
    rates = sorted(sample["bytes_per_second"] for sample in report["samples"])
    if kind == "open":
        seconds = sorted(run["open_seconds"] + run["first_batch_seconds"] for run in runs[1:])
        report["figure"] = seconds[len(seconds) // 2]
        report["met"] = report["figure"] <= wanted
    else:
        median = rates[len(rates) // 2]
        limit = report["limit_bytes_per_second"]
        if kind == "first":  # of what the same loader gave afterwards
            report["figure"] = report["first_seconds_samples_per_second"] * report["sample_bytes"] / median
        else:
            report["figure"] = median / limit if kind == "share" else median / report["sample_bytes"]
        report["met"] = report["figure"] >= wanted
    report["wanted"] = wanted
    return report


def row(report):
    if "left_out" in report:
        return f"{report['case']:16} left out: {report['left_out']}"
    rates = sorted(sample["bytes_per_second"] for sample in report["samples"])
    rate = rates[len(rates) // 2] if rates else 0
    cores = report["samples"][-1]["cores"] if rates else 0
    return (
        f"{report['case']:16} {report['figure']:12.3f} wanted {report['wanted']:<10.6g} "
        f"{'met' if report['met'] else 'MISSED':6}"
        + (
            f" of random {rate / report['random_bytes_per_second']:.3f}"
            if report["random_bytes_per_second"]
            else ""
        )
        + f" {rate / 1e9:7.2f} GB/s {rate / report['sample_bytes']:9.0f}/s limit "
        f"{report['limit_bytes_per_second'] / 1e9:6.2f}"
        f" cores {cores:5.2f} open {report['open_seconds']:.3f} first {report['first_batch_seconds']:.3f}"
        f" [{report['transport']}: {report['reason']}]"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shardbench")
    parser.add_argument("folder")
    parser.add_argument(
        "--cases", default="", help="names, or the beginning of names; default: all of the device"
    )
    parser.add_argument("--host", action="store_true", help="the cases of the host device")
    parser.add_argument("--gigabytes", type=float, default=13, help="of each data set")
    parser.add_argument("--seconds", type=float, default=2, help="of each of three repeats")
    parser.add_argument("--images", help="photographs for the cases of codec packed")
    parser.add_argument("--photos", type=int, default=48000, help="samples of their data sets")
    parser.add_argument("--json", help="raw reports, all in one file")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    reports = []
    for case in HOST_CASES if options.host else GPU_CASES:
        wanted = [name for name in options.cases.split(",") if name]
        if wanted and not any(case[0].startswith(name) for name in wanted):
            continue
        reports.append(run_case(options, case))
        print(row(reports[-1]), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(reports, out, indent=1)
    return 0 if reports else "no such case"


if __name__ == "__main__":
    sys.exit(main())
