#!/usr/bin/env python3
"""Nothing wrong in silence: tables of labels and columns."""

import struct

from silence_support import Silence, info, main, picture, write


class Csv(Silence):
    COUNT = 6

    def setUp(self):
        super().setUp()
        self.images = self.path / "in"
        for i in range(self.COUNT):
            write(self.images / f"{i}.png", picture(i))
        self.samples = {f"{i}.png": i for i in range(self.COUNT)}
        self.table = self.path / "l.csv"

    def given(self, rows, *more, header="path,label\n"):
        """rows: bytes or text; a list: the labels of the images in their order."""
        if isinstance(rows, list):
            rows = header + "".join(f"{i}.png,{row}\n" for i, row in enumerate(rows))
        write(self.table, rows if isinstance(rows, bytes) else rows.encode())
        return [self.images, "--labels", self.table, *more]

    def stored(self, rows, labels, *more, **options):
        return self.expect_stored(
            self.given(rows, *more, **options),
            self.samples,
            {f"{i}.png": label for i, label in enumerate(labels)},
        )

    def refused(self, rows, *words, more=(), **options):
        return self.expect_refused(self.given(rows, *more, **options), "l.csv", *words)

    def cases(self, *cases):
        for number, case in enumerate(cases):
            with self.subTest(case):
                self.out = self.path / f"out{number}"
                yield case

    # --- one oddity in a column of whole numbers ------------------------------------------------------------

    def test_whole_numbers_in_no_order(self):
        self.stored([10, 9, 2, 1, 11, 0], [10, 9, 2, 1, 11, 0])
        self.assertEqual(info(self.out)["classes"], [])

    def test_one_blank_behind_a_comma(self):
        for odd in self.cases(" 2", "2 ", "\t2", "  2\t"):
            self.stored([10, 9, odd, 1, 11, 0], [10, 9, 2, 1, 11, 0])

    def test_a_blank_behind_each_comma(self):
        self.stored([" 10", " 9", " 2", " 1", " 11", " 0"], [10, 9, 2, 1, 11, 0])
        self.assertEqual(info(self.out)["classes"], [])

    def test_one_empty_cell(self):
        for odd in self.cases("", " ", '""', "\t "):
            samples = {key: value for key, value in self.samples.items() if key != "2.png"}
            self.expect_stored(
                self.given([10, 9, odd, 1, 11, 0]),
                samples,
                {"0.png": 10, "1.png": 9, "3.png": 1, "4.png": 11, "5.png": 0},
                {"2.png": "has an empty label in l.csv, line 4"},
            )

    def test_an_empty_cell_among_names_is_no_class(self):
        samples = {key: value for key, value in self.samples.items() if key != "2.png"}
        self.expect_stored(
            self.given(["b", "a", "", "a", "b", "c"]),
            samples,
            {"0.png": 1, "1.png": 0, "3.png": 0, "4.png": 1, "5.png": 2},
            {"2.png": "empty label"},
        )
        self.assertEqual(info(self.out)["classes"], ["a", "b", "c"])

    def test_all_cells_are_empty(self):
        self.expect_refused(self.given([""] * 6), "empty label")

    def test_an_empty_cell_is_no_image_that_the_table_does_not_name(self):
        samples = {key: value for key, value in self.samples.items() if key in ("0.png", "1.png")}
        self.expect_stored(
            self.given("0.png,1\n1.png,2\n2.png,\n", "--unlisted", "skip"),
            samples,
            {"0.png": 1, "1.png": 2},
            {"2.png": "empty label"},
        )

    def test_one_word(self):
        for odd in self.cases(
            "dog",
            "NA",
            "N/A",
            "null",
            "None",
            "-",
            "?",
            "0x10",
            "1_000",
            '"1,000"',
            "1 2",
            "\u22125",
            "1\u00a0",
            "1.2.3",
            "+-1",
            "--1",
            "1e",
            "O",
        ):
            self.refused([10, 9, odd, 1, 11, 0], "line 4", "is not a number, but 5 of the 6 labels are")

    def test_one_number_with_a_fraction(self):
        for odd in self.cases("1.5", "1.0", "1e3", "1.", ".5", "1e400", "-0.0"):
            self.refused([10, 9, odd, 1, 11, 0], "line 4", "is not a whole number, but 5 of the 6 labels are")

    def test_nan_and_inf(self):
        for odd in self.cases("nan", "NaN", "inf", "-inf", "Infinity"):
            self.refused([10, 9, odd, 1, 11, 0], "line 4", "is not a finite number")

    def test_nan_among_names_and_among_numbers(self):
        self.refused(["a", "b", "nan", "c", "d", "e"], "line 4", "is not a finite number")
        self.refused(["0.5", "1.5", "nan", "2.5", ".5", "7.25"], "line 4", "is not a finite number")

    def test_64_bit_ids_stay_whole(self):
        ids = [2**63 - 1, 2**63 - 2, -(2**63), 2**53 + 1, 2**62 + 1, 0]
        self.stored(ids, ids)

    def test_an_id_beyond_64_bits(self):
        for odd in self.cases(2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30):
            self.refused([10, 9, odd, 1, 11, 0], "line 4", "is beyond 64 bits with a sign", "NAME:u64")

    def test_signs_and_leading_zeros(self):
        self.stored(["+10", "-9", "007", "00", "+0", "-0"], [10, -9, 7, 0, 0, 0])

    def test_quoted_numbers(self):
        self.stored(['"10"', '"9"', "2", '" 1"', '"11 "', "0"], [10, 9, 2, 1, 11, 0])

    # --- other columns of labels ----------------------------------------------------------------------------

    def test_names_with_blanks_around_them_are_one_class(self):
        self.stored(["dog", " dog", "cat ", "cat", "\tdog", "cat"], [1, 1, 0, 0, 1, 0])
        self.assertEqual(info(self.out)["classes"], ["cat", "dog"])

    def test_a_few_names_that_are_numbers(self):
        self.stored(["dog", "7", "cat", "owl", "7", "ant"], [3, 0, 2, 4, 0, 1])
        self.assertEqual(info(self.out)["classes"], ["7", "ant", "cat", "dog", "owl"])

    def test_half_numbers_and_half_names(self):
        self.refused([1, "a", 2, "b", 3, "c"], "line 3", '"a" is not a number, but 3 of the 6')

    def test_one_word_among_numbers_with_fractions(self):
        self.refused(["0.5", "1.5", "x", "2.5", ".5", "7.25"], "line 4", '"x" is not a number')

    def test_numbers_with_fractions(self):
        self.stored(
            ["0.5", " 1.5", "2", "-2.5e0", ".5", "7.25"], [(0.5,), (1.5,), (2.0,), (-2.5,), (0.5,), (7.25,)]
        )

    def test_a_number_that_float32_cannot_hold(self):
        for odd, why in self.cases(
            ("16777217", "cannot hold"),
            ("1e39", "not a finite number of float32"),
            ("9007199254740993", "cannot hold"),
        ):
            self.refused(["0.5", "1.5", odd, "2.5", ".5", "7.25"], "line 4", why)

    def test_vectors(self):
        self.stored(
            [f"{i}, {i}.5" for i in range(6)], [(float(i), i + 0.5) for i in range(6)], header="path,a,b\n"
        )

    def test_a_vector_with_an_odd_cell(self):
        for odd, why in self.cases(
            ("x", "not a finite number"),
            ("nan", "not a finite number"),
            ("16777217", "cannot hold"),
            ("1e39", "not a finite number"),
        ):
            self.refused([f"1,{odd if i == 2 else i}" for i in range(6)], "line 4", why, header="path,a,b\n")

    def test_a_vector_with_an_empty_cell(self):
        samples = {key: value for key, value in self.samples.items() if key != "2.png"}
        rows = [f"1,{'' if i == 2 else i}" for i in range(6)]
        self.expect_stored(
            self.given(rows, header="path,a,b\n"),
            samples,
            rejected={"2.png": "has an empty label in l.csv, line 4"},
        )

    def test_a_label_beside_other_columns(self):
        self.refused(
            [f"{i},{i + 10}" for i in range(6)],
            "line 1",
            'names the column "label" and others',
            header="path,label,fold\n",
        )
        self.refused(
            [f"{i},{i + 10}" for i in range(6)],
            "line 1",
            'names the column "label" and others',
            header="path,weight,label\n",
        )

    # --- the file -------------------------------------------------------------------------------------------

    def test_two_columns_of_one_name(self):
        rows = [f"{i},{i}.5,{i + 10}" for i in range(6)]
        for header in self.cases("path,label,v,label\n", "path,v,label, v\n", "path,label,path,v\n"):
            self.refused(rows, "line 1", "two columns are named", more=("--column", "v:f32"), header=header)

    def test_two_columns_of_one_name_without_columns(self):
        self.refused(
            [f"{i},{i}" for i in range(6)], "line 1", 'two columns are named "a"', header="path,a,a\n"
        )

    def test_label_and_labels(self):
        self.refused(
            [f"{i},{9 - i},{i}.5" for i in range(6)],
            "line 1",
            '"label" and "labels"',
            more=("--column", "v:f32"),
            header="path,label,labels,v\n",
        )

    def test_blanks_in_the_line_of_names(self):
        self.expect_stored(
            self.given(
                [f"{i}.5,{10 - i}" for i in range(6)], "--column", "v:f32", header="path , v, label \n"
            ),
            self.samples,
            {f"{i}.png": 10 - i for i in range(6)},
        )
        self.assertEqual(self.column("v"), {f"{i}.png": struct.pack("<f", i + 0.5) for i in range(6)})

    def test_a_byte_order_mark_and_crlf(self):
        rows = "".join(f"{i}.png,{10 - i}\r\n" for i in range(6))
        self.stored(b"\xef\xbb\xbfpath,label\r\n" + rows.encode(), [10 - i for i in range(6)])

    def test_line_ends_of_old_systems(self):
        rows = "".join(f"{i}.png,{10 - i}\r" for i in range(6))
        self.refused("path,label\r" + rows, "line 1", "a carriage return inside a line")

    def test_tabs_and_semicolons(self):
        for mark in self.cases("\t", ";", "|"):
            self.refused(
                "".join(f"{i}.png{mark}{i}\n" for i in range(6)), "line 1", "1 fields, but 2 are expected"
            )

    def test_a_class_with_a_zero_byte(self):
        text = "".join(f"{i}.png,{'cat' if i else chr(0).join('cat')}\n" for i in range(6))
        self.expect_refused(self.given(text.encode()), "l.csv", "line 1", "c\\x00a\\x00t", "zero byte")

    def test_utf_16(self):
        self.expect_refused(
            self.given("".join(f"{i}.png,{i}\n" for i in range(6)).encode("utf-16")), "l.csv", "line"
        )

    def test_blanks_around_quotes(self):
        self.refused(
            ['"a, b"', ' "a, b"', '"c"', '"c"', '"d"', '"d"'], "line 3", "blanks in front of a quoted field"
        )
        self.refused(['"a"', '"b"', '"c" ', '"c"', '"d"', '"d"'], "line 4", "text after a quoted field")

    def test_a_quote_that_does_not_close(self):
        self.refused('0.png,1\n1.png,"2\n2.png,3\n3.png,4\n', "line 2", "no closing quote")

    def test_a_row_with_more_fields_or_fewer(self):
        self.refused("0.png,1\n1.png,2,\n", "line 2", "3 fields")
        self.refused("0.png,1\n1.png\n", "line 2", "1 fields")
        self.refused("path,label\n0.png,1,2\n1.png,2,3\n", "line 2", "but the first line names 2")

    def test_blanks_around_the_path(self):
        self.stored("".join(f" {i}.png ,{10 - i}\n" for i in range(6)), [10 - i for i in range(6)])

    def test_two_rows_that_differ_in_blanks(self):
        self.refused(
            "".join(f"{i}.png,{i}\n" for i in range(6)) + "2.png ,9\n", "line 7", '"2.png" is labelled twice'
        )

    def test_an_image_whose_name_ends_with_a_blank(self):
        write(self.images / "0.png ", picture(9))
        rows = "".join(f"{i}.png,{i}\n" for i in range(6)) + "0.png ,9\n"
        self.expect_stored(
            self.given(rows),
            {**self.samples, "0.png ": 9},
            {**{f"{i}.png": i for i in range(6)}, "0.png ": 9},
        )

    def test_an_image_that_has_the_name_of_the_header(self):
        write(self.images / "path", picture(9))
        self.refused(
            "path,7\n" + "".join(f"{i}.png,{i}\n" for i in range(6)),
            "line 1",
            "is an image, and also begins the line",
        )

    def test_a_header_of_other_words_is_a_row_of_no_image(self):
        self.refused([1, 2, 3, 4, 5, 6], "line 1", 'no such image: "filename"', header="filename,label\n")

    def test_an_image_without_a_row(self):
        samples = {key: value for key, value in self.samples.items() if key != "5.png"}
        self.expect_stored(
            self.given([10, 9, 2, 1, 11]),
            samples,
            {f"{i}.png": label for i, label in enumerate((10, 9, 2, 1, 11))},
            {"5.png": "has no label in l.csv"},
        )

    # --- columns --------------------------------------------------------------------------------------------

    def test_odd_cells_of_columns(self):
        for odd, kind, why in self.cases(
            ("", "i64", "0 numbers: 1 are needed"),
            (
                "1.0",
                "i64",
                '"1.0" is not a whole number of -9223372036854775808 to 9223372036854775807 without a',
            ),
            ("x", "i64", '"x"'),
            ("+-1", "i64", '"+-1"'),
            ("0x10", "i64", '"0x10"'),
            ("1e3", "i64", '"1e3"'),
            ("9223372036854775808", "i64", "is not a whole number of -9223372036854775808"),
            ("-1", "u8", '"-1"'),
            ("-0", "u8", '"-0" is not a whole number of 0 to 255 without a point: the type is u8'),
            ("True", "bool", '"True" is not true, false, 1 or 0'),
            ("256", "u8", '"256"'),
            ("nan", "f32", '"nan"'),
            ("inf", "f64", '"inf"'),
            ("1e39", "f32", '"1e39"'),
            ("65520.5", "f16", '"65520.5"'),
            ("16777217", "f32", "holds only as 16777216"),
            ("2049", "f16", "holds only as 2048"),
            ("257", "bf16", "holds only as"),
            ("9007199254740993", "f64", "holds only as 9007199254740992"),
            ("18446744073709551616", "u64", "is not a whole number of 0 to 18446744073709551615"),
            ("1 2", "i64", "2 numbers: 1 are needed"),
            ("TRUE", "bool", '"TRUE"'),
            ("2", "bool", '"2"'),
            ('"1,5"', "f32", '"1,5"'),
        ):
            self.refused(
                [f"{odd if i == 2 else 1},0" for i in range(6)],
                "line 4",
                '"2.png"',
                '"v"',
                why,
                more=("--column", f"v:{kind}"),
                header="path,v,label\n",
            )

    def test_whole_numbers_that_floating_columns_hold(self):
        for kind, code, values in self.cases(
            ("f32", "f", [16777216, 16777218, -1, 0, 1, 2]),
            ("f64", "d", [2**53, 2**53 + 2, -(2**63), 0, 1, 2]),
        ):
            self.expect_stored(
                self.given(
                    [f" {value} ,0" for value in values], "--column", f"v:{kind}", header="path,v,label\n"
                ),
                self.samples,
            )
            self.assertEqual(
                self.column("v"),
                {f"{i}.png": struct.pack("<" + code, value) for i, value in enumerate(values)},
            )

    def test_u64_ids_in_a_column(self):
        values = [2**64 - 1, 2**63, 0, 1, 2, 2**53 + 1]
        self.expect_stored(
            self.given([f"{value},0" for value in values], "--column", "v:u64", header="path,v,label\n"),
            self.samples,
        )
        self.assertEqual(
            self.column("v"), {f"{i}.png": struct.pack("<Q", value) for i, value in enumerate(values)}
        )

    def test_rows_of_a_ragged_column_that_are_not_whole(self):
        self.refused(
            [f"{'1 2 3' if i == 2 else '1 2'},0" for i in range(6)],
            "line 4",
            "3 numbers: a multiple of 2",
            more=("--column", "v:i64[,2]"),
            header="path,v,label\n",
        )

    def test_text_that_is_not_utf_8(self):
        rows = b"path,v,label\n" + b"".join(
            b"%d.png,%s,0\n" % (i, b"\xff" if i == 2 else b"x") for i in range(6)
        )
        self.refused(rows, "line 4", "not UTF-8", more=("--column", "v:text"))

    def test_a_column_that_the_table_does_not_have(self):
        self.refused(
            [f"{i},0" for i in range(6)],
            'has no column "V"',
            more=("--column", "V:i64"),
            header="path,v,label\n",
        )

    def test_rows_of_images_that_are_left_out_for_want_of_a_mask(self):
        for i in (0, 2, 3, 5):
            write(self.path / "masks" / f"{i}.png", picture(i))
        kept = {f"{i}.png": i for i in (0, 2, 3, 5)}
        self.samples = kept
        more = ("--pair", f"near={self.path / 'masks'}", "--missing", "skip")
        arguments = self.given([10, 11, 12, 13, 1.5, 15], *more)  # that of 4.png is no reason for floats
        self.expect_stored(arguments, kept, {f"{i}.png": 10 + i for i in (0, 2, 3, 5)})
        rows = "path,label\n" + "".join(f"{i}.png,{i}\n" for i in range(6)) + "7.png,7\n"
        self.out = self.path / "unknown"
        self.refused(rows, "line 8", "no such image", more=more)


if __name__ == "__main__":
    main()
