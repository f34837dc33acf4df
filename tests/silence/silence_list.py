#!/usr/bin/env python3
"""Nothing wrong in silence: lists of paths."""

import os

from silence_support import Silence, info, main, picture, write


class Lists(Silence):
    def setUp(self):
        super().setUp()
        self.images = self.path / "in"
        self.number = 0
        for folder in ("b", "a"):
            for name in ("0", "1"):
                write(self.images / folder / f"{name}.png", picture(self.number))
                self.number += 1
        self.samples = {"b/0.png": 0, "b/1.png": 1, "a/0.png": 2, "a/1.png": 3}
        self.classes = {"a/0.png": 0, "a/1.png": 0, "b/0.png": 1, "b/1.png": 1}

    def file(self, *lines, end="\n"):
        text = b"".join(
            (line if isinstance(line, bytes) else os.fsencode(line)) + end.encode() for line in lines
        )
        write(self.path / "list.txt", text)
        return f"@{self.path}/list.txt"

    def all(self, **options):
        return self.file(*(self.images / key for key in self.samples), **options)

    def stored(self, given, *more, **options):
        return self.expect_stored([given, *more], self.samples, self.classes, **options)

    # --- what is the same list ------------------------------------------------------------------------------

    def test_the_order_of_the_list_does_not_matter(self):
        self.stored(self.file(*(self.images / key for key in reversed(self.samples))))

    def test_line_ends_of_windows(self):
        self.stored(self.all(end="\r\n"))

    def test_no_line_end_at_the_end(self):
        text = "\n".join(str(self.images / key) for key in self.samples)
        write(self.path / "list.txt", text.encode())
        self.stored(f"@{self.path}/list.txt")

    def test_empty_lines(self):
        self.stored(self.file("", *(self.images / key for key in self.samples), "", ""))

    def test_parts_that_lead_nowhere(self):
        self.stored(self.file(*(f"{self.images}/.//b/../{key}" for key in self.samples)))

    def test_relative_paths(self):
        self.stored(self.file(*(f"in/{key}" for key in self.samples)), cwd=self.path)

    def test_a_byte_order_mark(self):
        text = b"\xef\xbb\xbf" + b"".join(os.fsencode(self.images / key) + b"\n" for key in self.samples)
        write(self.path / "list.txt", text)
        self.stored(f"@{self.path}/list.txt")

    def test_standard_input(self):
        lines = "".join(f"{self.images / key}\n" for key in self.samples)
        self.stored("-", input=lines.encode())

    # --- what is not clear ----------------------------------------------------------------------------------

    def test_an_image_that_is_listed_twice(self):
        self.expect_refused(
            [self.file(*(self.images / key for key in self.samples), self.images / "a/1.png")],
            "a/1.png",
            "listed twice",
        )

    def test_an_image_that_is_listed_twice_under_two_spellings(self):
        self.expect_refused(
            [self.file(*(self.images / key for key in self.samples), f"{self.images}/a/../a/./1.png")],
            "listed twice",
        )

    def test_an_image_that_is_listed_absolute_and_relative(self):
        self.expect_refused(
            [self.file(*(self.images / key for key in self.samples), "in/a/1.png"), "--root", self.images],
            "listed twice",
            cwd=self.path,
        )

    def test_a_path_in_no_class(self):
        self.expect_refused(
            [self.file(*(self.images / key for key in self.samples), self.images / "x.png")],
            "not obvious",
            "--root",
        )

    def test_a_path_outside(self):
        self.expect_refused(
            [self.file(*(self.images / key for key in self.samples), self.path / "x" / "y.png")],
            "not obvious",
        )

    def test_a_path_outside_of_the_root(self):
        write(self.path / "else" / "y.png", picture(9))
        for odd in (self.path / "else" / "y.png", f"{self.images}/../else/y.png", f"{self.images}2/y.png"):
            self.expect_refused(
                [self.file(*(self.images / key for key in self.samples), odd), "--root", self.images],
                "not below",
            )

    def test_the_root_itself(self):
        self.stored(
            self.file(*(self.images / key for key in self.samples), self.images), "--root", self.images
        )

    def test_a_folder_in_the_list(self):
        given = self.file(*(self.images / key for key in self.samples), self.images / "a", self.images / "b")
        self.stored(given, "--root", self.images)  # not looked into: only the files that are listed

    def test_relative_and_absolute_paths(self):
        keys = list(self.samples)
        self.expect_refused(
            [self.file(f"in/{keys[0]}", *(self.images / key for key in keys[1:]))],
            "both relative and absolute",
            cwd=self.path,
        )

    def test_only_one_class(self):
        # The folder could be the class, or what contains the classes.
        given = self.file(self.images / "a/0.png", self.images / "a/1.png")
        self.expect_stored([given], {"0.png": 2, "1.png": 3}, {"0.png": 0, "1.png": 0})
        self.assertEqual(info(self.out)["classes"], [])

    def test_images_at_two_depths(self):
        write(self.images / "a" / "deep" / "x.png", picture(9))
        self.expect_refused(
            [self.file(*(self.images / key for key in self.samples), self.images / "a/deep/x.png")],
            "not obvious",
        )

    def test_addresses_and_paths(self):
        self.expect_refused(
            [self.file(*(self.images / key for key in self.samples), "https://localhost:1/x.png")],
            "both addresses and paths",
        )

    # --- what is not there ----------------------------------------------------------------------------------

    def test_a_file_that_is_not_there(self):
        self.stored(
            self.file(*(self.images / key for key in self.samples), self.images / "a/9.png"),
            rejected={"a/9.png": "No such file"},
        )

    def test_a_folder_that_is_not_there_is_no_class(self):
        given = self.file(*(self.images / key for key in self.samples), self.images / "aa/0.png")
        self.expect_refused([given], "aa", "none of them exists")
        self.stored(
            given, "--root", self.images, rejected={"aa/0.png": "no listed file of its folder is there"}
        )
        self.assertEqual(info(self.out)["classes"], ["a", "b"])

    def test_a_blank_behind_a_path(self):
        self.stored(
            self.file(*(self.images / key for key in self.samples), f"{self.images}/a/2.png "),
            rejected={"a/2.png ": "No such file"},
        )

    def test_a_file_whose_name_ends_with_a_blank(self):
        write(self.images / "a" / "2.png ", picture(7))
        given = self.file(*(self.images / key for key in self.samples), f"{self.images}/a/2.png ")
        self.expect_stored([given], {**self.samples, "a/2.png ": 7}, {**self.classes, "a/2.png ": 0})

    def test_a_comment(self):
        self.expect_refused(
            [self.file("# my list", *(self.images / key for key in self.samples))], "not obvious"
        )
        self.expect_refused(
            [self.file("# my list", *(self.images / key for key in self.samples)), "--root", self.images],
            "not below",
        )

    def test_a_list_of_path_and_label(self):
        self.expect_refused(
            [self.file(*(f"{self.images / key},{i}" for i, key in enumerate(self.samples)))], ""
        )

    def test_quoted_paths(self):
        self.expect_refused([self.file(*(f'"{self.images / key}"' for key in self.samples))], "")

    def test_a_list_in_utf_16(self):
        text = "".join(f"{self.images / key}\n" for key in self.samples).encode("utf-16")
        write(self.path / "list.txt", text)
        self.expect_refused([f"@{self.path}/list.txt"], "")

    def test_paths_that_end_with_zero_bytes(self):
        text = b"".join(os.fsencode(self.images / key) + b"\0" for key in self.samples)
        for given, name in ((text, "list.txt"), (b"\n" + text, "line 2")):
            write(self.path / "list.txt", given)
            self.expect_refused([f"@{self.path}/list.txt"], name, "zero byte", "find without -print0")

    def test_an_empty_list(self):
        for given in (self.file(), self.file("", "")):
            self.expect_refused([given], "nothing to convert")

    def test_a_list_that_is_not_there(self):
        self.expect_refused([f"@{self.path}/no.txt"], "no.txt", "No such file")

    def test_a_list_that_is_a_folder(self):
        self.expect_refused([f"@{self.images}"], "in")

    def test_an_image_as_the_list(self):
        self.expect_refused([f"@{self.images}/a/0.png"], "")

    # --- names ----------------------------------------------------------------------------------------------

    def test_names_that_are_not_utf_8(self):
        path = os.fsencode(self.images) + b"/a/\xff.png"
        with open(path, "wb") as file:
            file.write(picture(7))
        given = self.file(*(self.images / key for key in self.samples), path)
        self.expect_stored([given], {**self.samples, "a/\\xff.png": 7}, {**self.classes, "a/\\xff.png": 0})

    def test_a_backslash_is_a_part_of_the_name(self):
        write(self.images / "a" / "x\\y.png", picture(7))
        given = self.file(*(self.images / key for key in self.samples), self.images / "a" / "x\\y.png")
        self.expect_stored(
            [given], {**self.samples, "a/x\\x5cy.png": 7}, {**self.classes, "a/x\\x5cy.png": 0}
        )

    def test_classes_that_differ_in_normalisation(self):
        for i, folder in enumerate(("caf\u00e9", "cafe\u0301")):
            write(self.path / "n" / folder / "1.png", picture(i))
        given = self.file(*(self.path / "n" / folder / "1.png" for folder in ("caf\u00e9", "cafe\u0301")))
        self.expect_stored(
            [given],
            {"caf\u00e9/1.png": 0, "cafe\u0301/1.png": 1},
            {"cafe\u0301/1.png": 0, "caf\u00e9/1.png": 1},
        )

    def test_hidden_files_and_litter(self):
        for name in (".x.png", "Thumbs.db", "._0.png"):
            write(self.images / "a" / name, picture(7))
        self.stored(
            self.file(
                *(self.images / key for key in self.samples),
                *(self.images / "a" / name for name in (".x.png", "Thumbs.db", "._0.png")),
            )
        )

    def test_hidden_files_are_rejects_when_asked(self):
        write(self.images / "a" / ".x.png", picture(7))
        given = self.file(*(self.images / key for key in self.samples), self.images / "a/.x.png")
        self.stored(given, "--strict", rejected={str(self.images / "a/.x.png"): "hidden"})

    def test_links_are_what_they_lead_to(self):
        os.symlink(self.images / "b" / "0.png", self.images / "a" / "link.png")
        os.symlink(self.images / "nowhere.png", self.images / "a" / "gone.png")
        given = self.file(
            *(self.images / key for key in self.samples),
            self.images / "a/link.png",
            self.images / "a/gone.png",
        )
        self.expect_stored(
            [given],
            {**self.samples, "a/link.png": 0},
            {**self.classes, "a/link.png": 0},
            {"a/gone.png": "No such file"},
        )

    def test_a_pipe(self):
        os.mkfifo(self.images / "a" / "pipe.png")
        self.stored(
            self.file(*(self.images / key for key in self.samples), self.images / "a/pipe.png"),
            rejected={"a/pipe.png": "not a regular file"},
        )

    def test_text_that_is_called_a_picture(self):
        write(self.images / "a" / "t.png", b"text")
        self.stored(
            self.file(*(self.images / key for key in self.samples), self.images / "a/t.png"),
            rejected={"a/t.png": ""},
        )

    def test_a_table_for_a_list(self):
        table = write(self.path / "l.csv", b"b/1.png,4\na/0.png,3\nb/0.png,2\na/1.png,1\n")
        self.expect_stored(
            [self.all(), "--labels", table],
            self.samples,
            {"b/1.png": 4, "a/0.png": 3, "b/0.png": 2, "a/1.png": 1},
        )

    def test_a_table_with_the_paths_of_the_list(self):
        table = write(
            self.path / "l.csv", "".join(f"{self.images / key},1\n" for key in self.samples).encode()
        )
        self.expect_refused([self.all(), "--labels", table], "no such image", "line 1")


if __name__ == "__main__":
    main()
