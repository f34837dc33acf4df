#!/usr/bin/env python3
"""Data sets over lines with latency, a bounded rate, bits that flip (tcp_link.cpp) and packets that are lost
(ip_link.cpp): what arrives is right, and not much later than it could.

Without arguments as a test, in a short form. `remote_lines.py --samples 1000000 --flip-every 10000000` is the
long one: an epoch of that many samples.
"""

import json
import sys
import threading
import time

from remote_data_sets import RemoteCase
from remote_servers import Hosts, Link, Nginx
from shardify_support import BIN, environment, main, run, shardify

EPOCHS, LINK, HOSTS = BIN / "remote_epochs", BIN / "tcp_link", BIN / "ip_link"
SIDE = 8


def make_array(file, samples):
    """`samples` images of noise as an array file, without numpy."""
    import random

    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({samples}, {SIDE}, {SIDE}, 3), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    dice = random.Random(3)
    with open(file, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        for begin in range(0, samples, 10_000):
            out.write(dice.randbytes(min(10_000, samples - begin) * SIDE * SIDE * 3))


class Lines(RemoteCase):
    SAMPLES, FLIP_EVERY = 60_000, 200_000

    def setUp(self):
        super().setUp()
        if not Nginx.available():
            self.skipTest("nginx is not installed")
        make_array(self.path / "x.npy", self.SAMPLES)
        self.data = self.path / "sets" / "noise"
        self.assert_code(
            shardify(
                self.path / "x.npy",
                self.data,
                "--squash",
                f"{SIDE}x{SIDE}",
                "--dtype",
                "u8",
                "--layout",
                "nhwc",
                "--quiet",
                "--samples-per-shard",
                str(self.SAMPLES // 40),
                timeout=1500,
            ),
            0,
        )
        self.server = Nginx(self.path / "sets", self.path / "nginx")
        self.addCleanup(self.server.__exit__)

    def load(self, path, cache, order="windowed", enter=(), **variables):
        command = [*enter, str(EPOCHS), str(path), order, "1", str(cache), "0"]
        return run(command, timeout=3000, env=environment(**{"SHARD_HTTP_PATIENCE": "20", **variables}))

    def link(self, **options):
        link = Link(LINK, self.server.url, **options)
        self.addCleanup(link.end)
        return link

    def test_flipped_bits_are_never_delivered(self):
        here = json.loads(self.assert_code(self.load(self.data, "-"), 0).out)["digest"]
        right = flips = 0
        for turn in range(3):
            link = self.link(flip_every=self.FLIP_EVERY, seed=turn + 1)
            result = self.load(f"{link.url}/noise", self.path / f"cache-{turn}")
            count, flipped = link.end()
            flips += flipped
            print(
                f"{self.SAMPLES} samples, {count} bytes, {flipped} of them changed: "
                f"exit {result.code} {result.err.strip()}",
                file=sys.stderr,
            )
            # A bit of an answer's head can be one that makes it an answer about another object:
            # that is an error, and not wrong data.
            if result.code == 0:
                self.assertEqual(json.loads(result.out)["digest"], here)
                right += 1
            else:
                self.assertIn(link.url, result.err)
        self.assertGreater(flips, 20)
        self.assertGreaterEqual(right, 1, "flipped bits should be fetched again")

    def test_an_epoch_over_a_line_takes_little_more_than_the_line_needs(self):
        size = sum(file.stat().st_size for file in self.data.glob("*.safetensors"))
        here = json.loads(self.assert_code(self.load(self.data, "-"), 0).out)["digest"]

        def seconds(url, cache):
            begin = time.monotonic()
            result = self.assert_code(self.load(f"{url}/noise", self.path / cache), 0)
            self.assertEqual(json.loads(result.out)["digest"], here)
            return time.monotonic() - begin

        work = seconds(self.server.url, "near")  # what this machine needs, which may be slow
        # About a hundred requests, one after the other, would wait for 10 seconds.
        self.assertLess(seconds(self.link(latency_ms=50, mb_per_s=5).url, "far"), 2 * (size / 5e6 + work) + 3)

    def hosts(self, **options):
        """With nginx on `far`. Its address."""
        if why := Hosts.available(HOSTS):
            self.skipTest(f"no hosts of our own: {why}")
        hosts = Hosts(HOSTS, **options)
        self.addCleanup(hosts.end)
        server = Nginx(self.path / "sets", self.path / "far", there=hosts.far)
        self.addCleanup(server.__exit__)
        return hosts, server.url

    def test_lost_packets_are_sent_again_and_nothing_else_happens(self):
        here = json.loads(self.assert_code(self.load(self.data, "-"), 0).out)["digest"]
        for number, loss in enumerate((0.01, 0.05)):
            hosts, url = self.hosts(latency_ms=10, mbit_per_s=1000, loss=loss, congestion="reno")
            result = self.assert_code(
                self.load(f"{url}/noise", self.path / f"lost-{number}", enter=hosts.near[1]), 0
            )
            found = json.loads(result.out)
            self.assertEqual(found["digest"], here)
            # A connection begins with single packets: if four in a row are lost, it is tried anew.
            self.assertLessEqual(found["retries"], 1)
            sent, lost = hosts.end()
            self.assertGreater(lost, loss * sent / 2)

    def test_a_line_that_is_down_for_a_while_delays_and_one_that_stays_down_is_an_error(self):
        here = json.loads(self.assert_code(self.load(self.data, "-"), 0).out)["digest"]
        hosts, url = self.hosts(latency_ms=5, mbit_per_s=20)  # the epoch takes 5 s
        down, up = (
            threading.Timer(1, hosts.change, (), {"loss": 1}),
            threading.Timer(4, hosts.change, (), {"loss": 0}),
        )
        for timer in (down, up):
            self.addCleanup(timer.cancel)
            timer.start()
        begin = time.monotonic()
        result = self.assert_code(self.load(f"{url}/noise", self.path / "down", enter=hosts.near[1]), 0)
        self.assertEqual(json.loads(result.out)["digest"], here)
        self.assertGreater(time.monotonic() - begin, 4)
        hosts.change(loss=1)
        result = self.load(f"{url}/noise", self.path / "never", enter=hosts.near[1], SHARD_HTTP_PATIENCE="3")
        self.assertEqual(result.code, 1)
        self.assertIn(f"{url}/noise/dataset.json", result.err)


if __name__ == "__main__":
    for name, option in ("SAMPLES", "--samples"), ("FLIP_EVERY", "--flip-every"):
        if option in sys.argv:
            at = sys.argv.index(option)
            setattr(Lines, name, int(sys.argv[at + 1]))
            del sys.argv[at : at + 2]
    main()
