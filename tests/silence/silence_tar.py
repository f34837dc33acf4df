#!/usr/bin/env python3
"""Nothing wrong in silence: tar archives, those of WebDatasets among them."""

import json
import resource
import struct
import tarfile

from silence_support import SANITIZED, Silence, info, main, picture, write

END = bytes(1024)


def member(name, data=b"", **more):
    """Header and blocks of a member."""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    for key, value in more.items():
        setattr(entry, key, value)
    return entry.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


def archive(*members):
    """The bytes of an archive of (name, data)."""
    return b"".join(member(name, data) for name, data in members) + END


def sparse_header(name, pieces, size):
    """Of old GNU tar: four pieces in the header, the others in blocks behind it."""
    places = [f"{at:011o}\0{length:011o}\0".encode() for at, length in pieces]
    head = bytearray(member(name, type=b"S")[:512])
    head[124:136] = f"{size:011o}\0".encode()
    head[257:265] = b"ustar  \0"
    head[345:512] = bytes(167)
    for i, place in enumerate(places[:4]):
        head[386 + 24 * i : 410 + 24 * i] = place
    head[482] = len(places) > 4
    head[148:156] = b" " * 8
    head[148:156] = f"{sum(head):06o}\0 ".encode()
    blocks = b""
    for first in range(4, len(places), 21):
        block = bytearray(b"".join(places[first : first + 21]).ljust(512, b"\0"))
        block[504] = first + 21 < len(places)
        blocks += block
    return bytes(head) + blocks


