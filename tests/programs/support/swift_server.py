"""OpenStack Swift with its S3 interface (s3api), on the loopback interface: account, container,
object and proxy server, each a process."""

import getpass
import hashlib
import hmac
import os
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

from loopback import ProcessServer, free_port, listens, s3_environment

SERVER = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 1
user = {user}
swift_dir = {etc}
devices = {node}
mount_check = false
disable_fallocate = true
"""
STORE = """
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
"""
PROXY = """
[pipeline:main]
pipeline = catch_errors cache s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{nothing}
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = {secret} .admin
[filter:slo]
use = egg:swift#slo
"""


def make_bucket(name, environment):
    """By a request that is signed here: none of the programs under test makes buckets."""
    key, secret, host = (
        environment["AWS_ACCESS_KEY_ID"],
        environment["AWS_SECRET_ACCESS_KEY"],
        environment["AWS_ENDPOINT_URL"].partition("//")[2],
    )
    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    nothing = hashlib.sha256(b"").hexdigest()
    headers = {"host": host, "x-amz-content-sha256": nothing, "x-amz-date": at}
    lines = "".join(f"{header}:{value}\n" for header, value in headers.items())
    request = "\n".join(["PUT", f"/{name}", "", lines, ";".join(headers), nothing])
    scope = f"{at[:8]}/us-east-1/s3/aws4_request"
    signing = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        signing = hmac.new(signing, part.encode(), hashlib.sha256).digest()
    text = "\n".join(["AWS4-HMAC-SHA256", at, scope, hashlib.sha256(request.encode()).hexdigest()])
    signature = hmac.new(signing, text.encode(), hashlib.sha256).hexdigest()
    said = (
        f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={';'.join(headers)}, Signature={signature}"
    )
    del headers["host"]
    urllib.request.urlopen(
        urllib.request.Request(
            f"http://{host}/{name}", method="PUT", headers={**headers, "Authorization": said}
        ),
        timeout=60,
    ).close()


class Swift(ProcessServer):
    """With one bucket, which is empty: "bucket"."""

    SECRET = "topsecret0"

    @staticmethod
    def available():
        return shutil.which("swift-proxy-server") and shutil.which("swift-ring-builder")

    def __init__(self, work):
        self.etc = Path(work) / "etc"
        node = Path(work) / "node"
        (node / "d1").mkdir(parents=True)
        self.etc.mkdir()
        (self.etc / "swift.conf").write_text(
            "[swift-hash]\nswift_hash_path_suffix = a\nswift_hash_path_prefix = b\n"
        )
        super().__init__()
        ports = {name: free_port() for name in ("object", "container", "account", "proxy")}
        for name, port in ports.items():
            common = SERVER.format(port=port, user=getpass.getuser(), etc=self.etc, node=node)
            own = (
                STORE.format(name=name)
                if name != "proxy"
                else PROXY.format(secret=self.SECRET, nothing=free_port())
            )
            (self.etc / f"{name}.conf").write_text(common + own)
            if name != "proxy":
                for words in (
                    ["create", "4", "1", "1"],
                    ["add", f"r1z1-127.0.0.1:{port}/d1", "1"],
                    ["rebalance"],
                ):
                    subprocess.run(
                        ["swift-ring-builder", f"{name}.builder", *words],
                        cwd=self.etc,
                        check=True,
                        capture_output=True,
                        timeout=60,
                    )
        try:
            for name, port in ports.items():
                environment = {**os.environ, "SWIFT_CONF_FILE": str(self.etc / "swift.conf")}
                self.start(
                    [f"swift-{name}-server", str(self.etc / f"{name}.conf")],
                    listens(port),
                    seconds=60,
                    env=environment,
                )
            self.environment = s3_environment(
                f"http://127.0.0.1:{ports['proxy']}", "test:tester", self.SECRET
            )
            make_bucket("bucket", self.environment)
        except BaseException:
            self.__exit__()
            raise
