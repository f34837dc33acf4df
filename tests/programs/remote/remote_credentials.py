#!/usr/bin/env python3
"""Keys for S3: where they are looked for and in which order, that they are renewed in mid-run, and that
services that misbehave end in bounded time."""

import datetime
import json
import socket
import threading
import time
from urllib.parse import parse_qs

from loopback import ThreadServer
from remote_servers import HostileServer
from remote_support import ServerCase, timed_run
from shardify_support import SHARDCTL, SMALL, environment, main

SECRET = "topsecret"  # a part of every secret
TOKEN = "webtoken"


class KeyServices(ThreadServer):
    """The metadata service, a container's service and STS on one port.
    Keys are KEY1, KEY2, ... which live for `life` seconds.

    `act`: "" or status:NNN, hang, redirect:URL, and whatever else is the body of the
    answer that has the keys.
    """

    def __init__(self, life=3600, act=""):
        self.life, self.act = life, act
        self.busy = 0  # so many requests are answered by 503
        self.requests = []
        self.given = {}
        self.lock = threading.Lock()
        super().__init__()

    def new_keys(self):
        end = time.time() + self.life
        with self.lock:
            name = f"KEY{len(self.given) + 1}"
            self.given[name] = end
        return name, datetime.datetime.fromtimestamp(end, datetime.timezone.utc).strftime(
            "%Y-%m-%dT%H:%M:%S.%fZ"
        )

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0)).decode()
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self.lock:
            self.requests.append((handler.command, handler.path, headers, body))
            busy = len(self.requests) <= self.busy
        status, text = (503, "") if busy else self.text(handler.command, handler.path, headers, body)
        if self.act == "hang":
            time.sleep(30)
            return self.cut(handler)
        if self.act.startswith("redirect:"):
            return self.send(handler, 302, headers={"Location": self.act[9:]})
        if self.act.startswith("status:"):
            status, text = int(self.act[7:]), f"<Code>Busy</Code>{SECRET}"
        self.send(handler, status, text.encode())

    def text(self, command, path, headers, body):
        if path == "/latest/api/token":
            good = command == "PUT" and headers.get("x-aws-ec2-metadata-token-ttl-seconds", "").isdigit()
            return (200, "imds0") if good else (400, "")
        if path.startswith("/latest/meta-data/iam/security-credentials/"):
            if headers.get("x-aws-ec2-metadata-token") != "imds0":
                return 401, ""
            if path.endswith("/"):
                return 200, "my-role\nanother"
            return self.keys() if path.endswith("/my-role") else (404, "")
        if path.startswith("/container"):
            return self.keys() if headers.get("authorization") == "pod0" else (401, "")
        if command == "POST":
            form = {name: value[0] for name, value in parse_qs(body).items()}
            if (
                form.get("Action") != "AssumeRoleWithWebIdentity"
                or form.get("WebIdentityToken") != TOKEN
                or form.get("RoleArn") != "arn:aws:iam::1:role/a b&c"
            ):
                return 403, "<Error><Code>AccessDenied</Code></Error>"
            name, end = self.new_keys()
            return 200, self.other() or (
                f"<R><Credentials><AccessKeyId>{name}</AccessKeyId><SecretAccessKey>{SECRET}{name}</SecretAccessKey>"
                f"<SessionToken>session{name}</SessionToken><Expiration>{end}</Expiration></Credentials></R>"
            )
        return 404, ""

    def other(self):
        return self.act if self.act and not self.act.startswith(("hang", "redirect:", "status:")) else None

    def keys(self):
        name, end = self.new_keys()
        return 200, self.other() or json.dumps(
            {
                "Code": "Success",
                "AccessKeyId": name,
                "SecretAccessKey": SECRET + name,
                "Token": "session" + name,
                "Expiration": end,
            }
        )


