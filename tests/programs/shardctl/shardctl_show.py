#!/usr/bin/env python3
"""shardctl show in a terminal: what it asks, what it draws by each way, and how it leaves the terminal."""

import base64
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

from shardctl_targets import pixels_of
from shardify_support import (
    SHARDCTL,
    SMALL,
    TestCase,
    environment,
    main,
    make_images,
    shardctl,
    shardify,
    write,
)

QUERY = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[16t\x1b[c"
XTERM = b"\x1b[6;20;10t\x1b[?64;1;2;6;9c"
KITTY = b"\x1b_Gi=31;OK\x1b\\\x1b[6;20;10t\x1b[?62;c"
FOOT = b"\x1b[6;20;10t\x1b[?62;4;22c"


class Screen:
    """A terminal that shardctl runs in. answer: what it says to the query; None: nothing."""

    def __init__(self, arguments, answer=XTERM, columns=80, rows=24, **variables):
        env = environment(**{"TERM": "xterm-256color", "COLORTERM": "truecolor", **variables})
        pid, self.fd = pty.fork()
        if pid == 0:
            time.sleep(0.05)  # until the size is set
            os.execve(SHARDCTL, [SHARDCTL, *map(str, arguments)], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        before = termios.tcgetattr(self.fd)
        self.out, self.asked, begin = b"", False, time.monotonic()
        while time.monotonic() < begin + 60:
            if not select.select([self.fd], [], [], 1)[0]:
                continue
            try:
                more = os.read(self.fd, 65536)
            except OSError:  # the other side has closed
                break
            if not more:
                break
            self.out += more
            if not self.asked and QUERY in self.out:
                self.asked = True
                if answer is not None:
                    os.write(self.fd, answer)
        self.seconds = time.monotonic() - begin
        self.unchanged = termios.tcgetattr(self.fd) == before
        self.code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(self.fd)
        self.out = self.out.replace(QUERY, b"").replace(b"\r\n", b"\n")
        self.text = re.sub(rb"\x1b\[[0-9;]*m", b"", self.out).decode()


class Terminals(TestCase):
    def setUp(self):
        super().setUp()
        self.assert_code(shardify(make_images(self.path / "photos"), self.out, *SMALL), 0)

    def screen(self, *arguments, code=0, **how):
        screen = Screen(["show", self.out, *arguments], **how)
        self.assertEqual(screen.code, code, screen.out[-500:])
        self.assertTrue(screen.unchanged, "the terminal is left as it was")
        return screen

    def test_a_plain_terminal_gets_half_characters_with_captions(self):
        screen = self.screen()
        self.assertTrue(screen.asked)
        lines = screen.text.splitlines()
        # 12 samples of 32x32, three per row, each 25x25 pixels in 13 lines.
        self.assertEqual(len(lines), 4 * 14)
        self.assertEqual(lines[0].count("\u2580"), 75)
        captions = [line.split() for line in lines if line.startswith("#")]
        self.assertEqual(sum(captions, [])[:4], ["#0", "ant", "#1", "ant"])
        self.assertIn(b"\x1b[38;2;", screen.out)
        self.assertLess(max(map(len, lines)), 81)

    def test_kitty_gets_the_samples_as_png(self):
        screen = self.screen("5", "7", answer=KITTY)
        codes = re.findall(rb"\x1b_G([^;]*);([^\x1b]*)\x1b\\", screen.out)
        pictures, text = [], b""
        for control, chunk in codes:
            text += chunk
            if b"m=0" in control:
                pictures.append(text)
                text = b""
        self.assertEqual(len(pictures), 2)
        self.assert_code(
            shardctl("show", self.out, "5", "7", "--columns", "2", "-o", self.path / "sheet.png"), 0
        )
        _, _, sheet = pixels_of(self.path / "sheet.png")
        for i, packed in enumerate(pictures):
            width, height, pixels = pixels_of(write(self.path / "tile.png", base64.b64decode(packed)))
            # Tiles of half the line: 390 pixels, or 21 lines of 20; 12 times 32 is the most that fits.
            self.assertEqual((width, height), (384, 384))
            left = 4 + i * (48 + 4)
            for x in range(0, 384, 7):
                for y in range(0, 384, 5):
                    self.assertEqual(pixels[x, y], sheet[left + x // 12, 4 + y // 12])
        self.assertIn("#5 bee", screen.text)

    def test_a_terminal_with_sixels_gets_them(self):
        screen = self.screen("--count", "1", answer=FOOT)
        self.assertEqual(len(re.findall(rb'\x1bP0;1;0q"1;1;416;416#.*?\x1b\\', screen.out, re.DOTALL)), 1)

    def test_a_terminal_that_does_not_answer_is_waited_for_a_second(self):
        screen = self.screen("0", answer=None)
        self.assertTrue(screen.asked)
        self.assertIn("\u2580", screen.text)
        self.assertLess(screen.seconds, 20)

    def test_what_is_asked_for_is_drawn_without_a_question(self):
        screen = self.screen("0", "--graphics", "blocks", COLORTERM="")
        self.assertFalse(screen.asked)
        self.assertIn(b"\x1b[38;5;", screen.out)
        result = self.assert_code(shardctl("show", self.out, "0", "--graphics", "sixel"), 0)
        self.assertIn("\x1bP0;1;0q", result.out)

    def test_a_pipe_and_a_dumb_terminal_are_told_to_name_a_file(self):
        result = self.assert_code(shardctl("show", self.out), 2)
        for piece in ("not a terminal", "--output FILE.png", "--graphics"):
            self.assertIn(piece, result.err)
        self.assertIn("not a terminal", self.screen(code=2, TERM="dumb").text)

    def test_a_file_and_a_way_of_drawing_exclude_each_other(self):
        sheet = self.path / "sheet.png"
        result = self.assert_code(shardctl("show", self.out, "-o", sheet, "--graphics", "kitty"), 2)
        self.assertIn("--graphics", result.err)
        self.assertFalse(sheet.exists())

    def test_a_damaged_sample_is_left_out_and_named(self):
        shard = sorted(self.out.glob("*.safetensors"))[0]
        data = bytearray(shard.read_bytes())
        data[-5] ^= 1  # of the last sample's pixels
        shard.write_bytes(data)
        screen = self.screen("0..4", code=1)
        self.assertIn("#2 ant", screen.text)
        self.assertNotIn("#3 ant", screen.text)
        self.assertIn("they are left out", screen.text)


if __name__ == "__main__":
    main()
