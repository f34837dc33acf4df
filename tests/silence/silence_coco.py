#!/usr/bin/env python3
"""Nothing wrong in silence: annotations in the format of COCO."""

import copy
import json

from silence_support import SIDE, info, main, picture, state, write
from targets_support import Targets, float_tiff


class Coco(Targets):
    """Six pictures of 32x32; each has the box 2, 3, 12, 18 of category 7 ("dog")
    unless the test says otherwise."""

    def setUp(self):
        super().setUp()
        self.images = self.path / "in"
        for i in range(6):
            write(self.images / f"{i}.png", picture(i))
        self.file = self.path / "coco.json"
        self.coco = {
            "images": [
                {"id": 10 + i, "file_name": f"{i}.png", "width": SIDE, "height": SIDE} for i in range(6)
            ],
            "categories": [{"id": 7, "name": "dog"}, {"id": 3, "name": "cat"}],
            "annotations": [
                {
                    "id": 1 + i,
                    "image_id": 10 + i,
                    "category_id": 7,
                    "bbox": [2, 3, 10, 15],
                    "area": 150,
                    "iscrowd": 0,
                }
                for i in range(6)
            ],
        }
        self.right = {f"{i}.png": [([2, 3, 12, 18], 1, 150, 0)] for i in range(6)}

    def arguments(self, *more):
        self.file.write_text(self.coco if isinstance(self.coco, str) else json.dumps(self.coco))
        return [self.images, "--coco", self.file, *more]

    def stored(self, *more, told=(), **options):
        self.expect_objects(
            self.arguments(*more), {f"{i}.png": i for i in range(6)}, self.right, told=told, **options
        )

    def refused(self, *words, more=()):
        self.expect_refused(self.arguments(*more), "coco.json", *words)
        self.assertEqual(state(self.out), "absent")

    def first(self, **members):
        """Sets members of the first annotation."""
        self.coco["annotations"][0].update(members)

    def without(self, member, kind="annotations", entry=0):
        del self.coco[kind][entry][member]

    # --- what is right, in other words ---

    def test_a_plain_file(self):
        self.stored()
        self.assertEqual(json.loads(info(self.out)["pipeline"]["categories"]), ["cat", "dog"])

    def test_a_byte_order_mark(self):
        self.coco = "\ufeff" + json.dumps(self.coco)
        self.stored()

    def test_ids_that_are_whole_floats(self):
        for annotation in self.coco["annotations"]:
            annotation.update(
                id=float(annotation["id"]),
                image_id=float(annotation["image_id"]),
                category_id=7.0,
                iscrowd=0.0,
            )
        self.first(iscrowd=1.0)
        self.right["0.png"] = [([2, 3, 12, 18], 1, 150, 1)]
        self.coco["images"][2].update(width=32.0, height=3.2e1)
        self.stored()

    def test_iscrowd_as_true_and_false(self):
        self.first(iscrowd=True)
        self.coco["annotations"][1]["iscrowd"] = False
        self.right["0.png"] = [([2, 3, 12, 18], 1, 150, 1)]
        self.stored()

    def test_no_area_and_no_iscrowd(self):
        self.without("area")
        self.without("iscrowd")
        self.stored()

    def test_segmentations_of_any_form_are_passed_over(self):
        for i, value in enumerate(
            (
                [],
                None,
                [[]],
                {"size": [1, 1], "counts": [5, -3]},
                {"size": "x", "counts": "\u0000`"},
                [[1, 2, [3, {"bbox": [0, 0, 1, 1]}]]],
            )
        ):
            self.coco["annotations"][i]["segmentation"] = value
        self.stored()

    def test_entries_in_any_order(self):
        for name in ("images", "annotations", "categories"):
            self.coco[name].reverse()
        self.coco = dict(reversed(self.coco.items()))
        self.stored()

    def test_unknown_members_with_the_names_of_others(self):
        self.coco["info"] = {"annotations": None, "images": 5, "bbox": "x", "categories": [1]}
        self.coco["licenses"] = [{"id": "x", "name": None}]
        self.coco["images"][0].update(bbox="x", category_id=None, caption=5)
        self.first(attributes={"bbox": "none", "iscrowd": "yes"}, name=None, width="x")
        self.stored()

    def test_two_categories_of_one_name_stay_two(self):
        self.coco["categories"][1]["name"] = "dog"
        self.stored()
        self.assertEqual(json.loads(info(self.out)["pipeline"]["categories"]), ["dog", "dog"])

    def test_a_box_that_reaches_beyond_the_image_is_cut_and_told(self):
        self.first(bbox=[20, 20, 30, 30], area=900)
        self.right["0.png"] = [([20, 20, 32, 32], 1, 900, 0)]
        self.stored(
            told=[
                (
                    "1 boxes that reach beyond their image, cut: annotation 1 has a bbox of 30 x 30 pixels "
                    "at 20, 20 in an image of 32 x 32"
                )
            ]
        )

    def test_a_box_outside_of_the_image_is_told(self):
        self.first(bbox=[100, 5, 10, 10])
        self.right["0.png"] = []
        self.stored(
            told=["1 boxes that reach beyond", "1 objects outside of the crop, left out: annotation 1"]
        )

    def test_boxes_without_area_are_told(self):
        self.first(bbox=[5, 5, -4, 10])
        self.coco["annotations"][1]["bbox"] = [5, 5, 0, 10]
        self.coco["annotations"][2]["bbox"] = [1e20, 5, 4, 10]
        self.coco["annotations"][3]["area"] = -3
        self.right.update({"0.png": [], "1.png": [], "2.png": [], "3.png": []})
        self.stored(told=["4 boxes without area, left out: first annotation 1 has a bbox of -4 x 10"])

    def test_an_annotation_without_box_is_told(self):
        self.without("bbox")
        self.right["0.png"] = []
        self.stored(told=["1 boxes without area, left out: annotation 1 has no bbox"])

    def test_annotations_of_unknown_images_and_categories_are_told(self):
        self.first(category_id=99)
        self.coco["annotations"][1]["image_id"] = 999
        self.right.update({"0.png": [], "1.png": []})
        self.stored(
            told=[
                "1 of unknown categories, left out: annotation 1 is of category 99",
                "1 annotations without their image: annotation 2 is of image 999",
                '1 images without: "1.png"',
            ]
        )

    def test_categories_whose_ids_begin_at_0(self):
        self.coco["categories"] = [{"id": 0, "name": "none"}, {"id": 7, "name": "dog"}]
        self.stored()

    def test_captions_that_are_empty_keep_their_lines(self):
        self.coco["annotations"] += [
            {"id": 90 + i, "image_id": 10, "caption": text} for i, text in enumerate(("", "a\nb", "", "c"))
        ]
        self.stored()
        self.assertEqual(self.ragged("captions")["0.png"], b"\na b\n\nc")

    def test_images_beside_folders_are_stored_and_told(self):
        write(self.images / "more" / "6.png", picture(6))
        self.coco["images"].append({"id": 16, "file_name": "more/6.png", "width": SIDE, "height": SIDE})
        self.coco["annotations"].append(dict(self.coco["annotations"][0], id=7, image_id=16))
        self.right["more/6.png"] = [([2, 3, 12, 18], 1, 150, 0)]
        self.expect_objects(
            self.arguments(),
            {**{f"{i}.png": i for i in range(6)}, "more/6.png": 6},
            self.right,
            labels=dict.fromkeys(self.right, 0),
            told=['classes: none, every label is 0: 6 images beside the folders of others, first "0.png"'],
        )

    def test_images_in_folders_alone_have_classes(self):
        for i in range(6):
            write(self.images / "ab"[i % 2] / f"{i}.png", picture(i))
            (self.images / f"{i}.png").unlink()
        names = {f"{'ab'[i % 2]}/{i}.png": i for i in range(6)}
        self.expect_objects(
            self.arguments(),
            names,
            {name: self.right[name[2:]] for name in names},
            labels={name: i % 2 for name, i in names.items()},
        )

    def test_floats_of_a_tiff_file(self):
        for i in range(6):
            write(self.images / f"{i}.tif", float_tiff(i))
            (self.images / f"{i}.png").unlink()
            self.coco["images"][i]["file_name"] = f"{i}.tif"
        self.expect_boxes(self.arguments(), {f"{i}.tif": self.right[f"{i}.png"] for i in range(6)})

    def test_many_bands_of_a_tiff_file(self):
        for i in range(6):
            write(self.images / f"{i}.tif", float_tiff(i, bands=5))
            (self.images / f"{i}.png").unlink()
            self.coco["images"][i]["file_name"] = f"{i}.tif"
        self.expect_boxes(self.arguments(), {f"{i}.tif": self.right[f"{i}.png"] for i in range(6)})
        self.tearDown()
        self.setUp()
        for i in range(6):
            write(self.images / f"{i}.tif", float_tiff(i, width=20))
            (self.images / f"{i}.png").unlink()
            self.coco["images"][i]["file_name"] = f"{i}.tif"
        result = self.convert(*self.arguments())
        self.assertEqual(result.code, 2, result)
        self.assertIn(
            "annotations are for 32x32 pixels, it has 20x32", (self.out / "rejects.csv").read_text()
        )

    # --- refused, with the place ---

    def test_a_list_that_is_null(self):
        for name in ("images", "annotations", "categories"):
            self.coco, kept = dict(self.coco, **{name: None}), self.coco
            self.refused("its images, annotations and categories must be lists")
            self.coco = kept

    def test_a_list_that_is_a_number_or_an_object(self):
        for value in (5, "x", True, {"1": {}}, -1.5):
            self.coco, kept = dict(self.coco, annotations=value), self.coco
            self.refused("must be lists")
            self.coco = kept

    def test_an_entry_that_is_null(self):
        for value in (None, 5, "x", [], True):
            self.coco["annotations"].insert(1, value)
            self.refused("an entry of its images, annotations or categories is", "it must be an object")
            del self.coco["annotations"][1]

    def test_iscrowd_in_words(self):
        for value, shown in (
            ("yes", '"yes"'),
            ("1", '"1"'),
            (None, "null"),
            (2, "2"),
            (-1, "-1"),
            (0.5, "0.5"),
            ([0], "a list"),
            ({}, "an object"),
        ):
            self.first(iscrowd=value)
            self.refused("annotation 1: iscrowd is " + shown, "it must be 0 or 1")

    def test_a_category_that_is_no_whole_number(self):
        for value, shown in (
            ("7", '"7"'),
            (None, "null"),
            (7.5, "7.5"),
            (True, "true"),
            (2**63, str(2**63)),
            ([7], "a list"),
        ):
            self.first(category_id=value)
            self.refused("annotation 1: category_id is " + shown)

    def test_an_object_without_category(self):
        self.coco["categories"].append({"id": 0, "name": "zero"})
        self.without("category_id")
        self.refused("annotation 1 has no whole number as category_id")

    def test_an_image_id_that_is_no_whole_number(self):
        for value, shown in (
            ("10", '"10"'),
            (None, "null"),
            (10.5, "10.5"),
            (1e300, "1e+300"),
            (False, "false"),
        ):
            self.first(image_id=value)
            self.refused("annotation 1: image_id is " + shown)
        self.without("image_id")
        self.refused("annotation 1 has no whole number as image_id")

    def test_a_box_that_is_no_list_of_four_numbers(self):
        for value, shown in (
            (None, "is null"),
            ("2,3,10,15", 'is "2,3,10,15"'),
            (5, "is 5"),
            ({"x": 1}, "is an object"),
            ([2, 3, 10], "a bbox of 3 numbers"),
            ([], "a bbox of 0 numbers"),
            ([2, 3, 10, 15, 1], "a bbox of 5 numbers"),
            (["2", "3", "10", "15"], 'has "2" in it'),
            ([2, 3, 10, 15, None], "has null in it"),
            ([2, 3, True, 15], "has true in it"),
            ([[2, 3, 10, 15]], "has a list in it"),
            ([2, 3, 10, {"w": 15}], "has an object in it"),
        ):
            self.first(bbox=value)
            self.refused("annotation 1", "bbox", shown)

    def test_numbers_that_are_none(self):
        for text, shown in (
            ("NaN", "not valid JSON"),
            ("Infinity", "not valid JSON"),
            ("1e999", "1e999 is not a number"),
            ("1,5", "a bbox of 5 numbers"),
            ("0x10", "not valid JSON"),
            ("+5", "not valid JSON"),
        ):
            self.coco, kept = (
                json.dumps(self.coco).replace("[2, 3, 10, 15]", f"[2, 3, 10, {text}]", 1),
                self.coco,
            )
            self.refused(shown)
            self.coco = kept

    def test_an_area_that_is_no_number(self):
        for value, shown in (
            ("150", '"150"'),
            (None, "null"),
            ([150], "a list"),
            (True, "true"),
            (1e300, "1e+300"),
        ):
            self.first(area=value)
            self.refused("annotation 1: area is " + shown)

    def test_a_member_that_comes_twice(self):
        text = json.dumps(self.coco)
        for member, more in (
            ("bbox", '"bbox": [1, 1, 2, 2]'),
            ("category_id", '"category_id": 3'),
            ("image_id", '"image_id": 11'),
            ("iscrowd", '"iscrowd": 1'),
        ):
            self.coco = text.replace('"area": 150', more + ', "area": 150', 1)
            self.refused(f"annotation 1 has {member} twice")
        self.coco = text.replace('"width": 32', '"width": 32, "width": 16', 1)
        self.refused("image 10 has width twice")

    def test_ids_that_come_twice(self):
        for name, what in (
            ("images", "images"),
            ("annotations", "annotations"),
            ("categories", "categories"),
        ):
            kept = copy.deepcopy(self.coco)
            self.coco[name][1]["id"] = self.coco[name][0]["id"]
            self.refused(f"two {what} have the id {self.coco[name][0]['id']}")
            self.coco = kept

    def test_two_images_of_one_file(self):
        self.coco["images"][1]["file_name"] = "0.png"
        self.refused('two images have the file_name "0.png"')

    def test_names_that_are_no_text(self):
        for value in (5, None, ["0.png"]):
            self.coco["images"][0]["file_name"] = value
            self.refused("image 10: file_name is")
        self.coco["images"][0]["file_name"] = "0.png"
        for value in (5, None, {}):
            self.coco["categories"][0]["name"] = value
            self.refused("category 7: name is")
        self.coco["categories"][0]["name"] = ""
        self.refused("category 7 has no name")
        self.without("name", "categories")
        self.refused("category 7 has no name")

    def test_a_size_that_is_no_whole_number(self):
        for value, shown in (
            ("32", 'width is "32"'),
            (None, "width is null"),
            (0, "has a width of 0"),
            (-32, "has a width of -32"),
            (32.5, "width is 32.5"),
        ):
            self.coco["images"][0]["width"] = value
            self.refused("image 10", shown)
        self.without("width", "images")
        self.refused("image 10 has no width and height")

    def test_keypoints_that_are_no_numbers(self):
        for annotation in self.coco["annotations"]:
            annotation["keypoints"] = [4, 5, 2]
        for value, shown in (
            ([4, 5], "keypoints of 2 numbers"),
            (None, "keypoints is null"),
            (["4", 5, 2], 'has "4" in it'),
            ([4, 5, None], "has null in it"),
            ([1e300, 5, 2], "has 1e+300 in it"),
            ([4, 5, 3], "a visibility of 3"),
            ([4, 5, 0.5], "a visibility of 0.5"),
            ("4 5 2", "keypoints is"),
        ):
            self.first(keypoints=value)
            self.refused("annotation 1", shown)
        self.first(keypoints=[4, 5, 2, 4, 5, 2])
        self.refused("annotation 2 has 1 keypoints, those before it 2")

    def test_a_caption_that_is_no_text(self):
        for value in (5, None, ["a"]):
            self.first(caption=value)
            self.refused("annotation 1: caption is")

    def test_an_entry_without_id_is_named_by_its_place(self):
        self.without("id")
        self.first(iscrowd="no")
        self.refused('annotations[0]: iscrowd is "no"')

    def test_names_of_categories_that_no_header_holds(self):
        self.coco["categories"] += [{"id": 100 + i, "name": f"{i:01000}"} for i in range(1100)]
        self.expect_refused(self.arguments(), "has at most 1048576 bytes of JSON", "pipeline.categories")
        self.assertEqual(state(self.out), "absent")
        # Just below the bound, the same command goes on where it was.
        self.coco["categories"] = self.coco["categories"][:1000]
        self.coco["categories"] += [{"id": 5000 + i, "name": f'"{i}\\'} for i in range(2000)]
        self.stored()
        self.assertIn("already complete", self.assert_code(self.convert(*self.arguments()), 0).out)

    def test_sizes_of_another_image(self):
        self.coco["images"][0].update(width=16)
        self.right.pop("0.png")
        self.expect_objects(
            self.arguments(),
            {f"{i}.png": i for i in range(1, 6)},
            self.right,
            rejected={"0.png": "its annotations are for 16x32 pixels, it has 32x32"},
        )

    def test_on_error_fail_stops_at_what_is_known_at_the_start(self):
        (self.images / "7.png").symlink_to("nowhere")
        self.expect_refused(self.arguments("--on-error", "fail"), '"7.png"', "on-error fail")

    def test_on_error_fail_stops_at_another_size(self):
        self.coco["images"][0].update(width=16)
        self.expect_refused(self.arguments("--on-error", "fail"), "0.png", "annotations are for 16x32")

    def test_annotations_that_are_all_of_other_images(self):
        for annotation in self.coco["annotations"]:
            annotation["image_id"] += 900
        why = "none of its 6 annotations is of an input: annotation 1 is of "
        self.refused(why + "image 910, which the file does not have", "image_id")
        for i in range(6):
            self.coco["images"].append({"id": 910 + i, "file_name": f"z{i}.png", "width": 32, "height": 32})
        self.refused(why + '"z0.png", which is not among the inputs')

    def test_objects_that_are_all_of_unknown_categories(self):
        why = "none of its objects is of one of its {} categories: annotation 1 is of category {}, which"
        self.coco["annotations"].append({"id": 50, "image_id": 10, "caption": "a dog"})
        categories = self.coco.pop("categories")
        self.refused(why.format(0, 7))
        self.coco["categories"] = categories
        for annotation in self.coco["annotations"]:
            annotation["category_id"] = 8
        self.refused(why.format(2, 8))

    def test_captions_need_no_categories(self):
        del self.coco["categories"]
        self.coco["annotations"] = [{"id": 50, "image_id": 10, "caption": "a dog"}]
        self.assert_code(self.convert(*self.arguments()), 0)
        self.assertEqual(self.ragged("captions")["0.png"], b"a dog")

    def test_missing_fail_stops_at_each(self):
        for change, word in (
            ({"category_id": 99}, "category 99"),
            ({"image_id": 999}, "image 999"),
            ({"bbox": [1, 1, 0, 5]}, "a bbox of 0 x 5"),
        ):
            kept = copy.deepcopy(self.coco)
            self.first(**change)
            self.refused("annotation 1", word, more=["--missing", "fail"])
            self.coco = kept


if __name__ == "__main__":
    main()