class KeyCase(ServerCase):
    def setUp(self):
        super().setUp()
        (self.path / "sets" / "x").mkdir(parents=True)
        self.make_data(self.path / "sets" / "x" / "y", SMALL)
        self.used = []
        self.refuse = lambda key: None
        self.store = HostileServer(self.path / "sets", check=self.check)
        self.addCleanup(self.store.__exit__)
        self.token = self.path / "token"
        self.token.write_text(TOKEN + "\n")

    def check(self, headers):
        """What the store answers: it knows the keys by their names."""
        words = (headers.get("Authorization") or "").split("Credential=")
        key = words[1].split("/")[0] if len(words) == 2 else ""
        self.used.append((key, headers.get("x-amz-security-token")))
        return self.refuse(key) or 200

    def services(self, **how):
        services = KeyServices(**how)
        self.addCleanup(services.__exit__)
        return services

    def verify(self, **variables):
        plain = dict.fromkeys(
            ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL_S3"), ""
        )
        plain.update(HOME=str(self.path), SHARD_HTTP_PATIENCE="6", AWS_ENDPOINT_URL=self.store.url)
        result = timed_run(
            [SHARDCTL, "verify", "s3://x/y"], timeout=100, env=environment(**{**plain, **variables})
        )
        self.assertNotIn(SECRET, result.out + result.err)
        self.assertNotIn(TOKEN, result.out + result.err)
        self.assertNotIn("sessionKEY", result.out + result.err)
        return result

    def failed(self, **variables):
        result = self.verify(**variables)
        self.assertNotEqual(result.code, 0, result)
        return result

    def ok(self, key, **variables):
        self.used.clear()
        self.assertIn("ok: 5 shards", self.assert_code(self.verify(**variables), 0).out)
        self.assertEqual({name for name, _ in self.used}, {key})

    def instance(self, services):
        return {"AWS_EC2_METADATA_SERVICE_ENDPOINT": services.url, "AWS_EC2_METADATA_DISABLED": ""}

    def container(self, services):
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": services.url + "/container?x=1",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": "pod0",
        }

    def identity(self, services):
        return {
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(self.token),
            "AWS_ROLE_ARN": "arn:aws:iam::1:role/a b&c",
            "AWS_ENDPOINT_URL_STS": services.url,
        }

    def every(self, services):
        return (self.instance(services), self.container(services), self.identity(services))


