#!/usr/bin/env python3
"""Codec jpeg as a user meets it: files that are stored as they are and come back byte for byte, those that
are transcoded or encoded and said to be, damaged ones, and every subcommand of shardctl on such a set."""

import hashlib
import io
import json
import os
import signal
import struct
import subprocess
import tarfile
import time

from png_files import png_of
from shardify_support import (
    BIN,
    SHARDIFY,
    TestCase,
    all_keys,
    digests,
    environment,
    info,
    main,
    make_photos,
    png,
    read_shard,
    rejects,
    run,
    shardctl,
    shardify,
    shards,
    write,
)

SAMPLES = str(BIN / "jpeg_samples")
TRANSCODED = {"progressive.jpg", "progressive_gray.jpg", "arithmetic.jpg", "scans.jpg"}
ORIGINAL = ["--size", "original", "--codec", "jpeg", "--samples-per-shard", "5"]


def with_exif(file, orientation):
    """A JPEG file with EXIF data behind its SOI."""
    tiff = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01" + struct.pack(">HH", orientation, 0) + b"\0\0\0\0"
    payload = b"Exif\0\0" + tiff
    return file[:2] + b"\xff\xe1" + struct.pack(">H", len(payload) + 2) + payload + file[2:]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def files_below(folder):
    """{path: bytes}"""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


class JpegCase(TestCase):
    def setUp(self):
        super().setUp()
        self.images = self.path / "images"

    def kinds(self):
        """A file of each kind."""
        self.assert_code(run([SAMPLES, self.path / "samples"]), 0)
        return files_below(self.path / "samples")

    def all_of_them(self):
        """Those, turned ones, and others that libjpeg takes."""
        kinds = self.kinds()
        for name, data in kinds.items():
            write(self.images / "kinds" / name, data)
        for orientation in range(1, 9):
            name = "progressive.jpg" if orientation == 6 else "420.jpg"
            write(self.images / "turned" / f"{orientation}.jpg", with_exif(kinds[name], orientation))
        write(self.images / "odd" / "behind.jpg", kinds["444.jpg"] + b"garbage behind EOI\xff\xd8\xff")
        write(
            self.images / "odd" / "comment.JPEG",
            kinds["422.jpg"][:2] + b"\xff\xfe\0\x06abcd" + kinds["422.jpg"][2:],
        )
        write(self.images / "odd" / "named.png", kinds["411.jpg"])
        return files_below(self.images)

    def convert(self, *more, out=None, options=ORIGINAL):
        return shardify(self.images, out or self.out, *options, *more)

    def summary(self, *more, code=0, **how):
        return json.loads(self.assert_code(self.convert("--json", *more, **how), code).out)

    def export(self, out, folder):
        self.assert_code(shardctl("export", out, "--files", folder, "--quiet"), 0)
        return files_below(folder)


