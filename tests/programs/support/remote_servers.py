"""Servers for tests of data sets on servers, and lines before them.
Each is started by a test and stopped when the test ends."""

import functools
import os
import random
import shutil
import subprocess
import threading
import time
import urllib.request
from pathlib import Path
from urllib.parse import unquote

from loopback import ProcessServer, ThreadServer, free_port, listens, s3_environment


class Hold:
    """Holds requests in a server until release(), or for a minute."""

    def __init__(self):
        self.holds, self.released = threading.Event(), threading.Event()
        self.release = self.released.set

    def wait(self):
        """Of a request, in `behave`."""
        self.holds.set()
        self.released.wait(60)

    def wait_for_request(self):
        """Of the test: until a request is held."""
        if not self.holds.wait(60):
            raise RuntimeError("no request came within a minute")


class HostileServer(ThreadServer):
    """Serves a folder by ranges, with `tls` (certificate, key) by https, and misbehaves as `behave(path,
    begin, end, count)` says, which returns a word or None:

    status:NNN  lie:length  lie:range  lie:size  claim:BYTES  whole  flip  cut:N  stall  etag
    redirect:URL  more  drip
    """

    def __init__(self, folder, behave=None, check=None, tls=None):
        self.folder = Path(folder)
        self.behave = behave or (lambda *_: None)
        self.check = check or (lambda headers: 200)  # the status that a request with these headers gets
        self.code = "SlowDown"  # in the text of refusals, as S3 has it
        self.region, self.refusal_headers = "", {}  # of refusals too
        self.etag = '"1"'
        self.requests = []
        self.sent = 0
        self.lock = threading.Lock()
        super().__init__(tls)

    def answer(self, handler):
        if handler.command != "GET":
            handler.send_error(501)
            return
        path = unquote(handler.path).lstrip("/")
        wanted = handler.headers.get("Range")
        with self.lock:
            self.requests.append((handler.path, wanted, dict(handler.headers)))
            count = sum(1 for other, _, _ in self.requests if other == handler.path)
        status = self.check(handler.headers)
        file = self.folder / path
        if status == 200 and not file.is_file():
            status = 404
        data = file.read_bytes() if status == 200 else b""
        begin, end = 0, len(data)
        if wanted and status == 200:
            first, last = wanted.removeprefix("bytes=").split("-")
            begin, end = int(first), min(int(last) + 1, len(data)) if last else len(data)
        act = (self.behave(path, begin, end, count) or "") if status in (200, 404) else ""
        if act.startswith("status:"):
            status = int(act[7:])
        if act.startswith("redirect:"):
            self.send(handler, 302, headers={"Location": act[9:]})
            return
        if status != 200 or begin >= end:
            region = f"<Region>{self.region}</Region>" if self.region else ""
            body = f"<Error><Code>{self.code}</Code>{region}</Error>".encode()
            self.send(handler, status if status != 200 else 416, body, self.refusal_headers)
            return
        body = bytearray(data[begin:end])
        if act == "flip":
            body[random.randrange(len(body))] ^= 0x10
        partial = wanted and act != "whole"
        if act == "whole":
            body = bytearray(data)
        handler.send_response(206 if partial else 200)
        etag = '"2"' if act == "etag" else self.etag
        if etag:
            handler.send_header("ETag", etag)
        if partial:
            first, last, total = begin, end - 1, len(data)
            if act == "lie:range":
                first, last = first + 1, last + 1 if last + 1 < total else last
            if act == "lie:size":
                total += 1
            if act.startswith("claim:"):
                total = int(act[6:])
            handler.send_header("Content-Range", f"bytes {first}-{last}/{total}")
        length = len(body)
        if act == "lie:length":
            length += 5
        if act == "more":
            body += b"x" * 10
            length += 10
        handler.send_header("Content-Length", str(length))
        handler.end_headers()
        if act.startswith("cut:"):
            body = body[: int(act[4:])]
        if act == "stall":
            handler.wfile.write(
                body[: min(len(body) // 2, 200)]
            )  # few, so that the mean rate is soon too low
            handler.wfile.flush()
            time.sleep(60)
        handler.wfile.write(body)
        with self.lock:
            self.sent += len(body)
        if act.startswith("cut:") or act == "lie:length":
            handler.wfile.flush()
            self.cut(handler)


NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log; {user}
events {{ worker_connections 512; }}
http {{
  access_log {folder}/access.log; sendfile on; tcp_nopush on; keepalive_requests 100000;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen {host}:{port}; {tls} root {root}; {extra} }}
}}
"""


class Nginx(ProcessServer):
    """nginx over a folder; with `tls` (certificate, key) by https. None of it needs root. `available()` says
    whether it is installed. `there`: a host of Hosts, on which it runs."""

    @staticmethod
    def available():
        return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")

    def __init__(self, root, work, tls=None, extra="", there=None):
        super().__init__()
        self.work = Path(work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        host, enter = there or ("127.0.0.1", [])
        self.url = f"{'https' if tls else 'http'}://{host}:{self.port}"
        lines = f"ssl_certificate {tls[0]}; ssl_certificate_key {tls[1]};" if tls else ""
        conf = NGINX.format(
            folder=self.work,
            port=f"{self.port}{' ssl' if tls else ''}",
            tls=lines,
            root=root,
            extra=extra,
            host=host,
            user="user root;" if os.getuid() == 0 else "",
        )
        (self.work / "nginx.conf").write_text(conf)
        words = ["-c", str(self.work / "nginx.conf"), "-e", str(self.work / "error.log")]
        pid = self.work / "nginx.pid"  # is written when the port is open
        self.start([*enter, self.available(), *words], pid.exists)

    def requests(self):
        return (self.work / "access.log").read_text().splitlines()


class S3(ProcessServer):
    """rclone serve s3 over a folder whose folders are buckets: it checks signatures.
    With `tls` (certificate, key) by https."""

    KEY, SECRET = "KEYID", "topsecret0"

    @staticmethod
    @functools.cache
    def available():
        """Debian 12's rclone cannot serve s3."""
        for folders in os.environ.get("SHARD_RCLONE_FOLDER", ""), os.environ.get("PATH", ""):
            program = shutil.which("rclone", path=folders)
            if (
                program
                and subprocess.run(
                    [program, "serve", "s3", "--help"], capture_output=True, timeout=60
                ).returncode
                == 0
            ):
                return program
        return None

    def __init__(self, root, tls=None):
        super().__init__()
        port = free_port()
        url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        self.environment = s3_environment(url, self.KEY, self.SECRET)
        flags = ["--cert", str(tls[0]), "--key", str(tls[1])] if tls else []
        flags += ["--auth-key", f"{self.KEY},{self.SECRET}", "--addr", f"127.0.0.1:{port}"]
        self.start([self.available(), "serve", "s3", *flags, str(root)], listens(port))


