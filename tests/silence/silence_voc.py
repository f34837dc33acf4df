#!/usr/bin/env python3
"""Nothing wrong in silence: boxes from the XML files of Pascal VOC."""

import json
import os

from silence_support import SIDE, info, main, picture, write
from targets_support import Targets, float_tiff

RIGHT = (
    [2, 3, 12, 18],
    1,
    150,
    0,
)  # of the object below: pixels are counted from 1, and the last one is part of the box


def thing(name="dog", sides=(3, 4, 12, 18), more=""):
    names = ("xmin", "ymin", "xmax", "ymax")
    return (
        f"<object><name>{name}</name>{more}<bndbox>"
        + "".join(f"<{of}>{value}</{of}>" for of, value in zip(names, sides))
        + "</bndbox></object>"
    )


def voc(
    objects=None, size=f"<size><width>{SIDE}</width><height>{SIDE}</height><depth>3</depth></size>", more=""
):
    return f"<annotation>{more}{size}{thing() if objects is None else objects}</annotation>"


class Voc(Targets):
    """Six pictures of 32x32, each with a dog, and the last one with a cat too,
    unless the test says otherwise."""

    def setUp(self):
        super().setUp()
        self.images, self.folder = self.path / "in", self.path / "xml"
        self.right = {}
        for i in range(6):
            write(self.images / f"{i}.png", picture(i))
            self.label(i, voc())
            self.right[f"{i}.png"] = [RIGHT]
        self.label(5, voc(thing() + thing("cat")))
        self.right["5.png"].append((RIGHT[0], 0, *RIGHT[2:]))

    def label(self, i, text):
        return write(self.folder / f"{i}.xml", text if isinstance(text, bytes) else text.encode())

    def arguments(self, *more):
        return [self.images, "--voc", self.folder, *more]

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

    def test_plain_files(self):
        self.stored()
        self.assertEqual(json.loads(info(self.out)["pipeline"]["categories"]), ["cat", "dog"])

    def test_other_encodings_of_xml(self):
        self.label(0, ('<?xml version="1.0" encoding="UTF-16"?>' + voc()).encode("utf-16"))
        self.label(1, b"\xef\xbb\xbf" + voc().encode())
        self.label(
            2,
            b'<?xml version="1.0" encoding="ISO-8859-1"?>'
            + voc(more="<source>K\xe4fer</source>").encode("latin-1"),
        )
        self.stored()

    def test_blanks_and_comments(self):
        self.label(0, voc(thing(" dog\n", (" 3", "4 ", "\n12", "18"), "<!-- <name>cat</name> -->")))
        self.label(1, voc("<!-- " + thing("cat") + " -->" + thing()))
        self.label(2, voc(thing("<![CDATA[dog]]>")))
        self.stored()

    def test_fractions_of_pixels(self):
        self.label(0, voc(thing(sides=("3.5", "4.25", "12.5", "18"))))
        self.right["0.png"] = [([2.5, 3.25, 12.5, 18], 1, 147.5, 0)]
        self.stored()

    def test_difficult(self):
        for i, (value, crowd) in enumerate((("1", 1), ("0", 0), ("true", 1), ("False", 0))):
            self.label(i, voc(thing(more=f"<difficult>{value}</difficult>")))
            self.right[f"{i}.png"] = [(*RIGHT[:3], crowd)]
        self.stored()

    def test_parts_have_boxes_of_their_own(self):
        self.label(
            0,
            voc(
                thing(
                    more="<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part><pose>Left</pose>"
                )
            ),
        )
        self.stored()

    def test_no_size_is_that_of_the_picture(self):
        self.label(0, voc(size=""))
        self.label(1, voc(size="<size><width>0</width><height>0</height></size>"))
        self.label(2, voc(size="<size/>"))
        self.stored()

    def test_a_file_name_that_nothing_else_has(self):
        self.label(0, voc(more="<filename>0.jpg</filename>"))
        self.label(1, voc(more="<filename>/data/renamed.jpg</filename>"))
        self.label(2, voc(more="<filename/>"))
        self.label(3, voc(more="<filename>C:\\pictures\\3.PNG</filename>"))
        self.stored()

    def test_no_objects(self):
        self.label(0, voc(""))
        self.label(1, "<annotation/>")
        self.right.update({"0.png": [], "1.png": []})
        self.stored()

    def test_boxes_the_wrong_way_round_are_told(self):
        self.label(0, voc(thing(sides=(12, 4, 3, 18)) + thing(sides=(3, 18, 12, 4))))
        self.right["0.png"] = []
        self.stored(
            told=['2 boxes without area, left out: first "0.xml" object 1 ("dog"): a box from 12, 4 to 3, 18']
        )

    def test_a_box_of_one_pixel(self):
        self.label(0, voc(thing(sides=(3, 4, 3, 4))))
        self.right["0.png"] = [([2, 3, 3, 4], 1, 1, 0)]
        self.stored()

    def test_boxes_counted_from_0_lose_less_than_a_pixel(self):
        self.label(0, voc(thing(sides=(0, 0, 12, 18))))
        self.right["0.png"] = [([0, 0, 12, 18], 1, 13 * 19, 0)]
        self.stored()

    def test_a_box_beyond_the_picture_is_cut_and_told(self):
        self.label(0, voc(thing(sides=(3, 4, 120, 18))))
        self.right["0.png"] = [([2, 3, 32, 18], 1, 118 * 15, 0)]
        self.label(1, voc(thing(sides=(300, 4, 320, 18))))
        self.right["1.png"] = []
        self.stored(
            told=[
                (
                    '2 boxes that reach beyond their image, cut: first object 1 of "0.xml" reaches from 2, '
                    "3 to 120, 18 in 32 x 32"
                ),
                "1 objects outside of the crop",
            ]
        )

    def test_a_picture_without_file_and_a_file_without_picture_are_told(self):
        os.rename(self.folder / "0.xml", self.folder / "9.xml")
        self.right["0.png"] = []
        self.stored(
            told=[
                '1 images without: "0.png" has no annotation',
                '1 annotations without their image: "9.xml" belongs to no input',
            ]
        )

    def test_pictures_beside_folders_are_stored_and_told(self):
        write(self.images / "more" / "6.png", picture(6))
        write(self.folder / "more" / "6.xml", voc().encode())
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
            self.expect_boxes(self.arguments(), {f"{i}.tif": self.right[f"{i}.png"] for i in range(6)})

    def test_extensions_in_upper_case(self):
        os.rename(self.folder / "0.xml", self.folder / "0.XML")
        self.stored()
        write(self.folder / "0.xml", voc().encode())
        self.out = self.path / "no"
        self.expect_refused(self.arguments(), '"0.XML" and "0.xml" differ only in the case')

    # --- rejects ---

    def test_one_file_for_two_images(self):
        samples = {f"{i}.png": i for i in range(4)}
        both = ["4.gif", "4.png", "5.gif", "5.png"]
        why = (
            'annotations "{0}.xml": they belong to "{0}.gif" and "{0}.png", and which of them cannot be told'
        )
        rejected = {name: why.format(name[0]) for name in both}
        for i in (4, 5):
            write(self.images / f"{i}.gif", picture(i))
            del self.right[f"{i}.png"]
        self.label(5, voc(more="<filename>5.jpg</filename>"))
        for i in range(4):
            self.right[f"{i}.png"] = [(RIGHT[0], 0, *RIGHT[2:])]
        self.expect_objects(self.arguments(), samples, self.right, rejected=rejected)

    def test_one_file_for_two_images_that_names_one(self):
        write(self.images / "0.gif", picture(0))
        self.label(0, voc(more="<filename>/data/0.png</filename>"))
        self.expect_objects(
            self.arguments(),
            {f"{i}.png": i for i in range(6)},
            self.right,
            rejected={"0.gif": 'annotations "0.xml": its filename is "/data/0.png", which is another of'},
        )

    def test_a_file_of_another_picture(self):
        self.rejected(
            {
                0: (
                    voc(more="<filename>1.png</filename>"),
                    'its filename is "1.png", which is another of the images',
                ),
                2: (voc(more="<filename>x/3.jpg</filename>"), 'its filename is "x/3.jpg"'),
            }
        )

    def test_a_size_of_another_picture(self):
        self.rejected(
            {
                0: (
                    voc(size="<size><width>64</width><height>32</height></size>"),
                    "annotations are for 64x32 pixels, it has 32x32",
                )
            }
        )

    def test_half_a_size(self):
        self.rejected(
            {
                0: (voc(size="<size><width>32</width></size>"), "its size is 32 x 0: both sides are needed"),
                1: (voc(size="<size><width>0</width><height>32</height></size>"), "its size is 0 x 32"),
            }
        )

    def test_a_size_that_is_no_number(self):
        self.rejected(
            {
                0: (voc(size="<size><width>32px</width><height>32</height></size>"), 'size "32px"'),
                1: (voc(size="<size><width>-32</width><height>32</height></size>"), 'size "-32"'),
                2: (voc(size="<size><width/><height>32</height></size>"), 'size ""'),
                3: (voc(size="<size><width>32.0</width><height>32</height></size>"), 'size "32.0"'),
            }
        )

    def test_what_comes_twice(self):
        self.rejected(
            {
                0: (voc(thing(more="<name>cat</name>")), "has two name"),
                1: (voc(more="<size><width>16</width></size>"), "it has two size/width"),
                2: (voc(thing(more="<difficult>0</difficult><difficult>1</difficult>")), "has two difficult"),
                3: (voc(thing(more="<bndbox><xmin>1</xmin></bndbox>")), "has two xmin"),
                4: (voc(more="<filename>4.png</filename><filename>5.png</filename>"), "it has two filename"),
            }
        )

    def test_sides_that_are_no_numbers(self):
        self.rejected(
            {
                i: (voc(thing(sides=(value, 4, 12, 18))), f'xmin is "{value}": a finite number')
                for i, value in enumerate(("3,5", "nan", "three", "0x3", "1e99"))
            }
        )

    def test_sides_that_are_not_there(self):
        self.rejected(
            {
                0: (voc(thing(sides=(3, 4, 12))), "has no ymax in its bndbox"),
                1: (voc("<object><name>dog</name></object>"), "has no xmin"),
                2: (voc(thing().replace("xmin", "xMin")), "has no xmin"),
                3: (voc(thing(sides=("", 4, 12, 18))), 'xmin is ""'),
            }
        )

    def test_an_object_without_name(self):
        self.rejected(
            {
                0: (voc(thing("")), "object 1 has no name"),
                1: (voc(thing("  ")), "object 1 has no name"),
                2: (voc(thing().replace("<name>dog</name>", "")), "object 1 has no name"),
                3: (voc(thing().replace("name>", "label>")), "object 1 has no name"),
            }
        )

    def test_difficult_in_other_words(self):
        self.rejected(
            {
                i: (
                    voc(thing(more=f"<difficult>{value}</difficult>")),
                    f'difficult is "{value}": 0 or 1 is needed',
                )
                for i, value in enumerate(("yes", "2", "", "-1", "Unspecified"))
            }
        )

    def test_objects_in_other_places(self):
        self.rejected(
            {
                0: (voc(f"<objects>{thing()}</objects>"), "/annotation/object is the place"),
                1: (voc(thing().replace("object>", "Object>")), "/annotation/object is the place"),
                2: (
                    voc("<item><bndbox><xmin>1</xmin></bndbox></item>"),
                    "/annotation/object/bndbox is the place",
                ),
                3: (f"<annotations>{voc()}</annotations>", "its root is"),
                4: (voc(thing() + f"<object>{thing()}</object>"), "/annotation/object is the place"),
            }
        )

    def test_elements_inside_of_values(self):
        self.rejected(
            {
                0: (voc(thing("do<b/>g")), 'has <"b"> in it'),
                1: (voc(thing(sides=("1<x/>2", 4, 12, 18))), 'has <"x"> in it'),
            }
        )

    def test_entities(self):
        self.rejected(
            {
                0: ('<!DOCTYPE a [<!ENTITY x "dog">]>' + voc(thing("&x;")), "it has a DOCTYPE"),
                1: (voc(thing("&x;")), "no XML"),
                2: ('<!DOCTYPE annotation SYSTEM "http://127.0.0.1/x.dtd">' + voc(), "it has a DOCTYPE"),
            }
        )

    def test_files_that_are_no_xml(self):
        self.rejected(
            {
                0: ("", "no XML"),
                1: (voc()[:-5], "no XML"),
                2: (voc() + voc(), "no XML"),
                3: ("2 0.5 0.5 0.5 0.5\n", "no XML"),
                4: (voc().encode() + b"\0", "no XML"),
            }
        )

    def test_names_that_are_no_utf8(self):
        self.rejected({0: (voc(thing("d\udcffg")).encode("utf-8", "surrogateescape"), "no XML")})

    def test_a_name_that_is_not_among_the_classes(self):
        write(self.path / "names", b"cat\ndog\n")
        self.rejected(
            {
                0: (voc(thing("Dog")), 'object 1 is a "Dog"'),
                1: (voc(thing() + thing("cow")), 'object 2 is a "cow"'),
            },
            "--box-classes",
            self.path / "names",
        )

    # --- errors ---

    def test_on_error_fail_stops_there(self):
        self.label(3, voc(thing("")))
        self.expect_refused(
            self.arguments("--on-error", "fail"),
            '"3.png"',
            '"3.xml"',
            "object 1 has no name",
            "on-error fail",
        )

    def test_on_error_fail_stops_at_another_size(self):
        self.label(3, voc(size="<size><width>16</width><height>32</height></size>"))
        self.expect_refused(self.arguments("--on-error", "fail"), "3.png", "annotations are for 16x32")

    def test_missing_fail_stops_at_each(self):
        self.label(2, voc(thing(sides=(12, 4, 3, 18))))
        self.expect_refused(self.arguments("--missing", "fail"), '"2.xml" object 1')
        self.label(2, voc())
        self.label(9, voc())
        self.expect_refused(self.arguments("--missing", "fail"), '"9.xml" belongs to no input')

    def test_two_kinds_of_annotations(self):
        self.expect_refused(self.arguments("--yolo", self.folder), "exclude each other")

    def test_a_folder_that_is_none(self):
        self.expect_refused([self.images, "--voc", self.folder / "0.xml"], "not a folder")


if __name__ == "__main__":
    main()
