#!/usr/bin/env python3
"""Nothing wrong in silence: boxes from YOLO's text files."""

import json
import os
import struct

from silence_support import info, main, picture, write
from targets_support import Targets, float_tiff

RIGHT = ([8, 8, 16, 24], 2, 128, 0)  # of the line 2 0.375 0.5 0.25 0.5 in a picture of 32x32
LINE = "2 0.375 0.5 0.25 0.5\n"


class Yolo(Targets):
    """Six pictures of 32x32, each with one line in its file unless the test says otherwise."""

    def setUp(self):
        super().setUp()
        self.images, self.labels_folder = self.path / "in", self.path / "labels"
        self.right = {}
        for i in range(6):
            write(self.images / f"{i}.png", picture(i))
            self.label(i, LINE)
            self.right[f"{i}.png"] = [RIGHT]

    def label(self, i, text):
        return write(self.labels_folder / f"{i}.txt", text if isinstance(text, bytes) else text.encode())

    def arguments(self, *more):
        return [self.images, "--yolo", self.labels_folder, *more]

    def stored(self, *more, told=()):
        return self.expect_objects(
            self.arguments(*more), {f"{i}.png": i for i in range(6)}, self.right, told=told
        )

    def rejected(self, texts, *more):
        """texts: {i: (text, piece of the reason)}."""
        for i, (text, _) in texts.items():
            self.label(i, text)
            del self.right[f"{i}.png"]
        self.expect_objects(
            self.arguments(*more),
            {f"{i}.png": i for i in range(6) if i not in texts},
            self.right,
            rejected={f"{i}.png": why for i, (_, why) in texts.items()},
        )

    # --- what is right, in other words ---

    def test_plain_lines(self):
        self.stored()

    def test_blanks_tabs_and_line_ends_of_dos(self):
        self.label(0, "  2\t0.375  0.5 0.25 0.5 \r\n\r\n")
        self.label(1, "\n\n2 .375 5e-1 0.25 0.50000")
        self.stored()

    def test_a_byte_order_mark(self):
        self.label(0, b"\xef\xbb\xbf" + LINE.encode())
        self.stored()

    def test_a_class_that_is_a_whole_float(self):
        self.label(0, "2.0 0.375 0.5 0.25 0.5")
        self.stored()

    def test_an_empty_file_has_no_objects(self):
        self.label(0, "")
        self.label(1, " \n\t\n")
        self.right.update({"0.png": [], "1.png": []})
        self.stored()

    def test_two_lines_that_are_equal_are_two_objects(self):
        self.label(0, LINE * 2)
        self.right["0.png"] = [RIGHT, RIGHT]
        self.stored()

    def test_a_picture_without_file_is_told(self):
        os.unlink(self.labels_folder / "0.txt")
        self.right["0.png"] = []
        self.stored(told=['1 images without: "0.png" has no annotation'])

    def test_a_file_without_picture_is_told(self):
        self.label(9, LINE)
        self.stored(told=['1 annotations without their image: "9.txt" belongs to no input'])

    def test_extensions_in_upper_case(self):
        os.rename(self.labels_folder / "0.txt", self.labels_folder / "0.TXT")
        os.rename(self.labels_folder / "1.txt", self.labels_folder / "1.Txt")
        self.label(2, "2 0.9 0.5 0.6 0.5")
        os.rename(
            self.labels_folder / "2.txt", self.labels_folder / "2.TXT"
        )  # messages have the name as it is
        self.right["2.png"] = [([19.2, 8, 32, 24], 2, 307.2, 0)]
        write(self.labels_folder / "classes.TXT", b"ant\nbee\ncow\n")
        self.stored(told=['cut: object 1 of "2.TXT" reaches from'])
        self.assertEqual(json.loads(info(self.out)["pipeline"]["categories"]), ["ant", "bee", "cow"])

    def test_extensions_in_upper_case_in_a_folder_that_is_a_link(self):
        write(self.images / "more" / "6.png", picture(6))
        write(self.path / "else" / "6.TXT", LINE.encode())
        (self.labels_folder / "more").symlink_to(self.path / "else")
        self.expect_boxes(self.arguments(), {**self.right, "more/6.png": [RIGHT]})

    def test_two_files_that_differ_in_the_case_of_their_extension(self):
        write(self.labels_folder / "0.TXT", LINE.encode())
        self.expect_refused(self.arguments(), '"0.TXT" and "0.txt" differ only in the case')

    def test_names_of_another_case_are_other_names(self):
        os.rename(self.images / "0.png", self.images / "a.png")
        os.rename(self.labels_folder / "0.txt", self.labels_folder / "A.txt")
        del self.right["0.png"]
        self.expect_boxes(
            self.arguments(),
            {**self.right, "a.png": []},
            told=['1 images without: "a.png"', '"A.txt" belongs to no input'],
        )

    def test_a_box_that_reaches_beyond_the_picture_is_cut_and_told(self):
        self.label(0, "2 0.9 0.5 0.6 0.5")
        self.right["0.png"] = [([19.2, 8, 32, 24], 2, 307.2, 0)]
        self.stored(told=['1 boxes that reach beyond their image, cut: object 1 of "0.txt" reaches from'])

    def test_boxes_without_area_are_told(self):
        self.label(0, "2 0.5 0.5 0 0.5\n2 0.5 0.5 -0.001 0.5\n" + LINE)
        self.stored(told=['2 boxes without area, left out: first "0.txt" line 1'])

    def test_names_of_classes_with_a_byte_order_mark(self):
        write(self.labels_folder / "classes.txt", b"\xef\xbb\xbfant\r\nbee\r\ncow\r\n")
        self.stored()
        self.assertEqual(json.loads(info(self.out)["pipeline"]["categories"]), ["ant", "bee", "cow"])

    def test_pictures_beside_folders_are_stored_and_told(self):
        write(self.images / "more" / "6.png", picture(6))
        write(self.labels_folder / "more" / "6.txt", LINE.encode())
        self.right["more/6.png"] = [RIGHT]
        self.expect_objects(
            self.arguments(),
            {**{f"{i}.png": i for i in range(6)}, "more/6.png": 6},
            self.right,
            labels=dict.fromkeys(self.right, 0),
            told=["every label is 0: 6 images beside the folders of others"],
        )

    def test_floats_and_bands_of_tiff_files(self):
        for bands in (1, 5):
            self.tearDown()
            self.setUp()
            for i in range(6):
                write(self.images / f"{i}.tif", float_tiff(i, bands))
                os.unlink(self.images / f"{i}.png")
            self.expect_boxes(self.arguments(), {f"{i}.tif": [RIGHT] for i in range(6)})

    def test_keypoints_with_and_without_visibility(self):
        for i in range(6):
            self.label(i, LINE.strip() + " 0.5 0.25 0 0\n")
        self.label(0, LINE.strip() + " 0.5 0.25 1 0.5 0.5 0\n")
        self.stored("--yolo-keypoints", "2")
        points = self.ragged("keypoints")
        self.assertEqual(struct.unpack("<6f", points["0.png"]), (16, 8, 1, 0, 0, 0))
        self.assertEqual(struct.unpack("<6f", points["1.png"]), (16, 8, 2, 0, 0, 0))

    # --- rejects ---

    def test_one_file_for_two_images(self):
        write(self.images / "0.gif", picture(6))
        write(self.images / "00.png", picture(6))
        self.label("00", LINE)
        del self.right["0.png"]
        why = 'annotations "0.txt": they belong to "0.gif" and "0.png", and which of them cannot be told'
        self.expect_objects(
            self.arguments(),
            {**{f"{i}.png": i for i in range(1, 6)}, "00.png": 6},
            {**self.right, "00.png": [RIGHT]},
            rejected={"0.gif": why, "0.png": why},
        )

    def test_too_few_and_too_many_numbers(self):
        self.rejected(
            {
                0: ("2 0.375 0.5 0.25", "line 1: 4 numbers: 5 are needed"),
                1: (LINE + "2 0.375 0.5 0.25 0.5 0.9", "line 2: 6 numbers"),
                2: ("2", "line 1: 1 numbers"),
                3: ("2 0.1 0.1 0.2 0.1 0.2 0.2", "polygons of segmentations are not read"),
            }
        )

    def test_too_many_numbers_for_the_keypoints(self):
        for i in range(6):
            self.label(i, LINE.strip() + " 0.5 0.25\n")
        self.rejected(
            {
                0: (LINE, "5 numbers: 7 or 8 are needed for 1 keypoints"),
                1: (LINE.strip() + " 0.5 0.25 1 0.5", "9 numbers"),
            },
            "--yolo-keypoints",
            "1",
        )

    def test_commas(self):
        self.rejected(
            {
                0: ("2 0,375 0,5 0,25 0,5", '"0,375" is not a finite number'),
                1: ("2,0.375,0.5,0.25,0.5", "is not a finite number"),
                2: ("2 0.375, 0.5, 0.25, 0.5", '"0.375,"'),
            }
        )

    def test_numbers_in_other_words(self):
        self.rejected(
            {
                0: ("2 0.375 0.5 0.25 0.5abc", '"0.5abc"'),
                1: ("2 nan 0.5 0.25 0.5", '"nan"'),
                2: ("2 inf 0.5 0.25 0.5", '"inf"'),
                3: ("2 +0.375 0.5 0.25 0.5", '"+0.375"'),
                4: ("2 37% 0.5 0.25 0.5", '"37%"'),
            }
        )

    def test_a_class_that_is_no_number(self):
        self.rejected(
            {
                0: ("dog 0.375 0.5 0.25 0.5", '"dog" is not a finite number'),
                1: ("2.5 0.375 0.5 0.25 0.5", "class 2.5: a whole number"),
                2: ("-1 0.375 0.5 0.25 0.5", "class -1: a whole number"),
                3: ("1e12 0.375 0.5 0.25 0.5", "a whole number from 0 on"),
            }
        )

    def test_a_class_beyond_the_names(self):
        write(self.labels_folder / "classes.txt", b"ant\nbee\ncow\n")
        self.rejected(
            {
                0: ("3 0.375 0.5 0.25 0.5", "class 3 of object 1"),
                1: (LINE + "99 0.375 0.5 0.25 0.5", "class 99 of object 2"),
            }
        )

    def test_pixels_instead_of_fractions(self):
        self.rejected(
            {
                0: ("2 12 16 8 16", "cx is 12: a fraction of the image"),
                1: ("2 0.375 0.5 0.25 1.5", "h is 1.5: a fraction"),
                2: ("2 0.375 -0.5 0.25 0.5", "cy is -0.5"),
                3: ("2 0.375 0.5 -0.25 0.5", "w is -0.25"),
            }
        )

    def test_other_encodings(self):
        self.rejected(
            {
                0: (LINE.encode("utf-16"), "is not a finite number"),
                1: (b"\xef\xbb\xbf" * 2 + LINE.encode(), "is not a finite number"),
                2: (LINE.encode() + b"\0\0", "is not a finite number"),
                3: (b"\xff\xfe\n", "is not a finite number"),
            }
        )

    def test_line_ends_that_are_none(self):
        self.rejected(
            {
                0: (LINE.strip() + "\r" + LINE.strip() + "\r", "is not a finite number"),
                1: (LINE.strip() + "\x0b" + LINE, "is not a finite number"),
                2: (LINE.strip() + "\u2028" + LINE, "is not a finite number"),
            }
        )

    def test_old_mac_lines_are_no_keypoints(self):
        for i in range(6):
            self.label(i, LINE.strip() + " 0.1 0.1" * 5 + "\n")
        self.rejected({0: ("\r".join([LINE.strip()] * 3), "is not a finite number")}, "--yolo-keypoints", "5")

    def test_comments(self):
        self.rejected(
            {0: ("# made by a program\n" + LINE, "line 1"), 1: (LINE.strip() + " # dog\n", "line 1")}
        )

    def test_files_that_are_none(self):
        os.unlink(self.labels_folder / "0.txt")
        (self.labels_folder / "0.txt").symlink_to("nowhere")
        os.unlink(self.labels_folder / "1.txt")
        (self.labels_folder / "1.txt").mkdir()
        del self.right["0.png"], self.right["1.png"]
        self.expect_objects(
            self.arguments(),
            {f"{i}.png": i for i in range(2, 6)},
            self.right,
            rejected={"0.png": '"0.txt"', "1.png": '"1.txt"'},
        )

    def test_keypoints_beyond_the_picture(self):
        for i in range(6):
            self.label(i, LINE.strip() + " 0.5 0.25\n")
        self.rejected(
            {
                0: (LINE.strip() + " 1.5 0.25", "x of a keypoint is 1.5"),
                1: (LINE.strip() + " 0.5 16", "y of a keypoint is 16"),
                2: (LINE.strip() + " 0.5 0.25 3", "the visibility of a keypoint is 3"),
                3: (LINE.strip() + " 0.5 0.25 0.5", "0, 1 or 2 is needed"),
            },
            "--yolo-keypoints",
            "1",
        )

    # --- errors ---

    def test_on_error_fail_stops_there(self):
        self.label(3, "2 12 16 8 16")
        self.expect_refused(
            self.arguments("--on-error", "fail"), '"3.png"', '"3.txt"', "line 1: cx is 12", "on-error fail"
        )

    def test_on_error_fail_stops_at_a_dangling_link(self):
        (self.images / "7.png").symlink_to("nowhere")
        self.expect_refused(
            self.arguments("--on-error", "fail", "--missing", "empty"), '"7.png"', "on-error fail"
        )

    def test_names_in_yaml_and_json(self):
        rest = "give a file with one name a line; of a YAML file, the list under names"
        for name in ("data.yaml", "data.YML", "names.json"):
            file = write(self.path / name, b"ant\nbee\ncow\n")
            self.expect_refused(self.arguments("--box-classes", file), name, "not a list of names", rest)
        for line in (
            "0: ant",
            "  2:  ant",
            "nc: 3",
            "names:",
            "- ant",
            "['ant', 'bee']",
            "[",
            '{"ant": 0}',
            "val:\timages",
        ):
            file = write(self.path / "names.txt", f"bee\n{line}\ncow\n".encode())
            self.expect_refused(
                self.arguments("--box-classes", file),
                "names.txt",
                "line 2 is",
                "a line of YAML or JSON",
                rest,
            )
        write(self.labels_folder / "classes.txt", b"names: [ant]\nnc: 1\n")
        self.expect_refused(self.arguments(), "classes.txt", "line 1 is", rest)

    def test_names_with_colons_and_tabs_behind_them(self):
        write(self.labels_folder / "classes.txt", b"Alien: Covenant\t\n12:30\t \nb-\n")
        self.stored()
        self.assertEqual(
            json.loads(info(self.out)["pipeline"]["categories"]), ["Alien: Covenant", "12:30", "b-"]
        )

    def test_names_that_come_twice(self):
        write(self.labels_folder / "classes.txt", b"ant\nbee\nant\n")
        self.expect_refused(self.arguments(), "classes.txt", 'it has "ant" twice')

    def test_an_empty_line_between_names(self):
        write(self.labels_folder / "classes.txt", b"ant\n\ncow\n")
        self.expect_refused(self.arguments(), "classes.txt", "line 2 is empty")

    def test_names_that_are_not_utf8(self):
        write(self.labels_folder / "classes.txt", b"ant\nb\xffe\ncow\n")
        self.expect_refused(self.arguments(), "classes.txt", "line 2 is not UTF-8")

    def test_names_that_no_header_holds(self):
        write(self.path / "names.txt", "".join(f"{i:01000}\n" for i in range(1100)).encode())
        self.expect_refused(
            self.arguments("--box-classes", self.path / "names.txt"),
            "has at most 1048576 bytes of JSON",
            "pipeline.categories",
        )

    def test_no_file_fits(self):
        for i in range(6):
            os.rename(self.labels_folder / f"{i}.txt", self.labels_folder / f"x{i}.txt")
        self.expect_refused(self.arguments(), "none of its 6 .txt files has the name of one of the 6 inputs")

    def test_missing_fail_stops_at_each(self):
        os.unlink(self.labels_folder / "2.txt")
        self.expect_refused(self.arguments("--missing", "fail"), '"2.png" has no annotation')
        self.label(2, "2 0.5 0.5 0 0.5")
        self.expect_refused(self.arguments("--missing", "fail"), '"2.txt" line 1: a box of 0 x 0.5')
        self.label(2, LINE)
        self.label(9, LINE)
        self.expect_refused(self.arguments("--missing", "fail"), '"9.txt" belongs to no input')

    def test_more_keypoints_than_there_can_be(self):
        self.expect_refused(self.arguments("--yolo-keypoints", "1001"), "at most 1000")


if __name__ == "__main__":
    main()
