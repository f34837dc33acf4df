#!/usr/bin/env python3
"""shardify: bad files and hard names. Each is one line of rejects.csv or one sample, and nothing is lost."""

import json
import os
import resource
import struct
import unittest

from shardify_support import (
    SANITIZED,
    SHARDIFY,
    SMALL,
    TestCase,
    all_keys,
    digests,
    huge_png,
    info,
    long_png,
    main,
    make_images,
    make_photos,
    need_root,
    png,
    rejects,
    run,
    shardctl,
    shardify,
    stored_samples,
    write,
)


def raw_name(text):
    return os.fsencode(text) if isinstance(text, str) else text


class BadFiles(TestCase):
    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("a", "b"), each=3)

    def convert(self, *options, code=1):
        result = self.assert_code(shardify(self.images, self.out, *SMALL, *options), code)
        if code == 1:
            self.assert_visible_is_sound(self.out)
            numbers = info(self.out)
            self.assertEqual(numbers["inputs"], len(all_keys(self.out)) + len(rejects(self.out)))
        return result

    def test_harmless_warnings_are_stored_and_counted_and_damage_is_asked_for(self):
        photo = next(make_photos(self.path / "photos", 1).rglob("*.jpg")).read_bytes()
        write(self.images / "a" / "plain.jpg", photo)
        write(self.images / "a" / "bytes-in-header.jpg", photo[:20] + b"    " + photo[20:])
        write(self.images / "a" / "bytes-at-end.jpg", photo[:-2] + bytes(64) + photo[-2:])
        write(self.images / "a" / "jfif-9.jpg", photo[:11] + b"\x09" + photo[12:])
        write(self.images / "b" / "half.jpg", photo[: len(photo) // 2])
        expected = {
            "harmless": ({"b/half.jpg"}, {"extraneous_bytes": 2, "jfif_version": 1}),
            "accept": (
                set(),
                {"extraneous_bytes": 2, "jfif_version": 1, "premature_end": 1, "premature_marker": 1},
            ),
            "reject": ({"b/half.jpg", "a/bytes-in-header.jpg", "a/bytes-at-end.jpg", "a/jfif-9.jpg"}, {}),
        }
        for choice, (refused, warnings) in expected.items():
            out = self.path / choice
            option = [] if choice == "harmless" else ["--on-warning", choice]
            done = self.assert_code(
                shardify(self.images, out, *SMALL, *option, "--json"), 1 if refused else 0
            )
            self.assertEqual(json.loads(done.out)["warnings"], warnings, choice)
            self.assertEqual(set(rejects(out)), refused)
            self.assert_code(shardctl("compare", out, self.images), 0)
        stored = stored_samples(self.path / "harmless")
        for name in ("bytes-in-header", "bytes-at-end", "jfif-9"):
            self.assertEqual(stored[f"a/{name}.jpg"], stored["a/plain.jpg"], name)
        again = shardify(self.images, self.path / "harmless", *SMALL, "--on-warning", "accept")
        self.assert_refused(again, 'on_warning: "-" recorded, "accept" requested')
        again = shardify(self.images, self.path / "accept", *SMALL)
        self.assert_refused(again, 'on_warning: "accept" recorded, "-" requested')
        text = shardify(self.images, self.path / "text", *[o for o in SMALL if o != "--quiet"])
        self.assertIn("extraneous_bytes 2, jfif_version 1", self.assert_code(text, 1).out)
        self.assertNotIn("missing or invented", text.out)
        plain = [o for o in SMALL if o != "--quiet"]
        text = shardify(self.images, self.path / "all", *plain, "--on-warning", "accept")
        self.assertIn(
            "warning: images are stored with missing or invented pixels (images per kind: premature_marker "
            "1, premature_end 1), as --on-warning accept asks",
            self.assert_code(text, 0).out,
        )

    @unittest.skipIf(SANITIZED, "the sanitizers' shadow memory does not fit below the limit")
    def test_no_memory_for_one_image_is_its_reject_and_the_run_goes_on(self):
        # 30 million pixels in a row took more than 1 GB for tables of coefficients once;
        # three rows as stored are 90 MB.
        write(self.images / "a" / "long.png", long_png(30_000_000))
        write(self.images / "b" / "longer.png", long_png(170_000_000))

        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))

        result = self.assert_code(
            run(
                [SHARDIFY, self.images, self.out, *SMALL[4:], "--squash", "32x32", "--jobs", "1"],
                preexec_fn=limited,
            ),
            1,
        )
        self.assertEqual(list(rejects(self.out)), ["b/longer.png"], result)
        self.assertIn("memory", rejects(self.out)["b/longer.png"])
        self.assertEqual(len(all_keys(self.out)), 7)
        self.assertIn("a/long.png", all_keys(self.out))

    def test_each_kind_of_bad_file_is_one_reject_with_its_reason(self):
        photo = next(make_photos(self.path / "photos", 1).rglob("*.jpg")).read_bytes()
        folder = self.images / "a"
        expected = {}

        def bad(name, data, reason):
            write(folder / name, data)
            expected[f"a/{name}"] = reason

        bad("empty.jpg", b"", "empty")
        bad("text.jpg", b"this is a text and no picture\n", "")
        bad("short.jpg", photo[:2], "")
        bad("header-only.jpg", photo[:200], "")
        bad("half.jpg", photo[: len(photo) // 2], "")
        bad("no-end.jpg", photo[:-400], "")
        bad("damaged.jpg", photo[: len(photo) // 2] + bytes(300) + photo[len(photo) // 2 + 300 :], "")
        bad("half.png", png(1)[: len(png(1)) // 2], "")
        bad("crc.png", png(1).replace(b"IDAT", b"IDAU"), "")
        bad("bomb.png", huge_png(), "raise the bound (--max-pixels)")
        bad(
            "bomb.jpg",
            b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01"
            + bytes(50),
            "",
        )
        bad("tiff.jpg", b"II*\0" + bytes(60), "TIFF: ")
        bad("gif.png", b"GIF89a" + bytes(60), "GIF: ")
        bad("phone.jpg", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(60), "HEIC")
        bad("layers.jpg", b"8BPS\0\1" + bytes(60), "is a Photoshop image; convert it")
        bad("riff.webp", b"RIFF\x10\0\0\0WEBPVP8 " + bytes(8), "")
        bad("zeros.jpg", bytes(4096), "")
        os.mkfifo(folder / "pipe.jpg")
        expected["a/pipe.jpg"] = "not a regular file"
        os.symlink("/nowhere/at/all.jpg", folder / "dead.jpg")
        expected["a/dead.jpg"] = "No such file"
        os.symlink("self.jpg", folder / "self.jpg")
        expected["a/self.jpg"] = "symbolic link loop"
        os.symlink("/dev/zero", folder / "zero.jpg")
        expected["a/zero.jpg"] = "not a regular file"
        self.convert()
        found = rejects(self.out)
        self.assertEqual(sorted(found), sorted(expected))
        for key, reason in expected.items():
            self.assertIn(reason, found[key].replace(",", ""), key)
            self.assertGreater(len(found[key]), 5, key)
        self.assertEqual(len(all_keys(self.out)), 6)

    def test_the_type_is_told_by_content_and_not_by_name(self):
        photo = next(make_photos(self.path / "photos", 1).rglob("*.jpg")).read_bytes()
        write(self.images / "a" / "photo.png", photo)
        write(self.images / "a" / "picture.txt", png(3))
        write(self.images / "a" / "noname", png(4))
        self.convert(code=0)
        self.assertEqual(len(all_keys(self.out)), 9)

    def test_a_pixel_bomb_is_refused_before_anything_is_allocated(self):
        write(self.images / "a" / "bomb.png", huge_png(65000, 65000))  # 12 GB of pixels
        if SANITIZED:
            self.convert()
            return
        limit = 2 << 30
        result = run(
            [SHARDIFY, str(self.images), str(self.out), *SMALL, "--jobs", "2"],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )
        self.assert_code(result, 1)
        self.assertIn("65000 x 65000 pixels exceed", rejects(self.out)["a/bomb.png"])

    def test_a_file_without_permission_is_a_reject(self):
        need_root()  # to give up its rights
        secret = write(self.images / "a" / "secret.png", png(3))
        (self.images / "locked").mkdir()
        write(self.images / "locked" / "x.png", png(4))
        secret.chmod(0)
        (self.images / "locked").chmod(0)
        self.path.chmod(0o777)
        result = run(
            [SHARDIFY, str(self.images), str(self.out), *SMALL], user=65534, group=65534, extra_groups=[]
        )
        self.assert_code(result, 1)
        found = rejects(self.out)
        self.assertEqual(sorted(found), ["a/secret.png", "locked"])
        for reason in found.values():
            self.assertIn("Permission denied", reason)

    def test_a_whole_shard_of_rejects_leaves_no_hole(self):
        for i in range(9):
            write(self.images / "aa" / f"{i}.png", b"bad")
        self.convert()
        self.assertEqual(len(all_keys(self.out)), 6)
        self.assertEqual(len(rejects(self.out)), 9)
        again = shardify(self.images, self.out, *SMALL)
        self.assert_code(again, 1)

    def test_a_file_that_is_larger_than_any_image_is_refused_unread(self):
        with open(self.images / "a" / "vast.jpg", "wb") as file:
            file.truncate(1 << 40)  # sparse
        self.convert()
        self.assertIn(str(1 << 40), rejects(self.out)["a/vast.jpg"].replace(",", ""))


class Strays(TestCase):
    """What systems and people leave between images."""

    LITTER = (
        ".DS_Store",
        "Thumbs.db",
        "a/desktop.ini",
        "a/.ipynb_checkpoints/0-checkpoint.png",
        ".git/objects/x.png",
        "__MACOSX/a/._0.png",
        "@eaDir/0.png/thumb.jpg",
        "b/@eaDir/0.png",
        "$RECYCLE.BIN/1.png",
        "THUMBS.DB",
        "a/._0.png",
    )
    NO_IMAGES = ("README.md", "labels.csv", "a/notes.txt", "b/annotations.json", "b/LICENSE", "a/archive.zip")

    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("a", "b"), each=2)
        self.shown = [option for option in SMALL if option != "--quiet"]
        self.assert_code(shardify(self.images, self.path / "clean", *SMALL), 0)

    def litter(self):
        for name in self.LITTER:
            write(self.images / name, png(1) if "png" in name else b"Bud1")
        for name in self.NO_IMAGES:
            write(self.images / name, b"path,label\nBMW,1\n")
        (self.images / "empty").mkdir()

    def test_they_are_counted_and_change_nothing(self):
        self.litter()
        result = self.assert_code(shardify(self.images, self.out, *self.shown), 0)
        self.assertEqual(digests(self.out), digests(self.path / "clean"))
        self.assertIn("classes: 2: a, b\n", result.out)
        # Of a folder only the folder is counted.
        for words in (
            'hidden names: 4 (first ".DS_Store")',
            'left by systems or programs: 7 (first "$RECYCLE.BIN")',
            'no images by name or content: 6 (first "README.md")',
            "no classes: 1 folder without images: empty",
        ):
            self.assertIn(words, result.out)
        summary = json.loads(self.assert_code(shardify(self.images, self.out, *self.shown, "--json"), 0).out)
        self.assertEqual(summary["skipped"], {"hidden": 4, "litter": 7, "no_image": 6, "walked": 0})
        self.assertEqual((summary["classes"], summary["empty_folders"]), (["a", "b"], ["empty"]))

    def test_strict_makes_rejects_of_them(self):
        self.litter()
        self.assert_code(shardify(self.images, self.out, *SMALL, "--strict"), 1)
        found = rejects(self.out)
        self.assertEqual(len(found), 17)
        self.assertEqual(found["README.md"], "skipped: no image by name or content")
        self.assertEqual(found["a/.ipynb_checkpoints"], "skipped: hidden name")
        self.assertEqual(info(self.out)["classes"], ["a", "b"])
        self.assertEqual(info(self.out)["inputs"], 21)

    def test_content_decides_where_the_name_says_nothing_and_a_name_of_an_image_is_a_promise(self):
        photo = next(make_photos(self.path / "photos", 1).rglob("*.jpg")).read_bytes()
        for name, data in (("a/photo", photo), ("a/image.dat", png(5)), ("b/x.txt", photo)):
            write(self.images / name, data)
        bad = {
            "a/empty.JPEG": b"",
            "a/text.png": b"no picture",
            "b/x.HEIC": b"no",
            "b/movie.dat": b"GIF89a" + bytes(60),
            "b/phone.bin": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
            "b/scan.x": b"II*\0" + bytes(60),
            "b/w.x": b"BM" + struct.pack("<IIII", 90, 0, 54, 40) + bytes(72),
        }
        for name, data in bad.items():
            write(self.images / name, data)
        for name, data in (
            ("a/empty", b""),
            ("b/data.bin", bytes(4096)),
            ("b/BM.txt", b"BMW,1,2,3\n"),
            ("a/index.html", b"<html><svg/></html>\n"),
            ("a/README", b"\n<p>\n<svg/>\n"),
        ):
            write(self.images / name, data)
        os.mkfifo(self.images / "a" / "pipe")
        os.symlink("/dev/zero", self.images / "a" / "zero")
        result = self.assert_code(shardify(self.images, self.out, *self.shown), 1)
        self.assertEqual(sorted(rejects(self.out)), sorted(bad))
        self.assertEqual(len(all_keys(self.out)), 7)
        self.assertIn("no images by name or content: 7", result.out)

    def test_a_file_without_a_name_of_an_image_that_cannot_be_read_is_a_reject(self):
        need_root()
        write(self.images / "a" / "unknown", png(1)).chmod(0)
        self.path.chmod(0o777)
        result = run(
            [SHARDIFY, str(self.images), str(self.out), *SMALL], user=65534, group=65534, extra_groups=[]
        )
        self.assert_code(result, 1)
        self.assertIn("Permission denied", rejects(self.out)["a/unknown"])

    def test_images_may_lie_in_a_hidden_folder_themselves(self):
        os.rename(self.images, self.path / ".cache")
        self.assert_code(shardify(self.path / ".cache", self.out, *SMALL), 0)
        self.assertEqual(digests(self.out), digests(self.path / "clean"))

    def test_nothing_but_litter_is_nothing_to_convert(self):
        write(self.path / "none" / "README.md", b"x")
        write(self.path / "none" / ".git" / "x.png", png(1))
        self.assert_refused(
            shardify(self.path / "none", self.out, *SMALL),
            "nothing to convert",
            "2 skipped",
            '".git": hidden name',
        )


class HardNames(TestCase):
    NAMES = {
        b"new\nline.png": "new\\x0aline.png",
        b"carriage\rreturn.png": "carriage\\x0dreturn.png",
        b'quo"te.png': 'quo"te.png',
        b"com,ma.png": "com,ma.png",
        b"sp ace.png": "sp ace.png",
        b"back\\slash.png": "back\\x5cslash.png",
        b"bad\xff\xfeutf8.png": "bad\\xff\\xfeutf8.png",
        b"cut\xc3": "cut\\xc3",
        b"\xed\xa0\x80.png": "\\xed\\xa0\\x80.png",
        b"-rf.png": "-rf.png",
        b"esc\x1b[31m.png": "esc\\x1b[31m.png",
        b"\x7f.png": "\\x7f.png",
        "caf\u00e9.png".encode(): "caf\u00e9.png",
        "cafe\u0301.png".encode(): "cafe\u0301.png",
        "\u202egnp.png".encode(): "\u202egnp.png",
        "\U0001f40c.png".encode(): "\U0001f40c.png",
        b"%s%n{}.png": "%s%n{}.png",
        b"=1+1.png": "=1+1.png",
        b"\\xff.png": "\\x5cxff.png",
        b"n" * 251 + b".png": "n" * 251 + ".png",
    }

    def fill(self, good, bad):
        root = os.fsencode(self.path / "in")
        for folder, content in ((b"good\n", good), (b'rej"ects,\xff', bad)):
            os.makedirs(os.path.join(root, folder))
            for name in self.NAMES:
                with open(os.path.join(root, folder, name), "wb") as file:
                    file.write(content)

    def test_hard_names_are_kept_losslessly_as_keys_classes_and_rejects(self):
        self.fill(png(1), b"no picture")
        self.assert_code(shardify(self.path / "in", self.out, *SMALL), 1)
        order = sorted(self.NAMES)  # bytes, no locale
        self.assertEqual(all_keys(self.out), ["good\\x0a/" + self.NAMES[name] for name in order])
        self.assertEqual(info(self.out)["classes"], ["good\\x0a", 'rej"ects,\\xff'])
        # Without the name of an image and without the content of one, "cut" is passed over.
        images = [name for name in order if name.endswith(b".png")]
        self.assertEqual(list(rejects(self.out)), ['rej"ects,\\xff/' + self.NAMES[name] for name in images])
        text = (self.out / "rejects.csv").read_bytes()
        self.assertEqual(text.count(b"\n"), len(self.NAMES), "one line a reject")
        self.assert_visible_is_sound(self.out)
        listed = self.assert_code(shardctl("ls", self.out), 0).out
        for name in self.NAMES.values():
            self.assertIn(name, listed)

    def test_hard_names_of_images_and_out(self):
        images = self.path / os.fsdecode(b'in\n\xff "x,')
        out = self.path / os.fsdecode(b"out\n\xfe 'y,")
        make_images(images, ("a",), each=2)
        shown = [option for option in SMALL if option != "--quiet"]
        for extra in ([], ["--json"], ["--dry-run"], ["--dry-run", "--json"]):
            result = shardify(images, out, *shown, *extra)
            self.assert_code(result, 0)
            self.assertNotIn("\udcfe", result.out, "a byte that is not UTF-8 reached the terminal")
        self.assertEqual(len(all_keys(out)), 2)


class HardTrees(TestCase):
    def test_deep_folders(self):
        folder = self.path / "in" / "c"
        for _ in range(100):
            folder = folder / "d"
        write(folder / "x.png", png(1))
        self.assert_code(shardify(self.path / "in", self.out, *SMALL), 0)
        self.assertEqual(all_keys(self.out), ["c/" + "d/" * 100 + "x.png"])

    def test_links_to_files_and_folders_are_followed(self):
        images = make_images(self.path / "in", ("a",), each=1)
        elsewhere = make_images(self.path / "else", ("k",), each=2)
        os.symlink(elsewhere / "k", images / "b")
        os.symlink(elsewhere / "k" / "0.png", images / "a" / "link.png")
        self.assert_code(shardify(images, self.out, *SMALL), 0)
        self.assertEqual(all_keys(self.out), ["a/0.png", "a/link.png", "b/0.png", "b/1.png"])

    def test_links_in_a_circle_over_two_folders_end(self):
        images = make_images(self.path / "in", ("a", "b"), each=1)
        os.symlink("../b", images / "a" / "to-b")
        os.symlink("../a", images / "b" / "to-a")
        os.symlink("..", images / "b" / "up")
        self.assert_code(shardify(images, self.out, *SMALL), 1)
        self.assertEqual(all_keys(self.out), ["a/0.png", "a/to-b/0.png", "b/0.png", "b/to-a/0.png"])
        self.assertEqual(set(rejects(self.out).values()), {"symbolic link loop"})

    def test_links_that_branch_and_meet_are_walked_once_a_class(self):
        """2^40 ways lead to the last folder."""
        pool = self.path / "pool"
        for level in range(40):
            (pool / str(level)).mkdir(parents=True)
            write(pool / str(level) / "x.png", png(level))
            if level > 0:
                os.symlink(pool / str(level), pool / str(level - 1) / "l")
                os.symlink(pool / str(level), pool / str(level - 1) / "r")
        (self.path / "in").mkdir()
        os.symlink(pool / "0", self.path / "in" / "a")
        os.symlink(pool / "20", self.path / "in" / "b")
        shown = [option for option in SMALL if option != "--quiet"]
        result = self.assert_code(shardify(self.path / "in", self.out, *shown), 0)
        self.assertEqual(
            all_keys(self.out),
            sorted(
                ["a/" + "l/" * n + "x.png" for n in range(40)]
                + ["b/" + "l/" * n + "x.png" for n in range(20)]
            ),
        )
        self.assertIn('links to folders whose images are in the class already: 58 (first "a/l/l', result.out)

    def test_a_folder_counts_where_it_is_and_not_where_a_link_leads_to_it(self):
        for order in (("m", "A", "z"), ("z", "m", "A")):
            images = self.path / f"in{order[0]}"
            for name in order:  # made in another order: readdir may differ
                if name == "m":
                    write(images / "c" / "m" / "real.png", png(1))
                else:
                    (images / "c").mkdir(parents=True, exist_ok=True)
                    os.symlink("m", images / "c" / name)
            os.symlink("c", images / "d")
            out = self.path / f"out{order[0]}"
            self.assert_code(shardify(images, out, *SMALL), 0)
            self.assertEqual(all_keys(out), ["c/m/real.png", "d/m/real.png"])

    def test_images_that_is_a_link_to_a_folder(self):
        make_images(self.path / "in", ("a",), each=2)
        os.symlink("in", self.path / "link")
        self.assert_code(shardify(self.path / "link", self.out, *SMALL), 0)
        self.assertEqual(len(all_keys(self.out)), 2)


if __name__ == "__main__":
    main()
