"""OpenStack Swift with its S3 interface (s3api), on the loopback interface: account, container,
object and proxy server, each a process."""

import getpass
import os
import shutil
import subprocess
from pathlib import Path

from remote_servers import free_port, listens, wait_for

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


class Swift:
    """Empty, with a bucket, which `make_bucket(environment)` makes."""

    SECRET = "topsecret0"

    @staticmethod
    def available():
        return shutil.which("swift-proxy-server") and shutil.which("swift-ring-builder")

    def __init__(self, work, make_bucket):
        self.etc = Path(work) / "etc"
        node = Path(work) / "node"
        (node / "d1").mkdir(parents=True)
        self.etc.mkdir()
        (self.etc / "swift.conf").write_text(
            "[swift-hash]\nswift_hash_path_suffix = a\nswift_hash_path_prefix = b\n"
        )
        self.processes = []
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
                self.processes.append(
                    subprocess.Popen(
                        [f"swift-{name}-server", str(self.etc / f"{name}.conf")],
                        env=environment,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                    )
                )
                wait_for(listens(port), self.processes[-1], seconds=60)
            self.environment = {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['proxy']}",
                "AWS_ACCESS_KEY_ID": "test:tester",
                "AWS_SECRET_ACCESS_KEY": self.SECRET,
            }
            make_bucket(self.environment)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
