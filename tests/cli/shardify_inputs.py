#!/usr/bin/env python3
"""shardify: bad files and hard names. Each is one line of rejects.csv or one sample, and nothing is lost."""

import os
import resource

from shardify_support import SMALL, SANITIZED, TestCase, all_keys, huge_png, info, main, make_images, make_photos, need_root
from shardify_support import png, rejects, run, shardctl, shardify, write, SHARDIFY


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
        bad("half.jpg", photo[:len(photo) // 2], "")
        bad("no-end.jpg", photo[:-400], "")
        bad("damaged.jpg", photo[:len(photo) // 2] + bytes(300) + photo[len(photo) // 2 + 300:], "")
        bad("half.png", png(1)[:len(png(1)) // 2], "")
        bad("crc.png", png(1).replace(b"IDAT", b"IDAU"), "")
        bad("bomb.png", huge_png(), "60000 x 60000 pixels exceed")
        bad("bomb.jpg", b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01" + bytes(50), "")
        bad("tiff.jpg", b"II*\0" + bytes(60), "")
        bad("gif.png", b"GIF89a" + bytes(60), "")
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
        result = run([SHARDIFY, str(self.images), str(self.out), *SMALL, "--jobs", "2"],
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
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
        result = run([SHARDIFY, str(self.images), str(self.out), *SMALL], user=65534, group=65534, extra_groups=[])
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
        for folder, content in ((b"good\n", good), (b"rej\"ects,\xff", bad)):
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
        self.assertEqual(list(rejects(self.out)), ['rej"ects,\\xff/' + self.NAMES[name] for name in order])
        text = (self.out / "rejects.csv").read_bytes()
        self.assertEqual(text.count(b"\n"), len(self.NAMES) + 1, "one line a reject")
        self.assert_visible_is_sound(self.out)
        listed = self.assert_code(shardctl("ls", self.out), 0).out
        for name in self.NAMES.values():
            self.assertIn(name, listed)

    def test_hard_names_of_images_and_out(self):
        images = self.path / os.fsdecode(b"in\n\xff \"x,")
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

    def test_images_that_is_a_link_to_a_folder(self):
        make_images(self.path / "in", ("a",), each=2)
        os.symlink("in", self.path / "link")
        self.assert_code(shardify(self.path / "link", self.out, *SMALL), 0)
        self.assertEqual(len(all_keys(self.out)), 2)


if __name__ == "__main__":
    main()