class Originals(JpegCase):
    def test_files_come_back_byte_for_byte(self):
        files = self.all_of_them()
        summary = self.summary()
        transcoded = {f"kinds/{name}" for name in TRANSCODED} | {"turned/6.jpg"}
        self.assertEqual(summary["rejects"], 0, rejects(self.out))
        self.assertEqual(
            summary["jpeg"],
            {"kept": len(files) - len(transcoded), "transcoded": len(transcoded), "encoded": 0},
        )
        self.assertEqual((info(self.out)["version"], info(self.out)["codec"]), (3, "jpeg:95"))
        exported = self.export(self.out, self.path / "files")
        self.assertEqual(set(exported), set(files))
        different = {name for name in files if sha256(files[name]) != sha256(exported[name])}
        self.assertEqual(different, transcoded)
        said = shardctl("export", self.out, "--files", self.path / "again").out
        self.assertIn(f"{len(files)} files", said)
        self.assertIn(f"{len(files) - len(transcoded)} of them are the files that were converted", said)

    def test_pixels_are_those_of_codec_none(self):
        self.all_of_them()
        write(self.images / "odd" / "a.png", png(3))
        self.assert_code(self.convert(), 0)
        plain = self.path / "plain"
        self.assert_code(shardify(self.images, plain, "--size", "original", "--quiet"), 0)
        jpeg, none = self.checksums(self.out), self.checksums(plain)
        self.assertEqual(set(jpeg), set(none))
        # A PNG is encoded: its pixels are others.
        self.assertEqual({key for key in none if jpeg[key] != none[key]}, {"odd/a.png"})
        self.assert_code(shardctl("verify", self.out), 0)
        # The images are decoded again, and the PNG encoded again.
        self.assert_code(shardctl("compare", self.out, self.images), 0)

    def checksums(self, out):
        found = {}
        for path in shards(out):
            _, tensors = read_shard(path)
            sums = struct.unpack(f"<{len(tensors['checksums'][2]) // 8}Q", tensors["checksums"][2])
            offsets = struct.unpack(f"<{len(tensors['key_offsets'][2]) // 8}Q", tensors["key_offsets"][2])
            keys = [tensors["keys"][2][a:b].decode() for a, b in zip(offsets, offsets[1:])]
            shapes = struct.iter_unpack("<II", tensors["shapes"][2])
            found.update((key, (shape, value)) for key, shape, value in zip(keys, shapes, sums))
        return found

    def test_others_are_encoded_and_counted(self):
        kinds = self.kinds()
        write(self.images / "cat" / "1.png", png(1))
        write(self.images / "cat" / "2.jpg", kinds["420.jpg"])
        summary = self.summary("--quality", "90")
        self.assertEqual(summary["jpeg"], {"kept": 1, "transcoded": 0, "encoded": 1})
        self.assertEqual(info(self.out)["codec"], "jpeg:90")
        exported = self.export(self.out, self.path / "files")
        self.assertEqual(set(exported), {"cat/1.png.jpg", "cat/2.jpg"})
        self.assertEqual(exported["cat/2.jpg"], kinds["420.jpg"])
        self.assertEqual(exported["cat/1.png.jpg"][:2], b"\xff\xd8")
        text = self.convert("--quality", "90", out=self.path / "text").out
        self.assertIn("JPEG: 1 file as it is, 1 encoded with quality 90", text)

    def test_damaged_files_are_rejects_as_with_other_codecs(self):
        kinds = self.kinds()
        good = kinds["420.jpg"]
        write(self.images / "good.jpg", good)
        write(self.images / "cut.jpg", good[: len(good) * 2 // 3])
        write(self.images / "no_end.jpg", good[:-2])
        write(self.images / "empty.jpg", b"")
        write(self.images / "text.jpg", b"no image at all")
        flipped = bytearray(good)
        at = good.index(b"\xff\xda") + 200
        flipped[at : at + 8] = b"\xff\x11\xff\x22\xff\x33\xff\x44"
        write(self.images / "marker.jpg", bytes(flipped))
        summary = self.summary(code=1)
        plain = self.path / "plain"
        shardify(self.images, plain, "--size", "original", "--quiet")
        self.assertEqual(rejects(self.out), rejects(plain))
        self.assertIn("cut.jpg", rejects(self.out))
        self.assertEqual(summary["jpeg"]["kept"] + summary["jpeg"]["transcoded"], summary["samples"])
        # With damage accepted, all that has pixels is stored, with the pixels of codec none.
        accepted, plain = self.path / "accepted", self.path / "plain_accepted"
        self.convert("--on-warning", "accept", out=accepted)
        shardify(self.images, plain, "--size", "original", "--on-warning", "accept", "--quiet")
        self.assertEqual(rejects(accepted), rejects(plain))
        self.assert_code(shardctl("verify", accepted), 0)
        self.assert_code(shardctl("compare", accepted, self.images), 0)

    def test_harmless_warnings_are_stored_and_counted(self):
        kinds = self.kinds()
        good = kinds["420.jpg"]
        at = good.index(b"JFIF\0") + 5
        write(self.images / "jfif.jpg", good[:at] + b"\x07" + good[at + 1 :])
        write(
            self.images / "before_marker.jpg",
            good[: good.index(b"\xff\xdb")] + b"\0\0" + good[good.index(b"\xff\xdb") :],
        )
        write(self.images / "at_the_end.jpg", good[:-2] + b"\0\0\0" + good[-2:])
        summary = self.summary()
        self.assertEqual(summary["samples"], 3, rejects(self.out))
        # libjpeg has read the zeros at the end ahead, and does not miss them.
        self.assertEqual(summary["warnings"], {"extraneous_bytes": 1, "jfif_version": 1})
        self.assertEqual(summary["jpeg"]["encoded"], 0)
        plain = self.path / "plain"
        self.assert_code(shardify(self.images, plain, "--size", "original", "--quiet"), 0)
        self.assert_code(shardctl("compare", self.out, plain), 0)
        self.assert_code(shardctl("verify", self.out), 0)

    def test_a_file_with_far_more_metadata_than_pixels_is_encoded(self):
        kinds = self.kinds()
        extra = b"".join(b"\xff\xef\xff\xff" + bytes(65533) for _ in range(20))
        one = kinds["one.jpg"]
        write(self.images / "one.jpg", one[:2] + extra + one[2:])
        self.assertEqual(self.summary()["jpeg"], {"kept": 0, "transcoded": 0, "encoded": 1})

    def test_the_bytes_do_not_depend_on_threads_processes_and_kills(self):
        self.all_of_them()
        write(self.images / "odd" / "a.png", png(3))
        write(self.images / "odd" / "cut.jpg", (self.images / "kinds" / "420.jpg").read_bytes()[:900])
        self.convert("--jobs", "1", "--quiet")
        expected = digests(self.out)
        several = self.path / "several"
        self.convert("--jobs", "7", "--quiet", out=several)
        self.assertEqual(digests(several), expected)
        ranks = self.path / "ranks"
        for rank in range(3):
            self.convert("--rank", str(rank), "--world-size", "3", "--quiet", out=ranks)
        self.assertEqual(digests(ranks), expected)
        claims = self.path / "claims"
        self.convert("--claim", "--quiet", out=claims)
        self.assertEqual(digests(claims), expected)
        killed = self.path / "killed"
        for delay in (0.01, 0.02, 0.03, 0.04):
            process = subprocess.Popen(
                [SHARDIFY, self.images, killed, *ORIGINAL, "--jobs", "1", "--quiet"],
                env=environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.convert("--quiet", out=killed)
        self.assertEqual(digests(killed), expected)

    def test_counts_survive_a_stopped_run(self):
        self.all_of_them()
        expected = self.summary()["jpeg"]
        out = self.path / "ranks"
        self.convert("--rank", "0", "--world-size", "2", "--quiet", out=out)
        second = self.summary("--rank", "1", "--world-size", "2", out=out)
        self.assertEqual(second["jpeg"], expected)

    def test_without_digests_of_pixels_all_else_is_the_same(self):
        files = self.all_of_them()
        write(self.images / "odd" / "a.png", png(3))
        self.assert_code(self.convert("--quiet"), 0)
        fast = self.path / "fast"
        summary = self.summary("--no-sample-digest", out=fast)
        self.assertEqual(summary["jpeg"]["encoded"], 1)
        self.assertEqual(info(fast)["pipeline"]["sample_digests"], "none")
        with_digest, without = self.checksums(self.out), self.checksums(fast)
        known = {key for key, (_, value) in without.items() if value != 0}
        self.assertTrue({"odd/a.png", "kinds/progressive.jpg"} <= known, known)
        self.assertTrue({"kinds/420.jpg", "turned/5.jpg", "kinds/cmyk.jpg"} <= set(without) - known, known)
        self.assertEqual({key: with_digest[key] for key in known}, {key: without[key] for key in known})
        frames = [
            [read_shard(path)[1]["image_frames"][2] for path in shards(out)] for out in (self.out, fast)
        ]
        self.assertEqual(frames[0], frames[1])
        self.assert_code(shardctl("verify", fast), 0)
        self.assert_code(shardctl("compare", fast, self.images), 0)
        self.assert_code(shardctl("compare", fast, self.out), 0)
        self.assertEqual(files.keys() - self.export(fast, self.path / "files").keys(), set())
        self.assertEqual(
            shardctl("duplicates", fast, "--json").out,
            shardctl("duplicates", self.out, "--json").out.replace(str(self.out), str(fast)),
        )
        plain = self.path / "plain"
        self.assert_code(shardctl("repack", fast, plain, "--codec", "packed", "--quiet"), 0)
        self.assertNotIn("sample_digests", info(plain)["pipeline"])
        before = digests(plain)
        (plain / "dataset.json").unlink()
        shards(plain)[-1].unlink()
        self.assert_code(shardctl("repack", fast, plain, "--codec", "packed", "--quiet"), 0)
        self.assertEqual(digests(plain), before)
        self.assert_code(shardctl("compare", plain, self.out), 0)
        # Damage is found by the digest of the frame.
        path = shards(fast)[0]
        data = bytearray(path.read_bytes())
        data[-40] ^= 1
        path.write_bytes(bytes(data))
        self.assert_code(shardctl("verify", fast), 1)
        self.assert_code(shardctl("show", fast, "0..5", "-o", self.path / "sheet.png"), 1)
        again = self.path / "again"
        self.assert_refused(self.convert("--no-sample-digest", out=self.out), "sample_digests")
        refused = shardify(self.images, again, "--size", "64", "--codec", "jpeg", "--no-sample-digest")
        self.assert_refused(refused, "--no-sample-digest")

    def test_append_refresh_and_overwrite(self):
        self.all_of_them()
        self.assert_code(self.convert("--quiet"), 0)
        more = self.path / "more"
        write(more / "kinds" / "new.jpg", with_exif((self.images / "kinds" / "444.jpg").read_bytes(), 8))
        appended = self.assert_code(shardify(more, self.out, *ORIGINAL, "--append", "--json"), 0)
        self.assertEqual(json.loads(appended.out)["jpeg"]["kept"], 1)
        self.assertIn("kinds/new.jpg", all_keys(self.out))
        self.assert_code(shardctl("verify", self.out), 0)
        other = self.path / "other"
        self.assert_code(self.convert("--quiet", out=other), 0)
        write(
            self.images / "kinds" / "420.jpg", with_exif((self.images / "kinds" / "422.jpg").read_bytes(), 3)
        )
        self.assert_code(self.convert("--refresh", "--quiet", out=other), 0)
        fresh = self.path / "fresh"
        self.assert_code(self.convert("--quiet", out=fresh), 0)
        self.assertEqual(digests(other), digests(fresh))
        self.assert_code(self.convert("--quality", "50", "--overwrite", "--quiet", out=other), 0)
        self.assertEqual(info(other)["codec"], "jpeg:50")


class Encoded(JpegCase):
    def test_samples_of_one_size_are_encoded_with_the_quality(self):
        make_photos(self.images, count=8)
        sizes = {}
        for quality in (50, 95):
            out = self.path / str(quality)
            result = self.convert(
                "--size", "64", "--codec", "jpeg", "--quality", str(quality), "--json", out=out, options=[]
            )
            summary = json.loads(self.assert_code(result, 0).out)
            self.assertEqual(summary["jpeg"], {"kept": 0, "transcoded": 0, "encoded": 8})
            described = info(out)
            self.assertEqual(
                (described["dtype"], described["layout"], described["shape"], described["codec"]),
                ("u8", "nhwc", [64, 64, 3], f"jpeg:{quality}"),
            )
            self.assert_code(shardctl("verify", out), 0)
            self.assert_code(shardctl("compare", out, self.images), 0)
            sizes[quality] = summary["bytes"]
        self.assertLess(sizes[50], sizes[95])
        near = self.path / "plain"
        self.assert_code(shardify(self.images, near, "--size", "64", "--preset", "train", "--quiet"), 0)
        compared = json.loads(shardctl("compare", self.path / "95", near, "--json").out)
        self.assertNotEqual(compared, {})

    def test_a_longest_side_is_encoded_too(self):
        make_photos(self.images, count=4)
        summary = self.summary("--longest", "100", "--codec", "jpeg", options=[])
        self.assertEqual(summary["jpeg"]["encoded"], 4)
        self.assert_code(shardctl("compare", self.out, self.images), 0)

    def test_options_that_do_not_fit_are_refused(self):
        write(self.images / "a.png", png(1))
        for words, *given in (
            ("--quality", "--quality", "90"),
            ("exclude each other", "--codec", "jpeg:80", "--quality", "90"),
            ("1 to 100", "--codec", "jpeg", "--quality", "0"),
            ("1 to 100", "--codec", "jpeg", "--quality", "101"),
            ("jpeg", "--codec", "jpeg:0"),
            ("codec jpeg", "--codec", "jpeg", "--dtype", "f16"),
            ("codec jpeg", "--codec", "jpeg", "--layout", "nchw"),
            ("codec jpeg", "--codec", "jpeg", "--preset", "eval"),
        ):
            with self.subTest(given=given):
                self.assert_refused(shardify(self.images, self.out, *given), words)
                self.assertFalse(self.out.exists())

    def test_masks_and_pairs_beside_jpeg_lose_nothing(self):
        kinds = self.kinds()
        write(self.images / "a.jpg", kinds["420.jpg"])
        write(self.path / "other" / "a.png", png(4, 77, 51))
        self.assert_code(self.convert("--pair", f"other={self.path / 'other'}"), 0)
        self.assertEqual([field["codec"] for field in info(self.out)["fields"]], ["packed"])
        lossy = self.path / "lossy"
        said = self.assert_code(
            self.convert("--pair", f"other={self.path / 'other'},codec=jpeg:80", out=lossy), 0
        ).out
        self.assertIn("other: all encoded with quality 80", said)
        self.assertEqual([field["codec"] for field in info(lossy)["fields"]], ["jpeg:80"])
        self.assert_code(shardctl("verify", lossy), 0)
        plain = self.path / "plain"
        self.assert_code(shardctl("repack", lossy, plain, "--codec", "none", "--quiet"), 0)
        self.assert_code(shardctl("compare", lossy, plain), 0)
        write(self.path / "masks" / "a.png", png_of([[x % 7 for x in range(77)]] * 51))
        masks = f"{self.path / 'masks'}"
        beside = self.path / "beside"
        self.assert_code(self.convert("--mask", masks, out=beside), 0)
        self.assertEqual([field["codec"] for field in info(beside)["fields"]], ["packed"])
        refused = self.convert("--mask", f"{masks},codec=jpeg", out=self.path / "refused")
        self.assert_refused(refused, "class ids")


class Tools(JpegCase):
    def setUp(self):
        super().setUp()
        self.all_of_them()
        write(self.images / "odd" / "a.png", png(3))
        self.assert_code(self.convert("--quiet"), 0)
        self.count = len(all_keys(self.out))

    def test_every_subcommand_reads_the_set(self):
        self.assertIn("jpeg:95", self.assert_code(shardctl("info", self.out), 0).out)
        listed = self.assert_code(shardctl("ls", self.out, "--csv"), 0).out.splitlines()
        self.assertEqual(len(listed), self.count + 1)
        self.assertTrue(any(line.endswith("turned/5.jpg,77,51") for line in listed), listed)
        self.assert_code(shardctl("show", self.out, "0..8", "-o", self.path / "sheet.png"), 0)
        self.assert_code(shardctl("page", self.out, self.path / "page", "--quiet"), 0)
        stats = json.loads(self.assert_code(shardctl("stats", self.out, "--json"), 0).out)
        self.assertTrue(stats)
        found = json.loads(shardctl("duplicates", self.out, "--json").out)
        self.assertTrue(found)
        self.assert_code(shardctl("copy", self.out, self.path / "copy", "--quiet"), 0)
        self.assertEqual(digests(self.path / "copy"), digests(self.out))
        self.assert_code(shardctl("split", self.out, "--fractions", "0.5,0.5", "--quiet"), 0)
        part = self.path / "part"
        self.assert_code(shardctl("export", f"{self.out}#val", "--files", part, "--quiet"), 0)
        whole = files_below(self.images)
        for name, data in files_below(part).items():
            self.assertIn(name.removesuffix(".jpg") if name == "odd/a.png.jpg" else name, whole)
            self.assertEqual(data[:2], b"\xff\xd8")

    def test_repack_there_and_back(self):
        for codec in ("none", "packed", "zstd:1"):
            new = self.path / codec
            self.assert_code(shardctl("repack", self.out, new, "--codec", codec, "--quiet"), 0)
            self.assert_code(shardctl("verify", new), 0)
            self.assert_code(shardctl("compare", self.out, new), 0)
            # The PNG among the images was encoded, and is made again in the same way.
            self.assert_code(shardctl("compare", new, self.images), 0)
            same = ["--size", "original", "--codec", codec, "--samples-per-shard", "5"]
            self.assert_refused(shardify(self.images, new, *same), "decoded_from")
        back = self.path / "back"
        said = self.assert_code(shardctl("repack", self.path / "packed", back, "--codec", "jpeg:90"), 0).out
        self.assertIn("encoded with quality 90", said)
        self.assert_code(shardctl("verify", back), 0)
        self.assertEqual(shardctl("compare", self.out, back).code, 1)  # other pixels
        self.assert_refused(self.convert("--quality", "90", out=back), "encoded_from")
        plain, encoded = self.path / "plain", self.path / "encoded"
        self.assert_code(shardify(self.images, plain, "--size", "original", "--quiet"), 0)
        self.assert_code(shardctl("repack", plain, encoded, "--codec", "jpeg:90", "--quiet"), 0)
        self.assert_code(shardctl("compare", encoded, self.images), 0)  # encoded as the repack has done it
        before = digests(back)
        (back / "dataset.json").unlink()
        shards(back)[-1].unlink()
        self.assert_code(shardctl("repack", self.path / "packed", back, "--codec", "jpeg:90", "--quiet"), 0)
        self.assertEqual(digests(back), before)
        again = shardctl("repack", self.out, self.path / "again", "--codec", "jpeg:50")
        self.assert_code(again, 2)
        self.assertIn("lose more", again.err)

    def test_join_keeps_the_files(self):
        other_images, other = self.path / "more", self.path / "other"
        write(other_images / "kinds" / "new.jpg", (self.images / "kinds" / "rgb.jpg").read_bytes())
        self.assert_code(shardify(other_images, other, *ORIGINAL, "--quiet"), 0)
        joined = self.path / "joined"
        self.assert_code(shardctl("join", joined, self.out, other, "--quiet"), 0)
        self.assert_code(shardctl("verify", joined), 0)
        files = self.export(joined, self.path / "files")
        self.assertEqual(files["kinds/new.jpg"], (other_images / "kinds" / "new.jpg").read_bytes())

    def test_a_webdataset_of_the_files_gives_the_frames_back(self):
        tar = self.path / "set.tar"
        self.assert_code(shardctl("export", self.out, "--format", "tar", "-o", tar), 0)
        again = self.path / "again"
        result = shardify(tar, again, "--size", "original", "--codec", "jpeg", "--json")
        self.assertEqual(json.loads(self.assert_code(result, 0).out)["jpeg"]["kept"], self.count)

    def test_exports_that_are_not_possible_are_refused(self):
        plain = self.path / "plain"
        self.assert_code(shardctl("repack", self.out, plain, "--codec", "none", "--quiet"), 0)
        refused = shardctl("export", plain, "--files", self.path / "files")
        self.assert_code(refused, 2)
        self.assertIn("--format tar", refused.err)
        both = shardctl("export", self.out, "--files", self.path / "files", "--npy", self.path / "npy")
        self.assert_code(both, 2)
        write(self.path / "full" / "a.txt", b"mine")
        self.assert_code(shardctl("export", self.out, "--files", self.path / "full"), 2)

    def test_keys_that_cannot_all_be_files_are_refused_and_go_into_an_archive(self):
        good = self.kinds()["420.jpg"]
        for number, (keys, words) in enumerate(
            (
                (["a/1.jpg", "a/1.jpg"], "as that of another sample"),
                (["a/1", "a/1/2.jpg"], "the folder of other keys"),
                (["a/2.jpg", "a/" + "m" * 300], "too long"),
            )
        ):
            with self.subTest(keys=keys):
                parts = [self.path / f"{number}_{part}" for part in range(2)]
                for key, part in zip(keys, parts):
                    with tarfile.open(self.path / "one.tar", "w") as tar:
                        member = tarfile.TarInfo(key)
                        member.size = len(good)
                        tar.addfile(member, io.BytesIO(good))
                    self.assert_code(shardify(self.path / "one.tar", part, *ORIGINAL, "--quiet"), 0)
                joined = self.path / f"{number}"
                self.assert_code(shardctl("join", joined, *parts, "--quiet"), 0)
                refused = shardctl("export", joined, "--files", self.path / f"{number}_files")
                self.assert_code(refused, 2)
                self.assertIn(words, refused.err)
                self.assertIn("--format tar", refused.err)
                tar = self.path / f"{number}.tar"
                self.assert_code(shardctl("export", joined, "--format", "tar", "-o", tar), 0)
                with tarfile.open(tar) as made:
                    self.assertEqual(sum(name.endswith(".jpg") for name in made.getnames()), 2)

    def test_damage_is_found(self):
        path = shards(self.out)[0]
        data = bytearray(path.read_bytes())
        data[-40] ^= 1
        path.write_bytes(bytes(data))
        self.assert_code(shardctl("verify", self.out), 1)
        result = shardctl("export", self.out, "--files", self.path / "files")
        self.assert_code(result, 1)
        self.assertIn(f"{self.count - 1} of {self.count} files", result.err)


if __name__ == "__main__":
    main()