class Moto(ProcessServer):
    """The server of moto, with a bucket: it keeps everything in memory, and does not check signatures."""

    @staticmethod
    def available():
        return shutil.which(
            "moto_server", path=os.environ.get("PATH", "") + ":" + os.environ.get("SHARD_MOTO_FOLDER", "")
        )

    def __init__(self, bucket):
        super().__init__()
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        self.environment = s3_environment(url)
        self.start([self.available(), "-H", "127.0.0.1", "-p", str(port)], listens(port), seconds=60)
        urllib.request.urlopen(urllib.request.Request(f"{url}/{bucket}", method="PUT"), timeout=30).close()


class Line:
    """A program that passes bytes or packets on until its input ends."""

    def __init__(self, program, *words, **options):
        words = [*words, *(f"{name}={value}" for name, value in options.items())]
        self.process = subprocess.Popen(
            [str(program), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """The counts that it prints at its end."""
        if self.process.poll() is None:
            self.process.stdin.close()
            self.counts = [int(word) for word in self.process.stdout.read().split()]
            self.process.wait(10)
            self.process.stdout.close()
        return self.counts


class Link(Line):
    """tcp_link (tcp_link.cpp) before a server: its latency, rate and flipped bits.
    `url` is that of the server through the line. end(): bytes that came from the server, and how many of them
    were changed."""

    def __init__(self, program, url, **options):
        super().__init__(program, url.rpartition(":")[2], **options)
        self.url = f"{url.rpartition(':')[0]}:{int(self.process.stdout.readline())}"


class Hosts(Line):
    """Two hosts and a line between them (ip_link.cpp): `near` and `far` are the address of each,
    and what a command begins with that runs there. end(): packets to `near`, and how many of them
    were lost."""

    @staticmethod
    def available(program):
        """None, or why there are none."""
        if not shutil.which("nsenter"):
            return "nsenter is not installed"
        tried = subprocess.run(
            [str(program)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        return None if tried.returncode == 0 else tried.stderr.strip()

    def __init__(self, program, **options):
        super().__init__(program, **options)
        near, far = self.process.stdout.readline().split()
        self.near = "192.0.2.1", ["nsenter", f"--net={near}"]
        self.far = "192.0.2.2", ["nsenter", f"--net={far}"]

    def change(self, **options):
        for name, value in options.items():
            self.process.stdin.write(f"{name}={value}\n")
        self.process.stdin.flush()