class Tar(Silence):
    def tar(self, name, *members):
        return write(self.path / name, archive(*members))

    def numbers(self, name):
        return {key: struct.unpack(f"<{len(row) // 8}q", row) for key, row in self.column(name).items()}

    # --- one archive ----------------------------------------------------------------------------------------

    def test_images_without_folders(self):
        self.expect_stored(
            [self.tar("a.tar", ("1.png", picture(1)), ("2.png", picture(2)))],
            {"1.png": 1, "2.png": 2},
            {"1.png": 0, "2.png": 0},
        )

    def test_folders_are_classes_whatever_the_order(self):
        self.expect_stored(
            [self.tar("a.tar", ("b/1.png", picture(1)), ("a/1.png", picture(2)), ("b/0.png", picture(3)))],
            {"b/1.png": 1, "a/1.png": 2, "b/0.png": 3},
            {"a/1.png": 0, "b/0.png": 1, "b/1.png": 1},
        )

    def test_members_that_may_be_labels_under_another_name_are_said(self):
        for end in ("label", "json", "cls2"):
            self.out = self.path / end
            members = [
                (f"{i}.{what}", data) for i in range(2) for what, data in (("png", picture(i)), (end, b"1"))
            ]
            said = self.convert(self.tar(f"{end}.tar", *members))
            self.assert_code(said, 0)
            self.assertIn("every label is 0", said.err)
            self.assertIn(f'first "0.{end}"', said.err)
        for members in (
            [("1.png", picture(1)), ("README.txt", b"x")],
            [("1.png", picture(1)), ("1.json", b"{}"), ("1.cls", b"1")],
            [("a/1.png", picture(1)), ("a/1.json", b"{}")],
        ):
            self.out = self.path / f"quiet-{len(members)}-{members[0][0][0]}"
            self.assertNotIn("warning", self.convert(self.tar("quiet.tar", *members)).err)

    def test_of_two_images_of_one_name_the_last(self):
        self.expect_stored(
            [self.tar("a.tar", ("1.png", picture(1)), ("2.png", picture(2)), ("1.png", picture(3)))],
            {"1.png": 3, "2.png": 2},
            rejected={"1.png@512": "another member of this name comes later"},
        )

    def test_of_three_images_of_one_name_the_last(self):
        second = 1024 + (len(picture(0)) + 511) // 512 * 512
        self.expect_stored(
            [self.tar("a.tar", *(("1.png", picture(i)) for i in range(3)))],
            {"1.png": 2},
            rejected={"1.png@512": "comes later", f"1.png@{second}": "comes later"},
        )

    def test_of_two_samples_of_one_name_the_last_image_and_the_last_label(self):
        members = [
            ("1.png", picture(1)),
            ("1.cls", b"1"),
            ("2.png", picture(2)),
            ("2.cls", b"2"),
            ("1.png", picture(3)),
            ("1.cls", b"3"),
        ]
        self.expect_stored(
            [self.tar("a.tar", *members)],
            {"1.png": 3, "2.png": 2},
            {"1.png": 3, "2.png": 2},
            {"1.png@512": "comes later"},
        )

    def test_the_order_of_image_and_label_does_not_matter(self):
        self.expect_stored(
            [
                self.tar(
                    "a.tar", ("1.cls", b"7"), ("2.cls", b"5"), ("2.png", picture(2)), ("1.png", picture(1))
                )
            ],
            {"1.png": 1, "2.png": 2},
            {"1.png": 7, "2.png": 5},
        )

    def test_tar_r_changes_only_the_label(self):
        self.expect_stored(
            [self.tar("a.tar", ("1.png", picture(1)), ("1.cls", b"1"), ("1.cls", b"9"))],
            {"1.png": 1},
            {"1.png": 9},
        )

    def test_a_later_label_that_is_no_number_is_not_passed_over(self):
        self.expect_stored(
            [
                self.tar(
                    "a.tar",
                    ("1.png", picture(1)),
                    ("1.cls", b"1"),
                    ("1.cls", b"x"),
                    ("2.png", picture(2)),
                    ("2.cls", b"2"),
                )
            ],
            {"2.png": 2},
            {"2.png": 2},
            {"1.cls": '"x" is not a whole number', "1.png": "its .cls member is not a whole number"},
        )

    def test_two_samples_of_one_name_with_other_image_formats(self):
        # Two images of one name up to the dot, two labels: which is whose cannot be told.
        members = [
            ("1.png", picture(1)),
            ("1.cls", b"1"),
            ("1.b.png", picture(2)),
            ("1.cls", b"2"),
            ("3.png", picture(3)),
            ("3.cls", b"3"),
        ]
        self.expect_stored(
            [self.tar("a.tar", *members)],
            {"3.png": 3},
            {"3.png": 3},
            {"1.png": "cannot be told", "1.b.png": "cannot be told"},
        )

    def test_names_with_dots_do_not_share_one_label(self):
        members = [
            (f"img.{i}.{kind}", picture(i) if kind == "png" else b"%d" % i)
            for i in range(3)
            for kind in ("png", "cls")
        ]
        self.expect_refused([self.tar("a.tar", *members)], "cannot be told", "img.0.cls")

    def test_every_label_is_a_word(self):
        self.expect_refused(
            [
                self.tar(
                    "a.tar",
                    ("1.png", picture(1)),
                    ("1.cls", b"dog"),
                    ("2.png", picture(2)),
                    ("2.cls", b"cat"),
                )
            ],
            "whole number",
        )

    def test_odd_numbers(self):
        odd = [
            b"",
            b" ",
            b"1.0",
            b"0x10",
            b"1 2",
            b"+",
            b"9223372036854775808",
            b"5" + b" " * 80 + b"6",
            b"\xef\xbb\xbf1",
            b"nan",
        ]
        members = [
            (f"{i}.{kind}", picture(i) if kind == "png" else text)
            for i, text in enumerate(odd)
            for kind in ("png", "cls")
        ]
        good = [("g.png", picture(99)), ("g.cls", b" -9223372036854775808\r\n")]
        rejected = {f"{i}.{kind}": "whole number" for i in range(len(odd)) for kind in ("png", "cls")}
        self.expect_stored([self.tar("a.tar", *members, *good)], {"g.png": 99}, {"g.png": -(2**63)}, rejected)

    def test_a_label_that_is_a_link_is_not_an_older_label(self):
        data = (
            member("1.png", picture(1))
            + member("1.cls", b"1")
            + member("1.cls", type=tarfile.LNKTYPE, linkname="2.cls")
        )
        data += member("2.png", picture(2)) + member("2.cls", b"2") + END
        self.expect_stored(
            [write(self.path / "a.tar", data)],
            {"2.png": 2},
            {"2.png": 2},
            {"1.cls": "it is a link", "1.png": "cannot be read"},
        )

    # --- several archives -----------------------------------------------------------------------------------

    def test_keys_that_begin_anew_in_each_archive(self):
        for a in range(2):
            self.tar(
                f"w-{a}.tar",
                *(
                    (f"{i}.{kind}", picture(10 * a + i) if kind == "png" else b"%d" % (10 * a + i))
                    for i in range(3)
                    for kind in ("png", "cls")
                ),
            )
        numbers = {f"w-{a}/{i}.png": 10 * a + i for a in range(2) for i in range(3)}
        self.expect_stored([self.path / "w-{0..1}.tar"], numbers, numbers)

    def test_one_equal_name_gives_all_keys_the_name_of_their_archive(self):
        self.tar("a.tar", ("1.png", picture(1)), ("2.png", picture(2)))
        self.tar("b.tar", ("2.png", picture(3)))
        self.expect_stored([self.path / "{b,a}.tar"], {"a/1.png": 1, "a/2.png": 2, "b/2.png": 3})

    def test_without_equal_names_keys_stay(self):
        self.tar("a.tar", ("1.png", picture(1)), ("1.cls", b"4"))
        self.tar("b.tar", ("2.png", picture(2)), ("2.cls", b"5"))
        self.expect_stored([self.path / "{b,a}.tar"], {"1.png": 1, "2.png": 2}, {"1.png": 4, "2.png": 5})

    def test_equal_names_in_class_folders_keep_their_classes(self):
        self.tar("a.tar", ("dog/1.png", picture(1)), ("cat/1.png", picture(2)))
        self.tar("b.tar", ("dog/1.png", picture(3)))
        self.expect_stored(
            [self.path / "{a,b}.tar"],
            {"a/dog/1.png": 1, "a/cat/1.png": 2, "b/dog/1.png": 3},
            {"a/dog/1.png": 1, "a/cat/1.png": 0, "b/dog/1.png": 1},
        )
        self.assertEqual(info(self.out)["classes"], ["cat", "dog"])

    def test_archives_of_one_name_in_two_folders(self):
        one = self.tar("x/w.tar", ("1.png", picture(1)), ("1.cls", b"1"))
        self.tar("y/w.tar", ("1.png", picture(2)), ("1.cls", b"2"))
        keys = [f"{self.path}/{folder}/w/1.png"[1:] for folder in "xy"]
        self.expect_stored(
            [f"{one.parent.parent}/{{x,y}}/w.tar"], dict(zip(keys, (1, 2))), dict(zip(keys, (1, 2)))
        )

    def test_an_archive_that_is_named_twice(self):
        self.tar("a.tar", ("1.png", picture(1)))
        self.expect_refused([self.path / "{a,a}.tar"], "named twice", "a.tar")

    def test_other_formats_of_one_name_have_the_labels_of_their_archives(self):
        self.tar("a.tar", ("1.png", picture(1)), ("1.cls", b"1"))
        self.tar("b.tar", ("1.b.png", picture(2)), ("1.cls", b"2"))
        self.expect_stored([self.path / "{a,b}.tar"], {"1.png": 1, "1.b.png": 2}, {"1.png": 1, "1.b.png": 2})

    def test_a_label_in_the_only_other_archive(self):
        self.tar("images.tar", ("1.png", picture(1)), ("2.png", picture(2)))
        self.tar("labels.tar", ("1.cls", b"8"), ("2.cls", b"9"))
        self.expect_stored(
            [self.path / "{images,labels}.tar"], {"1.png": 1, "2.png": 2}, {"1.png": 8, "2.png": 9}
        )

    def test_labels_in_two_other_archives(self):
        self.tar("images.tar", ("1.png", picture(1)), ("2.png", picture(2)))
        self.tar("old.tar", ("1.cls", b"8"), ("2.cls", b"9"))
        self.tar("new.tar", ("1.cls", b"7"))
        self.expect_stored(
            [self.path / "{images,old,new}.tar"], {"2.png": 2}, {"2.png": 9}, {"1.png": "cannot be told"}
        )

    def test_a_label_that_belongs_to_the_image_of_another_archive(self):
        self.tar("a.tar", ("1.png", picture(1)), ("2.png", picture(2)), ("2.cls", b"2"))
        self.tar("b.tar", ("1.png", picture(3)), ("1.cls", b"3"))
        self.expect_stored(
            [self.path / "{a,b}.tar"],
            {"a/2.png": 2, "b/1.png": 3},
            {"a/2.png": 2, "b/1.png": 3},
            {"a/1.png": "has no label"},
        )

    def test_columns_are_those_of_the_archive_of_the_image(self):
        for a in range(2):
            self.tar(
                f"w-{a}.tar",
                ("1.png", picture(a)),
                ("1.json", json.dumps({"v": a}).encode()),
                ("1.t", b"%d" % (10 + a)),
            )
        self.expect_stored(
            [self.path / "w-{0..1}.tar", "--column", "v:i64", "--column", "t:i64"],
            {"w-0/1.png": 0, "w-1/1.png": 1},
        )
        self.assertEqual(
            (self.numbers("v"), self.numbers("t")),
            ({"w-0/1.png": (0,), "w-1/1.png": (1,)}, {"w-0/1.png": (10,), "w-1/1.png": (11,)}),
        )

    def test_a_byte_order_mark_before_a_json_member(self):
        archive = self.tar("a.tar", ("1.png", picture(1)), ("1.json", b'\xef\xbb\xbf{"v": 7}'))
        self.expect_stored([archive, "--column", "v:i64"], {"1.png": 1})
        self.assertEqual(self.numbers("v"), {"1.png": (7,)})

    def test_a_table_names_the_keys_with_their_archives(self):
        for a in range(2):
            self.tar(f"w-{a}.tar", ("1.png", picture(a)))
        table = write(self.path / "l.csv", b"w-1/1.png,5\nw-0/1.png,4\n")
        self.expect_stored(
            [self.path / "w-{0..1}.tar", "--labels", table],
            {"w-0/1.png": 0, "w-1/1.png": 1},
            {"w-0/1.png": 4, "w-1/1.png": 5},
        )
        self.out = self.path / "plain"
        write(table, b"1.png,5\n")
        self.expect_refused(
            [self.path / "w-{0..1}.tar", "--labels", table],
            "l.csv",
            "line 1",
            "no such image",
            "names of their archives",
            "w-0/1.png",
        )

    def test_masks_follow_the_keys(self):
        for a in range(2):
            self.tar(f"w-{a}.tar", ("1.png", picture(a)))
        write(self.path / "masks" / "1.png", picture(1))
        self.expect_refused(
            [self.path / "w-{0..1}.tar", "--mask", self.path / "masks"], "has the name", "w-0/1.png"
        )

    # --- JSON -----------------------------------------------------------------------------------------------

    def column_of(self, document, column="v:i64[]"):
        text = document if isinstance(document, bytes) else document.encode()
        return [
            self.tar(
                "a.tar",
                ("1.png", picture(1)),
                ("1.json", text),
                ("2.png", picture(2)),
                ("2.json", b'{"v": 0}'),
            ),
            "--column",
            column,
        ]

    def test_lists_that_cannot_be_told(self):
        for i, (document, column, why) in enumerate(
            (
                ('{"v":[1,null,2]}', "v:i64[]", "null in a list"),
                ('{"v":[1,[2,null]]}', "v:f32[]", "null in a list"),
                ('{"v":[{"a":1},2]}', "v:i64[]", "an object in a list"),
                ('{"v":["1","2"]}', "v:i64[]", "text in a list"),
                ('{"v":1,"v":2}', "v:i64[]", "is there twice"),
                ('{"v":[1],"x":0,"v":null}', "v:i64[]", "is there twice"),
            )
        ):
            with self.subTest(document):
                self.out = self.path / f"out{i}"
                self.expect_stored(self.column_of(document, column), {"2.png": 2}, rejected={"1.png": why})

    def test_lists_whose_ends_are_inside_of_rows(self):
        for i, document in enumerate(
            ('{"v":[[1,2,3],[4]]}', '{"v":[[1],[2,3],[4]]}', '{"v":[1,[2,3],4]}', '{"v":[[[1,2],[3]],[[4]]]}')
        ):
            with self.subTest(document):
                self.out = self.path / f"out{i}"
                rows = [
                    ("1.png", picture(1)),
                    ("1.json", document.encode()),
                    ("2.png", picture(2)),
                    ("2.json", b'{"v":[[0,1],[2,3]]}'),
                ]
                self.expect_stored(
                    [self.tar("a.tar", *rows), "--column", "v:i64[,2]"],
                    {"2.png": 2},
                    rejected={"1.png": "do not fit the shape"},
                )

    def test_lists_of_any_depth_that_fit(self):
        for i, (document, column) in enumerate(
            (
                ("[[[1],[2]],[[3],[4]]]", "v:i64[4]"),
                ("[[1,2],[3,4]]", "v:i64[2,2]"),
                ("[1,2,3,4]", "v:i64[2,2]"),
                ('"1 2 3 4"', "v:i64[4]"),
            )
        ):
            with self.subTest(document):
                self.out = self.path / f"out{i}"
                self.expect_stored(
                    [
                        self.tar(
                            "a.tar", ("1.png", picture(1)), ("1.json", b'{"v": %s}' % document.encode())
                        ),
                        "--column",
                        column,
                    ],
                    {"1.png": 1},
                )
                self.assertEqual(self.numbers("v"), {"1.png": (1, 2, 3, 4)})

    def test_a_list_for_text(self):
        document = b'{"v": ["a", "b"]}'
        self.expect_stored(
            [
                self.tar(
                    "a.tar", ("1.png", picture(1)), ("1.json", document), ("2.png", picture(2)), ("2.v", b"x")
                ),
                "--column",
                "v:text",
            ],
            {"2.png": 2},
            rejected={"1.png": "is a list"},
        )

    def test_values_that_a_column_cannot_hold(self):
        for i, (document, column, why) in enumerate(
            (
                ('{"v":[true,1]}', "v:i64[]", '"true" is not a whole number'),
                ('{"v":9223372036854775808}', "v:i64", "9223372036854775808"),
                ('{"v":-1}', "v:u8", '"-1"'),
                ('{"v":256}', "v:u8", '"256"'),
                ('{"v":1.0}', "v:i64", '"1.0"'),
                ('{"v":1e400}', "v:f64", "1e400"),
                ('{"v":9007199254740993}', "v:f64", "holds only as 9007199254740992"),
                ('{"v":16777217}', "v:f32", "holds only as 16777216"),
                ('{"v":"+-1"}', "v:i64", '"+-1"'),
                ('{"v":"nan"}', "v:f32", '"nan"'),
                ('{"v":[]}', "v:i64", "0 numbers"),
                ('{"v":2}', "v:bool", '"2"'),
            )
        ):
            with self.subTest(document):
                self.out = self.path / f"out{i}"
                archive_of = self.tar("a.tar", ("1.png", picture(1)), ("1.json", document.encode()))
                self.expect_refused([archive_of, "--column", column], '"1.png"', '"v"', why)

    def test_null_and_objects_are_no_values(self):
        for i, document in enumerate(('{"v":null}', '{"v":{"v":1}}', '{"w":1}', '[{"v":1}]', "1", "")):
            with self.subTest(document):
                self.out = self.path / f"out{i}"
                self.expect_stored(self.column_of(document), {"2.png": 2}, rejected={"1.png": ".json"})

    # --- damage ---------------------------------------------------------------------------------------------

    def test_cut_inside_of_the_padding(self):
        data = archive(("1.png", picture(1)), ("2.png", picture(2)))
        padding = len(data) - 1024 - (-len(picture(2)) % 512)
        for i, cut in enumerate((padding, padding + 1, len(data) - 1025)):
            self.out = self.path / f"out{i}"
            path = write(self.path / "a.tar", data[:cut])
            self.expect_stored(
                [path], {"1.png": 1, "2.png": 2}, rejected={str(path): "it was cut inside the block"}
            )

    def test_cut_behind_a_member(self):
        data = archive(("1.png", picture(1)), ("2.png", picture(2)))
        path = write(self.path / "a.tar", data[:-1024])
        self.expect_stored([path], {"1.png": 1, "2.png": 2}, rejected={str(path): "it has no end"})
        self.out = self.path / "half"
        write(path, data[: (len(data) - 1024) // 2])
        self.expect_stored([path], {"1.png": 1}, rejected={str(path): "it has no end"})

    def test_two_archives_in_one_file(self):
        path = write(self.path / "a.tar", archive(("1.png", picture(1))) + archive(("2.png", picture(2))))
        self.expect_stored([path], {"1.png": 1}, rejected={str(path): "data behind its end"})

    def test_zeros_behind_the_end_are_no_data(self):
        data = archive(("1.png", picture(1)))
        for record in 10_240, 1 << 20:
            path = write(self.path / "a.tar", data + bytes(-len(data) % record))
            self.expect_stored([path], {"1.png": 1})
            self.out = self.path / f"behind{record}"
        self.expect_stored([write(self.path / "a.tar", archive(("1.png", picture(1)))[:-512])], {"1.png": 1})

    def test_zeros_where_members_may_have_been(self):
        data = archive(("1.png", picture(1)), ("2.png", picture(2)))
        first = len(archive(("1.png", picture(1)))) - 1024
        path = write(self.path / "a.tar", data[:first] + bytes(200_000))
        self.expect_stored([path], {"1.png": 1}, rejected={str(path): "zeros behind its end"})

    def test_one_byte_far_behind_the_end(self):
        path = write(self.path / "a.tar", archive(("1.png", picture(1))) + bytes(200_000) + b"x")
        self.expect_stored([path], {"1.png": 1}, rejected={str(path): "data behind its end"})

    def test_joined_archives_inside_of_an_archive(self):
        inner = archive(("1.png", picture(1))) + archive(("2.png", picture(2)))
        self.expect_stored(
            [self.tar("a.tar", ("x.tar", inner), ("y.tar", archive(("1.png", picture(3)))))],
            {"x/1.png": 1, "y/1.png": 3},
            {"x/1.png": 0, "y/1.png": 1},
            {"x.tar": "data behind its end"},
        )

    def test_a_sparse_file_of_more_than_four_pieces_does_not_hide_the_rest(self):
        for i, count in enumerate((1, 4, 5, 25, 26, 60)):
            self.out = self.path / f"out{i}"
            pieces = [(1024 * k, 512) for k in range(count)]
            data = (
                member("1.png", picture(1)) + sparse_header("s.png", pieces, 512 * count) + b"x" * 512 * count
            )
            self.expect_stored(
                [write(self.path / "a.tar", data + archive(("2.png", picture(2))))],
                {"1.png": 1, "2.png": 2},
                rejected={"s.png": "it is a sparse file"},
            )

    def test_the_size_of_a_sparse_file_reaches_beyond_the_end(self):
        path = write(
            self.path / "a.tar",
            member("1.png", picture(1)) + sparse_header("s.png", [(0, 512)] * 9, 512 * 99) + END,
        )
        self.expect_stored(
            [path], {"1.png": 1}, rejected={str(path): "it was cut", "s.png": "beyond the end"}
        )

    def test_one_name_for_all_members(self):
        data = member("pax", b"16 path=one.png\n", type=b"g") + archive(
            ("1.png", picture(1)), ("2.png", picture(2))
        )
        self.expect_refused([write(self.path / "a.tar", data)], "gives all members behind it one name")

    def test_links_and_names_that_lead_out(self):
        data = (
            member("1.png", picture(1))
            + member("2.png", type=tarfile.SYMTYPE, linkname="1.png")
            + member("../3.png", picture(3))
            + member("/4.png", picture(4))
            + END
        )
        self.expect_stored(
            [write(self.path / "a.tar", data)],
            {"1.png": 1},
            rejected={"2.png": "it is a link", "../3.png": '".."', "/4.png": "absolute"},
        )

    def test_an_archive_inside_that_is_there_twice(self):
        old, new = archive(("1.png", picture(1)), ("2.png", picture(2))), archive(("1.png", picture(3)))
        self.expect_stored(
            [self.tar("a.tar", ("x.tar", old), ("y.tar", archive(("1.png", picture(4)))), ("x.tar", new))],
            {"x/1.png": 3, "y/1.png": 4},
            {"x/1.png": 0, "y/1.png": 1},
            {"x.tar": "comes later"},
        )

    def test_a_header_whose_member_was_lost(self):
        path = write(
            self.path / "a.tar",
            member("1.png", picture(1)) + member("pax", b"16 path=two.png\n", type=b"x") + END,
        )
        self.expect_stored([path], {"1.png": 1}, rejected={str(path): "there is no member"})

    def test_a_picture_that_is_empty(self):
        self.expect_stored(
            [self.tar("a.tar", ("1.png", picture(1)), ("2.png", b""))], {"1.png": 1}, rejected={"2.png": ""}
        )

    # Address space is bounded, where no sanitizer needs all of it.
    MEMORY = (
        {}
        if SANITIZED
        else {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))}
    )

    # --- patterns -------------------------------------------------------------------------------------------

    def test_a_pattern_of_too_many_names_is_refused_before_they_are_made(self):
        for pattern in (
            "{0..999999}{0..999999}",
            "{0..999999}{a,b}",
            "{0..9999}{0..9999}{0..9999}{0..9999}{0..9999}",
            "{0..18446744073709551615}",
        ):
            with self.subTest(pattern):
                self.expect_refused([self.path / f"{pattern}.tar"], "at most 1000000", **self.MEMORY)

    def test_names_with_leading_zeros(self):
        for i in ("08", "09", "10"):
            self.tar(f"w{i}.tar", (f"{i}.png", picture(int(i))))
        self.expect_stored([self.path / "w{08..10}.tar"], {"08.png": 8, "09.png": 9, "10.png": 10})

    def test_the_last_of_two_images_is_damaged(self):
        self.expect_stored(
            [self.tar("a.tar", ("1.png", picture(1)), ("1.png", picture(1)[:60]), ("2.png", picture(2)))],
            {"2.png": 2},
            rejected={"1.png": "", "1.png@512": "comes later"},
        )

    def test_the_last_of_two_images_is_a_link(self):
        # The first one is not what the archive has under this name.
        data = (
            member("1.png", picture(1))
            + member("2.png", picture(2))
            + member("1.png", type=tarfile.SYMTYPE, linkname="2.png")
            + END
        )
        self.expect_stored(
            [write(self.path / "a.tar", data)],
            {"2.png": 2},
            rejected={"1.png": "it is a link", "1.png@512": "comes later"},
        )

    def test_the_first_of_two_images_is_a_link(self):
        data = member("1.png", type=tarfile.SYMTYPE, linkname="2.png") + member("1.png", picture(1)) + END
        self.expect_stored(
            [write(self.path / "a.tar", data)], {"1.png": 1}, rejected={"1.png@512": "it is a link"}
        )

    def test_one_name_is_a_link_in_another_archive(self):
        write(
            self.path / "a.tar",
            member("1.png", type=tarfile.SYMTYPE, linkname="2.png") + member("2.png", picture(2)) + END,
        )
        self.tar("b.tar", ("1.png", picture(1)[:60]), ("3.png", picture(3)))
        self.expect_stored(
            [self.path / "{a,b}.tar"],
            {"a/2.png": 2, "b/3.png": 3},
            rejected={"a/1.png": "it is a link", "b/1.png": ""},
        )


if __name__ == "__main__":
    main()
