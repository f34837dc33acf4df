#!/usr/bin/env python3
"""shardbench with data sets on servers: rows of a server beside those of folders,
and the loader with a cache."""

import json
import os

from remote_servers import HostileServer
from shardify_support import SHARDBENCH, TestCase, environment, main, make_photos, run, shardctl, shardify


class Bench(TestCase):
    def setUp(self):
        super().setUp()
        if "without libcurl" in shardctl("info", "http://127.0.0.1:1/x").err:
            self.skipTest("this build has no libcurl")
        self.images = make_photos(self.path / "photos", 24)
        self.sets = self.path / "sets"
        for name, codec in (("plain", "none"), ("packed", "packed")):
            self.assert_code(
                shardify(
                    self.images,
                    self.sets / name,
                    "--preset",
                    "train",
                    "--samples-per-shard",
                    "8",
                    "--codec",
                    codec,
                    "--quiet",
                ),
                0,
            )
        self.server = HostileServer(self.sets)
        self.addCleanup(self.server.__exit__)

    def bench(self, *arguments):
        self.json = self.path / "report.json"
        result = run(
            [
                SHARDBENCH,
                *map(str, arguments),
                "--device",
                "host",
                "--quick",
                "--seconds",
                "0.1",
                "--json",
                str(self.json),
            ],
            timeout=300,
            env=environment(SHARD_HTTP_PATIENCE="4", TMPDIR=str(self.path)),
        )
        return result, json.loads(self.json.read_text()) if self.json.exists() else None

    def test_tiers_have_the_rows_of_a_server(self):
        result, report = self.bench(
            "tiers",
            self.sets / "plain",
            self.sets / "packed",
            "--images",
            self.images,
            "--tier",
            f"ram={self.path}",
            "--tier",
            f"web={self.server.url}",
            "--emulate",
            "http",
            "--repeat",
            "1",
            "--batch-size",
            "8",
        )
        self.assert_code(result, 0)
        rows = [row for row in report["rows"] if row["tier"] == "web"]
        self.assertEqual(
            [(row["dataset"], row["cache"]) for row in rows],
            [("u8", "cold"), ("u8", "warm"), ("u8 packed", "cold"), ("u8 packed", "warm")],
        )
        for row in rows:
            self.assertGreater(row["samples_per_second"], 0)
        self.assertGreater(rows[0]["limit_samples_per_second"], 0)
        self.assertIn("the server: ranges of 8 MiB", rows[0]["limit_is"])
        self.assertTrue(any(row["emulated"] for row in report["rows"]))
        self.assertIn("into an empty cache", result.out)
        self.assertEqual([name for name in os.listdir(self.path) if name.startswith("shardbench-")], [])

    def test_one_data_set_by_its_own_address_and_what_is_no_copy(self):
        result, report = self.bench(
            "tiers",
            self.sets / "plain",
            "--images",
            self.images,
            "--tier",
            f"web={self.server.url}/plain",
            "--repeat",
            "1",
            "--batch-size",
            "8",
        )
        self.assert_code(result, 0)
        self.assertEqual(len(report["rows"]), 2)
        result, report = self.bench(
            "tiers",
            self.sets / "plain",
            "--images",
            self.images,
            "--tier",
            f"web={self.server.url}/packed",
            "--repeat",
            "1",
        )
        self.assert_code(result, 1)
        self.assertIn("is not a copy of", json.dumps(report["problems"]))
        result, report = self.bench(
            "tiers",
            self.sets / "plain",
            "--images",
            self.images,
            "--tier",
            f"web={self.server.url}/none",
            "--repeat",
            "1",
        )
        self.assert_code(result, 1)
        self.assertIn("tier web was left out", json.dumps(report["problems"]))

    def test_load_with_a_cache(self):
        cache = self.path / "cache"
        size = sum(file.stat().st_size for file in (self.sets / "plain").glob("*.safetensors"))
        arguments = [
            "load",
            f"{self.server.url}/plain",
            "--order",
            "windowed",
            "--window-shards",
            "1",
            "--batch-size",
            "8",
            "--first-epochs",
            "2",
            "--repeat",
            "1",
            "--cache",
            cache,
        ]
        result, report = self.bench(*arguments)
        self.assert_code(result, 0)
        self.assertEqual(len(report["first_epochs_samples_per_second"]), 2)
        self.assertGreaterEqual(report["fetched_bytes"], size * 0.9)
        self.assertIn("the server: ranges of 8 MiB", report["limit_is"])
        self.assertEqual(len(list(cache.glob("*.safetensors"))), 3)
        _, again = self.bench(*arguments)
        self.assertLess(again["fetched_bytes"], size * 0.1)
        small = self.path / "small"
        self.assert_code(self.bench(*arguments[:-1], small, "--cache-bytes", str(size // 2))[0], 0)
        self.assertEqual(len([name for name in os.listdir(small) if name.endswith(".safetensors")]), 1)


if __name__ == "__main__":
    main()