class Sources(KeyCase):
    def test_each_source(self):
        for number, source in enumerate(self.every(services := self.services()), 1):
            self.ok(f"KEY{number}", **source)
            self.assertEqual({session for _, session in self.used}, {f"sessionKEY{number}"})
        self.assertEqual([command for command, *_ in services.requests], ["PUT", "GET", "GET", "GET", "POST"])

    def test_the_order_is_that_of_the_aws_tools(self):
        aws = self.path / ".aws"
        aws.mkdir()
        (aws / "credentials").write_text(
            f"[default]\naws_access_key_id = PROFILE\naws_secret_access_key = {SECRET}\n"
        )
        services = self.services()
        from_environment = {"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": SECRET}
        everything = {**self.instance(services), **self.container(services)}
        self.ok("ENV", **everything, **self.identity(services), **from_environment)
        self.assertEqual(services.requests, [])
        self.ok("KEY1", **everything, **self.identity(services))
        self.assertEqual(services.requests.pop()[0], "POST")
        self.ok("PROFILE", **everything)
        self.assertEqual(services.requests, [])
        (aws / "credentials").unlink()
        self.ok("KEY2", **everything)
        self.assertTrue(services.requests.pop()[1].startswith("/container"))
        self.ok("KEY3", **self.instance(services))

    def test_a_web_identity_of_the_profile(self):
        (self.path / ".aws").mkdir()
        (self.path / ".aws" / "config").write_text(
            f"[profile pod]\nrole_arn = arn:aws:iam::1:role/a b&c\nweb_identity_token_file = {self.token}\n"
        )
        self.ok("KEY1", AWS_PROFILE="pod", AWS_ENDPOINT_URL_STS=self.services().url)

    def test_the_token_of_a_pod_comes_from_its_file(self):
        (self.path / "pod").write_text("pod0\n")
        self.ok(
            "KEY1",
            **{
                **self.container(self.services()),
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(self.path / "pod"),
            },
        )

    def test_profiles_that_other_tools_must_resolve_are_named(self):
        (self.path / ".aws").mkdir()
        for line in (
            "credential_process = /bin/tool",
            "sso_session = me",
            "role_arn = a\nsource_profile = b",
        ):
            (self.path / ".aws" / "config").write_text(f"[profile me]\n{line}\n")
            self.assertIn(
                "aws configure export-credentials", self.assert_code(self.verify(AWS_PROFILE="me"), 2).err
            )
        self.assertIn('there is no profile "you"', self.assert_code(self.verify(AWS_PROFILE="you"), 2).err)

    def profile(self, text, **variables):
        """What shardctl makes of a config file."""
        (self.path / ".aws").mkdir(exist_ok=True)
        (self.path / ".aws" / "config").write_text(text)
        return lambda: self.verify(**{"AWS_PROFILE": "me", **variables})

    def test_keys_beside_a_role_or_sso_are_not_taken_for_it(self):
        keys = f"aws_access_key_id = K\naws_secret_access_key = {SECRET}\n"
        for line, name in (
            ("role_arn = a\nsource_profile = b", "source_profile"),
            ("role_arn = a\ncredential_source = Environment", "credential_source"),
            ("role_arn = a", "role_arn"),
            ("sso_account_id = 1\nsso_session = s", "sso_account_id"),
            ("credential_process = /bin/tool", "credential_process"),
        ):
            for text in (f"{keys}{line}\n", f"{line}\n{keys}"):
                result = self.assert_code(self.profile("[profile me]\n" + text)(), 2)
                self.assertIn(f"gets its keys by {name}", result.err)
        self.assertEqual(self.used, [])
        # Without a role the AWS tools do not look at these.
        self.assert_code(self.profile(f"[profile me]\nsource_profile = b\nsso_session = s\n{keys}")(), 0)
        # Keys of the first file come before a process.
        (self.path / ".aws" / "credentials").write_text(f"[me]\n{keys}")
        self.assert_code(self.profile("[profile me]\ncredential_process = /bin/tool\n")(), 0)
        (self.path / ".aws" / "credentials").unlink()
        self.assertIn(
            "has only one of",
            self.assert_code(self.profile("[profile me]\naws_access_key_id = K\n")(), 2).err,
        )

    def test_sections_are_read_as_the_aws_tools_do(self):
        def keys(name):
            return f"aws_access_key_id = {name}\naws_secret_access_key = {SECRET}\n"

        config = (
            f"[default]\n{keys('DEFAULT')}\n[profile other] # a remark\n{keys('OTHER')}\n"
            f"[profile   blanks]\n{keys('BLANKS')}\n"
            f"[profile \"two words\"]\n{keys('TWO')}\n[profile 'it is']\n{keys('SINGLE')}\n"
            f"[profile colon]\nAWS_Access_Key_ID: COLON\naws_secret_access_key: {SECRET}\n"
            f'[profile  "quo\\"te"]\n  {keys("QUOTE").replace(chr(10), chr(10) + "  ")}\n'
        )
        for name, key in (
            ("default", "DEFAULT"),
            ("other", "OTHER"),
            ("blanks", "BLANKS"),
            ("two words", "TWO"),
            ("it is", "SINGLE"),
            ("colon", "COLON"),
            ('quo"te', "QUOTE"),
        ):
            self.used.clear()
            self.assert_code(self.profile(config, AWS_PROFILE=name)(), 0)
            self.assertEqual({used for used, _ in self.used}, {key})
        self.assert_code(
            self.profile(f"[default]\n{keys('OLD')}[profile default]\n{keys('NEW')}", AWS_PROFILE="")(), 0
        )
        self.assertEqual(self.used[-1][0], "NEW")
        self.assertIn(
            "there is no profile",
            self.assert_code(
                self.profile(f"[profile two words]\n{keys('NO')}", AWS_PROFILE="two words")(), 2
            ).err,
        )

    def test_files_that_the_aws_tools_do_not_read_are_errors(self):
        for text, words in (
            ("[profile me\nregion = x\n", "line 1 begins with '[' and has no ']'"),
            ("region = x\n", "line 1 stands before the first"),
            ("[profile me]\n\nregion\n", "line 3 is neither a [section] nor NAME = VALUE"),
            (
                "[profile me]\nregion = x\n[profile me]\nregion = y\n",
                'gives "region" of this section another value',
            ),
        ):
            self.assertIn(words, self.assert_code(self.profile(text)(), 2).err)

    def test_endpoints_of_the_profile(self):
        keys = f"aws_access_key_id = K\naws_secret_access_key = {SECRET}\n"
        url = self.store.url
        without = {"AWS_ENDPOINT_URL": "", "SHARD_HTTP_PATIENCE": "2"}
        dead = "http://127.0.0.1:1"
        services = f"[services here]\ns3 =\n  endpoint_url = {url}\nsts =\n  endpoint_url = {dead}\n"
        for text in (
            # that of another service
            f"[profile me]\n{keys}endpoint_url = {url}\ndynamodb =\n  endpoint_url = {dead}\n",
            f"[profile me]\ndynamodb =\n  endpoint_url = {dead}\nendpoint_url = {url}\n{keys}",
            f"[profile me]\n{keys}services = here\nendpoint_url = {dead}\n{services}",
        ):
            self.assert_code(self.profile(text, **without)(), 0)
        nested = self.assert_code(
            self.profile(f"[profile me]\n{keys}s3 =\n  endpoint_url = {url}\n", **without)(), 2
        )
        self.assertIn("where the AWS tools do not look", nested.err)
        self.assertIn("AWS_ENDPOINT_URL_S3", nested.err)
        self.assert_code(
            self.profile(f"[profile me]\n{keys}s3 =\n  endpoint_url = {dead}\n", AWS_ENDPOINT_URL=url)(), 0
        )
        missing = self.assert_code(
            self.profile(f"[profile me]\n{keys}services = there\n{services}", **without)(), 2
        )
        self.assertIn("has no section [services there]", missing.err)

    def test_sts_of_the_services_of_a_profile(self):
        services = self.services()
        text = (
            "[profile pod]\nrole_arn = arn:aws:iam::1:role/a b&c\nweb_identity_token_file = "
            f"{self.token}\nservices = mine\n"
            f"[services mine]\nsts =\n  endpoint_url = {services.url}\ns3 =\n  endpoint_url = "
            f"{self.store.url}\n"
        )
        self.assert_code(self.profile(text, AWS_PROFILE="pod", AWS_ENDPOINT_URL="")(), 0)
        self.assertEqual([command for command, *_ in services.requests], ["POST"])

    def test_half_of_a_key_is_an_error(self):
        self.assertIn("only one of", self.assert_code(self.verify(AWS_ACCESS_KEY_ID="K"), 2).err)
        self.assertIn(
            "AWS_ROLE_ARN is not",
            self.assert_code(self.verify(AWS_WEB_IDENTITY_TOKEN_FILE=str(self.token)), 2).err,
        )


