#!/usr/bin/env python3
"""shardctl copy to a folder: what arrives is what the folder or server has,
and goes on where it was stopped."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from loopback import make_certificate
from remote_copy import LARGE, CopyCase, files_of
from remote_servers import HostileServer, Nginx
from remote_store import HostileStore, etag_of
from shardify_support import SANITIZED, SHARDCTL, environment, main, run, shardctl


class Download(CopyCase):
    def setUp(self):
        super().setUp()
        self.make(each=20)
        self.back = self.path / "back"

    def serve(self, behave=None):
        server = HostileServer(self.data.parent, behave)
        self.addCleanup(server.__exit__)
        server.address = f"{server.url}/a%20b+%C3%BC&d"
        return server

    def check(self):
        self.assertEqual(files_of(self.back), files_of(self.data))

    def test_from_a_folder_and_a_server(self):
        self.assert_code(self.copy(self.data, self.back), 0)
        self.check()
        self.assertTrue(self.summary(self.data, self.back)["was_complete"])
        shutil.rmtree(self.back)
        self.assertIn(
            "note: which parts `shardctl split` made",
            self.assert_code(self.copy(self.serve().address, self.back), 0).err,
        )
        self.check()

    def test_the_same_again_fetches_no_shard(self):
        server = self.serve()
        self.assert_code(self.copy(server.address, self.back), 0)
        before = len(server.requests)
        self.assertTrue(self.summary(server.address, self.back)["was_complete"])
        self.assertTrue(all(not path.endswith("safetensors") for path, _, _ in server.requests[before:]))
        (self.back / "shard-00003.safetensors").unlink()
        self.assertEqual(self.summary(server.address, self.back)["copied_shards"], 1)
        self.check()

    def test_a_table_that_claims_more_than_there_can_be_takes_no_memory(self):
        def limit():
            return resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

        for claim in 1 << 60, 1 << 40, (1 << 63) - 1:
            server = self.serve(
                lambda path, *_, claim=claim: f"claim:{claim}" if path.endswith("inputs.csv") else None
            )
            command = [SHARDCTL, "copy", server.address, str(self.path / f"back-{claim}")]
            result = run(
                command,
                env=environment(SHARD_HTTP_PATIENCE="30"),
                **({} if SANITIZED else {"preexec_fn": limit}),
            )
            self.assert_code(result, 2)
            self.assertIn("inputs.csv", result.err)
            self.assertIn("at most", result.err)

    def test_kills(self):
        chance = random.Random(3)
        for source in self.data, self.serve().address:
            for _ in range(20):
                process = self.start(source, self.back)
                time.sleep(chance.uniform(0, 0.12))
                process.send_signal(signal.SIGKILL)
                process.communicate()
            self.assert_code(self.copy(source, self.back), 0)
            self.check()
            shutil.rmtree(self.back)

    def test_a_part_keeps_what_is_proven(self):
        self.back.mkdir()
        shard = self.data / "shard-00002.safetensors"
        data = bytearray(shard.read_bytes())
        data[-3000:] = b"\0" * 3000  # of the last sample only
        (self.back / f".{shard.name}.part").write_bytes(data)
        whole = self.summary(self.data, self.path / "whole")
        done = self.summary(self.data, self.back)
        self.assertLess(done["moved_bytes"], whole["moved_bytes"] - 3 * 3072)
        self.check()

    def test_damage_on_the_way(self):
        server = self.serve(
            lambda path, begin, end, count: (
                "flip" if count % 3 == 1 and path.endswith("safetensors") else None
            )
        )
        self.assert_code(self.copy(server.address, self.back), 0)
        self.check()

    def test_damage_that_stays(self):
        server = self.serve(
            lambda path, begin, end, count: (
                "flip" if path.endswith("00001.safetensors") and count > 1 else None
            )
        )
        self.assert_code(self.copy(server.address, self.back), 1)
        self.assertNotIn("dataset.json", os.listdir(self.back))
        self.assertNotIn("shard-00001.safetensors", os.listdir(self.back))

    def test_an_object_that_changes(self):
        shutil.rmtree(self.data)
        self.make(LARGE)
        server = self.serve(lambda path, begin, end, count: "etag" if begin > 8 << 20 else None)
        self.assertIn("ETag", self.assert_code(self.copy(server.address, self.back), 1).err)
        self.assertNotIn("dataset.json", os.listdir(self.back))

    def test_a_damaged_source_folder(self):
        shard = self.data / "shard-00001.safetensors"
        data = bytearray(shard.read_bytes())
        data[-7] ^= 1
        shard.write_bytes(data)
        self.assertIn("do not match their digests", self.assert_code(self.copy(self.data, self.back), 1).err)
        self.assertNotIn("dataset.json", os.listdir(self.back))

    def test_folders_that_hold_something(self):
        other = self.make(["--resize", "16", "--crop", "16", "--quiet"], folder=self.path / "other")
        here = files_of(other)
        self.assertIn("holds another data set", self.assert_code(self.copy(self.data, other), 2).err)
        self.assertEqual(files_of(other), here)
        self.back.mkdir()
        (self.back / "notes.txt").write_text("mine")
        self.assertIn("notes.txt", self.assert_code(self.copy(self.data, self.back), 2).err)
        self.assertEqual(os.listdir(self.back), ["notes.txt"])

    def test_inside_of_itself(self):
        here = files_of(self.data)
        self.assertIn(
            "is inside the data set", self.assert_code(self.copy(self.data, self.data / "x"), 2).err
        )
        self.assertIn("is the data set", self.assert_code(self.copy(self.data, self.data), 2).err)
        self.assertEqual(files_of(self.data), here)

    def test_two_copies_at_once(self):
        server = self.serve()
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _: self.copy(server.address, self.back), range(4)))
        self.assertIn(0, [result.code for result in results])
        for result in results:
            self.assertTrue(result.code == 0 or "is at work there" in result.err, result)
        self.assert_code(self.copy(server.address, self.back), 0)
        self.check()

    def test_a_full_disk(self):
        folder = self.path / "small"
        folder.mkdir()
        size = sum(file.stat().st_size for file in self.data.iterdir())
        if (
            os.geteuid() != 0
            or subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={size // 2}", "none", str(folder)], capture_output=True
            ).returncode
        ):
            self.skipTest("a small file system cannot be mounted here")
        try:
            self.assertIn("bytes free", self.assert_code(self.copy(self.data, folder / "x"), 2).err)
            self.assertNotIn("dataset.json", os.listdir(folder / "x"))
        finally:
            subprocess.run(["umount", str(folder)], check=True)

    @unittest.skipUnless(Nginx.available() and shutil.which("openssl"), "nginx or openssl is not installed")
    def test_nginx_with_tls(self):
        ca, certificate, key = make_certificate(self.path / "tls")
        with Nginx(self.data.parent, self.path / "nginx", (certificate, key)) as server:
            self.assert_code(self.copy(f"{server.url}/a%20b+%C3%BC&d", self.back, SHARD_CA_BUNDLE=str(ca)), 0)
        self.check()


class DownloadFromStore(CopyCase):
    def setUp(self):
        super().setUp()
        self.make(each=20)
        self.assert_code(shardctl("split", self.data, "--fractions", "0.8,0.2"), 0)
        self.store = HostileStore()
        self.addCleanup(self.store.__exit__)
        for name, data in files_of(self.data).items():
            self.store.objects["bucket", f"sets/{name}"] = (data, etag_of(data))
        self.back = self.path / "back"

    def fetch(self, *words, code=0):
        return self.assert_code(
            self.copy("s3://bucket/sets", self.back, *words, **self.store.environment), code
        )

    def check_before_shards(self):
        """Everything that may be refused was asked for before the first shard."""
        keys = [key.removeprefix("sets/") for _, key, query, _ in self.store.requests]
        first = min(i for i, key in enumerate(keys) if key.endswith(".safetensors"))
        for name in "", "rejects.csv", "inputs.csv":
            self.assertIn(name, keys[:first])

    def test_selections_come_along(self):
        self.assertNotIn("note", self.fetch().err)
        self.assertEqual(files_of(self.back), files_of(self.data))
        self.check_before_shards()

    def test_a_list_that_is_refused_is_a_note(self):
        for status in 403, 400, 501:
            self.store.behave = lambda method, key, query, count: (
                f"status:{status}:AccessDenied" if "list-type" in query else None
            )
            said = self.fetch().err
            self.assertIn("which parts `shardctl split` made in", said)
            self.assertIn("is not known, so none is copied: ", said)
            self.assertIn(f"HTTP {status}, AccessDenied", said)
            self.assertIn("keys with s3:ListBucket tell", said)
            self.assertEqual(
                files_of(self.back),
                {name: data for name, data in files_of(self.data).items() if not name.endswith(".selection")},
            )
            self.check_before_shards()
            notes = json.loads(self.fetch("--json").out)["notes"]
            self.assertEqual(len(notes), 1)
            shutil.rmtree(self.back)

    def test_a_table_that_is_missing_or_refused_is_a_note(self):
        self.store.remove("sets/inputs.csv")
        self.store.behave = lambda method, key, query, count: (
            "status:403:AccessDenied" if key not in {of for _, of in self.store.objects} and key else None
        )
        said = self.fetch().err
        self.assertIn(
            'has inputs.csv is not known, so it is not copied: access to "s3://bucket/sets/inputs.csv" is '
            "refused",
            said,
        )
        self.assertEqual(
            files_of(self.back),
            {name: data for name, data in files_of(self.data).items() if name != "inputs.csv"},
        )
        shutil.rmtree(self.back)
        self.store.behave = lambda *_: None
        self.assertIn("has no inputs.csv any more", self.fetch().err)  # 404, and dataset.json has its digest

    def test_selections_behind_many_objects(self):
        for i in range(12_000):
            self.store.objects["bucket", f"sets/a{i:05}"] = (b"", '"1"')
        self.store.page = 1000
        self.assertNotIn("note", self.fetch().err)
        self.assertEqual(files_of(self.back), files_of(self.data))

    def test_lists_that_do_not_end(self):
        whole = self.store.list_keys
        for more, words in (
            ("", "and not which"),
            ("<NextContinuationToken>a</NextContinuationToken>", "its pages do not end"),
        ):
            self.store.list_keys = lambda *_: whole("bucket", {}).replace(
                b"</R>", f"<IsTruncated>true</IsTruncated>{more}</R>".encode()
            )
            self.assertIn(words, self.fetch().err)
            shutil.rmtree(self.back)


if __name__ == "__main__":
    main()
