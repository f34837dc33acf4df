#!/usr/bin/env python3
"""Nothing wrong in silence: names of classes, lists of classes, train beside val,
labels of appended and joined data sets."""

import io
import os
import struct
import tarfile

from silence_support import AS_THEY_ARE, Silence, info, main, picture, shardctl, shardify, state, write


def npy(values):
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(header))
        + header.encode()
        + struct.pack(f"<{len(values)}q", *values)
    )


def tar(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


class Classes(Silence):
    def images(self, *paths, folder="in"):
        """A picture at each path; its number is the position. Returns the folder."""
        for number, path in enumerate(paths):
            write(self.path / folder / os.fsencode(path).decode(errors="surrogateescape"), picture(number))
        return self.path / folder

    def names(self, text, file="names.txt"):
        return write(self.path / file, text if isinstance(text, bytes) else text.encode())

    def table(self, text):
        return write(self.path / "labels.csv", text.encode())

    def data_set(self, name, *paths, arguments=(), classes=None):
        """A finished data set of pictures; returns its folder."""
        result = shardify(
            self.images(*paths, folder=name + "-images"), self.path / name, *AS_THEY_ARE, *arguments
        )
        self.assert_code(result, 0)
        if classes is not None:
            self.assertEqual(info(self.path / name)["classes"], classes)
        return self.path / name

    # --- lists of classes -----------------------------------------------------------------------------------

    def test_a_part_without_some_classes_has_the_numbers_of_the_list(self):
        folder = self.images("bee/1.png", "dog/1.png")
        self.expect_stored(
            [folder, "--classes", self.names("ant\nbee\ncow\ndog\n")],
            {"bee/1.png": 0, "dog/1.png": 1},
            {"bee/1.png": 1, "dog/1.png": 3},
        )
        self.assertEqual(info(self.out)["classes"], ["ant", "bee", "cow", "dog"])

    def test_a_part_without_some_classes_has_the_numbers_of_the_other_data_set(self):
        train = self.data_set("train", "ant/1.png", "bee/1.png", "cow/1.png", classes=["ant", "bee", "cow"])
        self.expect_stored([self.images("cow/7.png"), "--classes", train], {"cow/7.png": 0}, {"cow/7.png": 2})

    def test_the_file_of_the_other_data_set_names_it_too(self):
        train = self.data_set("train", "ant/1.png", "bee/1.png")
        self.expect_stored(
            [self.images("bee/7.png"), "--classes", train / "dataset.json"],
            {"bee/7.png": 0},
            {"bee/7.png": 1},
        )

    def test_the_order_of_the_list_counts_not_that_of_the_names(self):
        folder = self.images("a/1.png", "b/1.png", "c/1.png")
        self.expect_stored(
            [folder, "--classes", self.names("c\na\nb")],
            {"a/1.png": 0, "b/1.png": 1, "c/1.png": 2},
            {"a/1.png": 1, "b/1.png": 2, "c/1.png": 0},
        )

    def test_folders_named_by_numbers_are_names(self):
        folder = self.images("1/a.png", "2/a.png", "10/a.png")
        self.expect_stored(
            [folder, "--classes", self.names("1\n2\n10\n")],
            {"1/a.png": 0, "2/a.png": 1, "10/a.png": 2},
            {"1/a.png": 0, "2/a.png": 1, "10/a.png": 2},
        )

    def test_a_list_with_line_ends_of_windows_and_a_byte_order_mark(self):
        folder = self.images("ant/1.png", "bee/1.png")
        self.expect_stored(
            [folder, "--classes", self.names(b"\xef\xbb\xbfbee\r\nant\r\n")],
            {"ant/1.png": 0, "bee/1.png": 1},
            {"ant/1.png": 1, "bee/1.png": 0},
        )

    def test_a_class_that_is_not_in_the_list_is_named_with_its_first_image(self):
        folder = self.images("ant/1.png", "zebra/1.png", "zebra/2.png")
        self.expect_refused(
            [folder, "--classes", self.names("ant\nbee\n")], '"zebra/1.png"', '"zebra"', "--classes"
        )

    def test_capitals_are_other_names(self):
        self.expect_refused([self.images("Ant/1.png"), "--classes", self.names("ant\nbee\n")], '"Ant"')

    def test_a_class_folder_that_cannot_be_read_is_not_passed_over(self):
        folder = self.images("ant/1.png")
        os.symlink("loop", folder / "loop")
        (folder / "unknown").mkdir()
        os.symlink("nowhere", folder / "unknown" / "x.png")
        self.expect_refused([folder, "--classes", self.names("ant\n")], '"unknown"')

    def test_an_image_beside_the_class_folders_is_a_reject(self):
        folder = self.images("ant/1.png", "1.png")
        self.expect_stored(
            [folder, "--classes", self.names("bee\nant\n")],
            {"ant/1.png": 0},
            {"ant/1.png": 1},
            {"1.png": "no class"},
        )

    def test_an_empty_line_in_a_list_is_named(self):
        self.expect_refused(
            [self.images("ant/1.png"), "--classes", self.names("ant\n\nbee\n")],
            "names.txt",
            "line 2 is empty",
        )

    def test_a_name_that_occurs_twice_is_named(self):
        self.expect_refused(
            [self.images("ant/1.png"), "--classes", self.names("ant\nbee\nant\n")], "names.txt", '"ant" twice'
        )

    def test_a_list_without_names_is_refused(self):
        self.expect_refused([self.images("ant/1.png"), "--classes", self.names("\n")], "no names")

    def test_a_list_that_is_not_text_is_refused(self):
        self.expect_refused(
            [self.images("ant/1.png"), "--classes", self.names(b"ant\nb\xffe\n")], "line 2 is not UTF-8"
        )

    def test_a_list_that_is_not_there_is_refused(self):
        self.expect_refused([self.images("ant/1.png"), "--classes", self.path / "nowhere.txt"], "nowhere.txt")

    def test_a_data_set_whose_labels_are_numbers_has_no_classes(self):
        numbers = self.data_set(
            "numbers", "x/1.png", arguments=["--labels", self.table("path,label\nx/1.png,7\n")], classes=[]
        )
        self.expect_refused([self.images("ant/1.png"), "--classes", numbers], "numbers for labels")

    def test_a_data_set_that_is_not_finished_has_no_classes_yet(self):
        (self.path / "unfinished").mkdir()
        write(self.path / "unfinished" / "conversion.json", b"{}")
        self.expect_refused([self.images("ant/1.png"), "--classes", self.path / "unfinished"], "unfinished")

    def test_a_name_that_is_not_utf8_comes_from_the_other_data_set(self):
        train = self.data_set("train", "a/1.png", b"b\xff/1.png")
        self.assertEqual(info(train)["classes"], ["a", "b\\xff"])
        folder = self.images(b"b\xff/2.png")
        self.expect_stored([folder, "--classes", train], {"b\\xff/2.png": 0}, {"b\\xff/2.png": 1})

    def test_names_with_commas_quotes_and_blanks_within(self):
        folder = self.images('a, "b"/1.png', "a b/1.png")
        self.expect_stored(
            [folder, "--classes", self.names('x\na b\na, "b"\n')],
            {'a, "b"/1.png': 0, "a b/1.png": 1},
            {'a, "b"/1.png': 2, "a b/1.png": 1},
        )

    # --- where nothing says a class, or numbers do ----------------------------------------------------------

    def test_images_without_folders_have_no_class(self):
        self.expect_refused(
            [self.images("1.png", "2.png"), "--classes", self.names("ant\nbee\n")], "nothing says which class"
        )

    def test_names_in_a_table_have_the_numbers_of_the_list(self):
        folder, table = self.images("1.png", "2.png"), self.table("path,label\n1.png,cow\n2.png,bee\n")
        self.expect_stored(
            [folder, "--labels", table, "--classes", self.names("ant\nbee\ncow\n")],
            {"1.png": 0, "2.png": 1},
            {"1.png": 2, "2.png": 1},
        )

    def test_a_name_in_a_table_that_is_not_in_the_list_is_named_with_its_image(self):
        folder, table = self.images("1.png", "2.png"), self.table("path,label\n1.png,cow\n2.png,bee\n")
        self.expect_refused(
            [folder, "--labels", table, "--classes", self.names("ant\nbee\n")], '"1.png"', '"cow"'
        )

    def test_whole_numbers_in_a_table_are_positions_in_the_list(self):
        folder, table = self.images("1.png", "2.png"), self.table("path,label\n1.png,2\n2.png,0\n")
        self.expect_stored(
            [folder, "--labels", table, "--classes", self.names("ant\nbee\ncow\n")],
            {"1.png": 0, "2.png": 1},
            {"1.png": 2, "2.png": 0},
        )
        self.assertEqual(info(self.out)["classes"], ["ant", "bee", "cow"])

    def test_a_number_behind_the_end_of_the_list_is_named_with_its_image(self):
        folder, table = self.images("1.png", "2.png"), self.table("path,label\n1.png,0\n2.png,2\n")
        self.expect_refused(
            [folder, "--labels", table, "--classes", self.names("ant\nbee\n")], '"2.png" has the label 2'
        )

    def test_a_negative_number_is_no_position(self):
        folder, table = self.images("1.png", "2.png"), self.table("path,label\n1.png,0\n2.png,-1\n")
        self.expect_refused(
            [folder, "--labels", table, "--classes", self.names("ant\nbee\n")], '"2.png" has the label -1'
        )

    def test_a_number_that_could_be_a_name_or_a_position_is_refused(self):
        folder, table = self.images("1.png", "2.png"), self.table("path,label\n1.png,1\n2.png,2\n")
        self.expect_refused(
            [folder, "--labels", table, "--classes", self.names("1\n2\n3\n")], "the name or the position"
        )

    def test_a_number_that_is_its_own_position_is_clear(self):
        folder, table = self.images("1.png", "2.png"), self.table("path,label\n1.png,1\n2.png,2\n")
        self.expect_stored(
            [folder, "--labels", table, "--classes", self.names("0\n1\n2\n")],
            {"1.png": 0, "2.png": 1},
            {"1.png": 1, "2.png": 2},
        )

    def test_labels_that_are_fractions_have_no_classes(self):
        folder, table = self.images("1.png", "2.png"), self.table("path,label\n1.png,0.5\n2.png,0.25\n")
        self.expect_refused([folder, "--labels", table, "--classes", self.names("ant\nbee\n")], "--classes")

    def test_a_table_with_columns_and_no_labels_takes_the_folders(self):
        folder, table = self.images("bee/1.png", "1.png"), self.table("path,n\nbee/1.png,3\n1.png,4\n")
        self.expect_stored(
            [folder, "--labels", table, "--column", "n:i64", "--classes", self.names("ant\nbee\n")],
            {"bee/1.png": 0},
            {"bee/1.png": 1},
            {"1.png": "no class"},
        )

    def test_folders_of_an_archive(self):
        archive = write(self.path / "in.tar", tar({"bee/1.png": picture(0), "cow/1.png": picture(1)}))
        self.expect_stored(
            [archive, "--classes", self.names("ant\nbee\ncow\n")],
            {"bee/1.png": 0, "cow/1.png": 1},
            {"bee/1.png": 1, "cow/1.png": 2},
        )

    def test_numbers_of_a_webdataset(self):
        archive = write(
            self.path / "in.tar",
            tar({"1.png": picture(0), "1.cls": b"1", "2.png": picture(1), "2.cls": b"0"}),
        )
        self.expect_stored(
            [archive, "--classes", self.names("ant\nbee\n")],
            {"1.png": 0, "2.png": 1},
            {"1.png": 1, "2.png": 0},
        )

    def test_a_number_of_a_webdataset_that_is_no_position(self):
        archive = write(
            self.path / "in.tar",
            tar({"1.png": picture(0), "1.cls": b"1", "2.png": picture(1), "2.cls": b"5"}),
        )
        self.expect_refused([archive, "--classes", self.names("ant\nbee\n")], '"2.png" has the label 5')

    def test_a_list_of_paths(self):
        folder = self.images("bee/1.png", "cow/1.png")
        paths = write(self.path / "list.txt", f"{folder}/bee/1.png\n{folder}/cow/1.png\n".encode())
        self.expect_stored(
            [f"@{paths}", "--classes", self.names("ant\nbee\ncow\n")],
            {"bee/1.png": 0, "cow/1.png": 1},
            {"bee/1.png": 1, "cow/1.png": 2},
        )

    # --- a second run, more images, joined data sets --------------------------------------------------------

    def test_other_classes_are_another_conversion(self):
        folder = self.images("ant/1.png", "bee/1.png")
        self.assert_code(self.convert(folder), 0)
        result = self.convert(folder, "--classes", self.names("bee\nant\n"))
        self.assert_refused(result, "classes", 'label 0 is "ant" recorded, "bee" requested')
        self.assertEqual(self.labels(), {"ant/1.png": 0, "bee/1.png": 1})

    def test_a_refresh_takes_other_classes_everywhere(self):
        folder = self.images("ant/1.png", "bee/1.png", "bee/2.png", "bee/3.png")
        self.assert_code(self.convert(folder), 0)
        self.assert_code(self.convert(folder, "--classes", self.names("bee\nant\n"), "--refresh"), 0)
        self.assertEqual(self.labels(), {"ant/1.png": 1, "bee/1.png": 0, "bee/2.png": 0, "bee/3.png": 0})
        self.assertEqual(info(self.out)["classes"], ["bee", "ant"])
        self.assert_visible_is_sound(self.out)

    def test_a_class_that_is_removed_shifts_no_kept_label(self):
        folder = self.images("ant/1.png", "bee/1.png", "bee/2.png", "cow/1.png", "cow/2.png", "cow/3.png")
        self.assert_code(self.convert(folder), 0)
        (folder / "ant/1.png").unlink()
        self.assert_code(self.convert(folder, "--refresh"), 0)
        self.assertEqual(info(self.out)["classes"], ["bee", "cow"])
        self.assertEqual(
            self.labels(), {"bee/1.png": 0, "bee/2.png": 0, "cow/1.png": 1, "cow/2.png": 1, "cow/3.png": 1}
        )

    def test_appended_images_of_some_classes_have_the_labels_of_the_data_set(self):
        self.assert_code(self.convert(self.images("ant/1.png", "bee/1.png", "cow/1.png")), 0)
        more = self.images("cow/2.png", "bee/2.png", folder="more")
        self.assert_code(self.convert(more, "--append", "--classes", self.out), 0)
        self.assertEqual(
            self.labels(), {"ant/1.png": 0, "bee/1.png": 1, "cow/1.png": 2, "cow/2.png": 2, "bee/2.png": 1}
        )

    def test_appended_images_of_an_unknown_class_are_refused_where_the_classes_are_given(self):
        self.assert_code(self.convert(self.images("ant/1.png", "bee/1.png")), 0)
        more = self.images("cow/2.png", folder="more")
        self.assert_refused(self.convert(more, "--append", "--classes", self.out), '"cow"')
        self.assertEqual(self.labels(), {"ant/1.png": 0, "bee/1.png": 1})
        self.assert_visible_is_sound(self.out)

    def test_appended_images_with_classes_in_another_order_are_refused(self):
        self.assert_code(self.convert(self.images("ant/1.png", "bee/1.png")), 0)
        more = self.images("bee/2.png", folder="more")
        self.assert_refused(
            self.convert(more, "--append", "--classes", self.names("bee\nant\n")), 'label 0 is "ant"', '"bee"'
        )
        self.assertEqual(self.labels(), {"ant/1.png": 0, "bee/1.png": 1})

    def test_appended_images_may_bring_classes_behind_those_of_the_data_set(self):
        self.assert_code(self.convert(self.images("ant/1.png", "cow/1.png")), 0)
        more = self.images("bee/2.png", folder="more")
        self.assert_code(self.convert(more, "--append", "--classes", self.names("ant\ncow\nbee\n")), 0)
        self.assertEqual(self.labels(), {"ant/1.png": 0, "cow/1.png": 1, "bee/2.png": 2})
        self.assertEqual(info(self.out)["classes"], ["ant", "cow", "bee"])
        self.assert_visible_is_sound(self.out)

    def test_appended_images_without_a_list_keep_their_names(self):
        self.assert_code(self.convert(self.images("bee/1.png", "cow/1.png")), 0)
        more = self.images("ant/2.png", "cow/2.png", folder="more")
        result = self.assert_code(self.convert(more, "--append"), 0)
        self.assertIn(
            'does not have 1 of the classes of these images ("ant"): they get the labels from 2 on',
            result.err,
        )
        self.assertEqual(self.assert_code(self.convert(more, "--append"), 0).err, "")  # appended already
        names = info(self.out)["classes"]
        self.assertEqual(
            {key: names[label] for key, label in self.labels().items()},
            {"bee/1.png": "bee", "cow/1.png": "cow", "ant/2.png": "ant", "cow/2.png": "cow"},
        )

    def test_joined_data_sets_keep_the_names_of_their_labels(self):
        first = self.data_set("first", "bee/1.png", "cow/1.png")
        second = self.data_set("second", "ant/2.png", "cow/2.png")
        result = self.assert_code(shardctl("join", self.out, first, second), 0)
        self.assertIn("classes: 3, of which 1 is not in the first data set: ant\n", result.out)
        names = info(self.out)["classes"]
        self.assertEqual(
            {key: names[label] for key, label in self.labels().items()},
            {"bee/1.png": "bee", "cow/1.png": "cow", "ant/2.png": "ant", "cow/2.png": "cow"},
        )
        self.assert_visible_is_sound(self.out)

    def test_classes_and_numbers_are_not_joined(self):
        first = self.data_set("first", "bee/1.png")
        second = self.data_set(
            "second", "x/1.png", arguments=["--labels", self.table("path,label\nx/1.png,0\n")]
        )
        result = self.assert_code(shardctl("join", self.out, first, second), 2)
        self.assertIn("numbers for labels", result.err)
        self.assertNotEqual(state(self.out), "complete")

    # --- what lies beside the images ------------------------------------------------------------------------

    def expect_warning(self, folder, labels, *words):
        samples = {key: number for number, key in enumerate(labels)}
        result = self.expect_stored([folder], samples, labels)
        for word in words:
            self.assertIn(word, result.err, result)
        if not words:
            self.assertEqual(result.err, "", result)
        return result

    def test_a_list_beside_the_images_that_numbers_them_in_another_way_is_told(self):
        folder = self.images("bee/1.png", "cow/1.png")
        self.names("ant\nbee\ncow\n", "in/classes.txt")
        self.expect_warning(
            folder,
            {"bee/1.png": 0, "cow/1.png": 1},
            "warning",
            "classes.txt",
            '"bee" is label 0 here and 1 there',
            "--classes",
        )

    def test_a_list_that_agrees_is_not_told(self):
        folder = self.images("bee/1.png", "cow/1.png")
        self.names("bee\ncow\ndog\n", "in/classes.txt")
        self.expect_warning(folder, {"bee/1.png": 0, "cow/1.png": 1})

    def test_a_list_of_other_things_is_not_told(self):
        folder = self.images("n01/1.png", "n02/1.png")
        self.names("tench\ngoldfish\n", "in/classes.txt")
        self.expect_warning(folder, {"n01/1.png": 0, "n02/1.png": 1})

    def test_validation_images_without_a_class_of_the_training_images_are_told(self):
        self.images("ant/1.png", "bee/1.png", "cow/1.png", folder="set/train")
        folder = self.images("bee/9.png", "cow/9.png", folder="set/val")
        self.expect_warning(
            folder,
            {"bee/9.png": 0, "cow/9.png": 1},
            "warning",
            "train",
            '"bee" is label 0 here and 1 there',
            "--classes",
        )

    def test_validation_images_with_a_class_that_is_not_trained_are_told(self):
        self.images("ant/1.png", "bee/1.png", folder="set/train")
        folder = self.images("ant/9.png", "bee/9.png", "cow/9.png", folder="set/test")
        self.expect_warning(
            folder, {"ant/9.png": 0, "bee/9.png": 1, "cow/9.png": 2}, '"cow" is label 2 here and not there'
        )

    def test_validation_images_of_the_same_classes_are_not_told(self):
        self.images("ant/1.png", "bee/1.png", ".hidden/1.png", folder="set/train")
        (self.path / "set/train/aaa").mkdir()  # empty: no class
        folder = self.images("ant/9.png", "bee/9.png", folder="set/val")
        self.expect_warning(folder, {"ant/9.png": 0, "bee/9.png": 1})

    def test_classes_that_are_the_parts_of_a_data_set_are_told(self):
        folder = self.images("Val/cat/1.png", "train/cat/2.png", "train/dog/3.png", folder="set")
        labels = {"Val/cat/1.png": 0, "train/cat/2.png": 1, "train/dog/3.png": 1}
        why = (
            'the classes are "Val" and "train": to convert one part give "{}"; '
            'its classes are "cat" and "dog"'
        )
        self.expect_warning(folder, labels, "warning", why.format(folder / "train"))
        result = self.assert_code(self.convert(folder, "--dry-run"), 0)
        self.assertIn(why.format(folder / "train"), result.out)

    def test_parts_are_told_whatever_lies_beside_them(self):
        cat, dog = "train/cat/1.png", "train/dog/2.png"
        layouts = {
            "flat": ([cat, dog, "val/3.png", "test/4.png"], "train"),
            "docs": ([cat, dog, "val/cat/3.png", "docs/4.png"], "train"),
            "named": (["train_set/cat/1.png", "train_set/dog/2.png", "test_set/cat/3.png"], "train_set"),
            "years": (["train2017/cat/1.png", "train2017/dog/2.png", "val2017/3.png"], "train2017"),
        }
        for name, (paths, part) in layouts.items():
            with self.subTest(layout=name):
                folder, self.out = self.images(*paths, folder=name), self.path / f"out-{name}"
                result = self.assert_code(self.convert(folder), 0)
                self.assertIn(f'to convert one part give "{folder / part}"', result.err)
                self.assertIn('its classes are "cat" and "dog"', result.err)

    def test_one_folder_too_many_is_told(self):
        folder = self.images("pets/cat/1.png", "pets/dog/2.png")
        self.expect_warning(
            folder,
            {"pets/cat/1.png": 0, "pets/dog/2.png": 0},
            f'the class of all images is "pets": to convert what is in it give "{folder / "pets"}"; its '
            'classes are "cat" and "dog"',
        )
        self.out = self.path / "of-tar"
        archive = write(
            self.path / "p.tar", tar({"pets/cat/1.png": picture(1), "pets/dog/2.png": picture(2)})
        )
        result = self.assert_code(self.convert(archive), 0)
        self.assertIn('to convert what is in it give the images of "pets" alone', result.err)
        self.out = self.path / "one"
        folder = self.images("pets/cat/1.png", "pets/cat/2.png", folder="single")
        self.assertEqual(self.assert_code(self.convert(folder), 0).err, "")

    def test_a_folder_of_data_sets_is_no_folder_of_images(self):
        self.data_set("sets/train", "ant/1.png", "bee/1.png")
        folder = self.images("cat/1.png", folder="sets")
        result = self.assert_code(self.convert(folder), 2)
        self.assertIn(f'"{folder / "train"}" is a data set', result.err)
        self.assertEqual(state(self.out), "absent")
        (folder / "train" / "shard-00000.safetensors").unlink()  # somebody else's dataset.json
        self.assert_code(self.convert(folder), 0)

    def test_parts_without_folders_and_parts_among_other_classes_are_not_told(self):
        folder = self.images("train/1.png", "val/2.png")
        self.expect_warning(folder, {"train/1.png": 0, "val/2.png": 1})
        self.out = self.path / "other"
        folder = self.images("bus/new/1.png", "train/old/2.png", folder="rail")
        self.expect_warning(folder, {"bus/new/1.png": 0, "train/old/2.png": 1})

    def test_with_the_list_nothing_is_told(self):
        self.images("ant/1.png", "bee/1.png", folder="set/train")
        folder = self.images("bee/9.png", folder="set/val")
        result = self.expect_stored(
            [folder, "--classes", self.names("ant\nbee\n")], {"bee/9.png": 0}, {"bee/9.png": 1}
        )
        self.assertEqual(result.err, "")

    def test_the_dry_run_tells_it_too(self):
        self.images("ant/1.png", "bee/1.png", folder="set/train")
        folder = self.images("bee/9.png", folder="set/val")
        result = self.assert_code(self.convert(folder, "--dry-run"), 0)
        self.assertIn('"bee" is label 0 here and 1 there', result.out)
        self.assertEqual(state(self.out), "absent")


if __name__ == "__main__":
    main()