class Regions(KeyCase):
    def refused(self, status, code, region="", **headers):
        self.store.code, self.store.region, self.store.refusal_headers = code, region, headers
        self.refuse = lambda key: status
        return self.assert_code(
            self.verify(AWS_ACCESS_KEY_ID="K", AWS_SECRET_ACCESS_KEY=SECRET, AWS_REGION="eu-west-1"), 2
        ).err

    def test_the_region_of_the_bucket_is_said(self):
        hint = "the bucket is in the region eu-central-1: set AWS_REGION=eu-central-1"
        self.assertIn(hint, self.refused(400, "AuthorizationHeaderMalformed", "eu-central-1"))
        self.assertIn(hint, self.refused(301, "PermanentRedirect", **{"x-amz-bucket-region": "eu-central-1"}))
        self.assertIn(
            hint,
            self.refused(
                301,
                "PermanentRedirect",
                **{"x-amz-bucket-region": "eu-central-1", "Location": "http://127.0.0.1:1/x"},
            ),
        )
        self.assertIn(
            hint,
            self.refused(
                307,
                "TemporaryRedirect",
                **{"x-amz-bucket-region": "eu-central-1", "Location": "http://127.0.0.1:1/x"},
            ),
        )

    def test_no_region_is_guessed(self):
        self.assertIn(
            "check AWS_REGION, which must be the region of the bucket", self.refused(301, "PermanentRedirect")
        )
        self.assertNotIn(
            "set AWS_REGION", self.refused(400, "InvalidRequest", **{"x-amz-bucket-region": "eu-west-1"})
        )  # it is that one
        self.assertNotIn("set AWS_REGION", self.refused(400, "AuthorizationHeaderMalformed", "a b\x1b[1m"))
        self.assertNotIn(
            "set AWS_REGION", self.refused(403, "AccessDenied", **{"x-amz-bucket-region": "eu-central-1"})
        )


class Renewal(KeyCase):
    def slow_start(self, seconds, runs=1):
        """The first answer of each run comes so late; stalls are found later."""
        self.store.behave = lambda path, begin, end, count: (
            time.sleep(seconds) if path.endswith("dataset.json") and count <= runs else None
        )
        return {"SHARD_HTTP_PATIENCE": "60"}

    def test_keys_are_renewed_before_they_expire(self):
        services = self.services(life=10)
        late = []

        def refuse(key):
            if services.given[key] < time.time():
                late.append(key)

        self.refuse = refuse
        patience = self.slow_start(7.7, runs=3)  # a quarter of their life is left
        runs = [lambda source=source: self.verify(**source, **patience) for source in self.every(services)]
        for result in self.at_once(*runs):
            self.assertIn("ok: 5 shards", self.assert_code(result, 0).out)
        self.assertGreaterEqual(len(services.given), 6)
        self.assertEqual({key for key, _ in self.used}, services.given.keys())
        self.assertEqual(late, [])

    def test_keys_that_the_store_calls_expired_are_renewed_once(self):
        for status in 400, 403:
            services = self.services()
            self.store.code = "ExpiredToken"
            self.refuse = lambda key: status if key == "KEY1" and len(self.used) > 3 else None
            self.used.clear()
            self.assertIn("ok: 5 shards", self.assert_code(self.verify(**self.container(services)), 0).out)
            self.assertEqual(len(services.given), 2)

    def test_keys_that_stay_expired_are_an_error(self):
        services = self.services()
        self.store.code = "ExpiredToken"
        self.refuse = lambda key: 403
        self.assertIn(
            "HTTP 403, ExpiredToken", self.assert_code(self.verify(**self.container(services)), 2).err
        )
        self.assertEqual(len(services.given), 2)
        keys = {"AWS_ACCESS_KEY_ID": "K", "AWS_SECRET_ACCESS_KEY": SECRET}
        self.assertIn("HTTP 403, ExpiredToken", self.assert_code(self.verify(**keys), 2).err)

    def test_a_service_that_fails_in_mid_run(self):
        services = self.services(life=3)
        self.refuse = lambda key: setattr(services, "act", "status:500")
        result = self.failed(**self.container(services), **self.slow_start(3.2))
        self.assertIn(
            "cannot get keys from the container's service: it answers HTTP 500", result.out + result.err
        )


class Misbehaviour(KeyCase):
    def test_answers_that_are_no_keys(self):
        for act in (
            "{",
            "{}",
            "<html>",
            "status:403",
            "status:404",
            json.dumps({"AccessKeyId": "A", "SecretAccessKey": SECRET + "\r\nX-Evil: 1"}),
            json.dumps({"AccessKeyId": "A", "SecretAccessKey": SECRET, "Expiration": "later"}),
            "x" * 100_000,
            json.dumps({"AccessKeyId": "A", "SecretAccessKey": SECRET, "Expiration": "2001-01-01T00:00:00Z"}),
        ):
            for source in self.every(self.services(act=act)):
                result = self.failed(**source)
                self.assertIn("keys", result.out + result.err)
                self.assertLess(result.seconds, 20)
        self.assertEqual(self.used, [])

    def test_a_service_that_hangs(self):
        def hangs(source, words):
            result = self.assert_code(self.verify(**source), 2)
            self.assertIn(words, result.err)
            self.assertLess(result.seconds, 28)  # the service takes 30

        instance, container, identity = self.every(self.services(act="hang"))
        self.at_once(
            lambda: hangs(instance, "no keys were found"),
            lambda: hangs(container, "does not answer"),
            lambda: hangs(identity, "does not answer"),
        )

    def test_a_service_that_is_not_there(self):
        with socket.socket() as silent:  # has the port, and does not listen
            silent.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            result = self.assert_code(
                self.verify(AWS_EC2_METADATA_SERVICE_ENDPOINT=url, AWS_EC2_METADATA_DISABLED=""), 2
            )
        self.assertIn("no keys were found: set AWS_ACCESS_KEY_ID", result.err)
        self.assertLess(result.seconds, 20)

    def test_redirects_are_not_followed(self):
        other = self.services()
        for source in self.every(self.services(act=f"redirect:{other.url}/x")):
            self.assertIn("HTTP 302", self.assert_code(self.verify(**source), 2).err)
        self.assertEqual(other.requests, [])

    def test_a_busy_service_is_asked_again(self):
        services = self.services()
        services.busy = 2
        self.ok("KEY1", **self.instance(services))
        self.assertEqual([command for command, *_ in services.requests], ["PUT"] * 3 + ["GET"] * 2)

    def test_containers_ask_only_their_services(self):
        for url, words in (
            ("http://evil.example/x", "only https"),
            ("http://127.0.0.1.evil.example/x", "only https"),
            ("ftp://127.0.0.1/x", "only https"),
            ("http://u:p@127.0.0.1/x", "remove what is before the '@'"),
            ("http://127.0.0.1/x?a b", "only https"),
        ):
            self.assertIn(words, self.assert_code(self.verify(AWS_CONTAINER_CREDENTIALS_FULL_URI=url), 2).err)
        self.assertIn(
            "it begins with '/'",
            self.assert_code(self.verify(AWS_CONTAINER_CREDENTIALS_RELATIVE_URI="@evil.example/x"), 2).err,
        )
        bad = self.verify(
            **{**self.container(self.services()), "AWS_CONTAINER_AUTHORIZATION_TOKEN": "a\r\nX-Evil: 1"}
        )
        self.assertIn("its token has bytes", self.assert_code(bad, 2).err)

    def test_a_token_file_that_is_missing_or_empty(self):
        services = self.services()
        self.token.unlink()
        self.assertIn(
            "AWS_WEB_IDENTITY_TOKEN_FILE", self.assert_code(self.verify(**self.identity(services)), 2).err
        )
        self.token.write_text("")
        self.assertIn("is empty", self.assert_code(self.verify(**self.identity(services)), 2).err)


if __name__ == "__main__":
    main()
