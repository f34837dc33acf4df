"""Servers on the loopback interface for tests of data sets on servers.
Each is started by a test and stopped when the test ends."""

import functools
import hashlib
import hmac
import http.server
import os
import random
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.request
from pathlib import Path
from urllib.parse import unquote

os.environ["no_proxy"] = os.environ["NO_PROXY"] = (
    "127.0.0.1,localhost,192.0.2.2"  # for the programs under test too
)


def free_port():
    """For a server that takes no socket. Below the ports that the kernel gives to connections and to servers
    of other tests, which would take it before the server has started."""
    ports = random.SystemRandom()
    while True:
        port = ports.randrange(10_000, 32_768)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


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


class HostileServer:
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
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                try:
                    server.answer(self)
                except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                    self.close_connection = True

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):  # programs that are killed
                pass

        self.httpd = Server(("127.0.0.1", 0), Handler)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.httpd.server_address[1]}"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            # Without the handshake, which would wait in the thread that accepts:
            # it comes with the first bytes.
            self.httpd.socket = context.wrap_socket(
                self.httpd.socket, server_side=True, do_handshake_on_connect=False
            )
        self.thread = threading.Thread(
            target=self.httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.httpd.shutdown()
        self.httpd.server_close()

    def answer(self, handler):
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
            handler.send_response(302)
            handler.send_header("Location", act[9:])
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        if status != 200 or begin >= end:
            region = f"<Region>{self.region}</Region>" if self.region else ""
            body = f"<Error><Code>{self.code}</Code>{region}</Error>".encode()
            handler.send_response(status if status != 200 else 416)
            for name, value in self.refusal_headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
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
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)


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


class Nginx:
    """nginx over a folder; with `tls` (certificate, key) by https. None of it needs root. `available()` says
    whether it is installed. `there`: a host of Hosts, on which it runs."""

    @staticmethod
    def available():
        return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")

    def __init__(self, root, work, tls=None, extra="", there=None):
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
        self.process = subprocess.Popen(
            [
                *enter,
                self.available(),
                "-c",
                str(self.work / "nginx.conf"),
                "-e",
                str(self.work / "error.log"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(
            lambda: (self.work / "nginx.pid").exists(), self.process
        )  # it is written when the port is open

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def requests(self):
        return (self.work / "access.log").read_text().splitlines()


class S3:
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
        port = free_port()
        self.environment = {
            "AWS_ENDPOINT_URL": f"{'https' if tls else 'http'}://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": self.KEY,
            "AWS_SECRET_ACCESS_KEY": self.SECRET,
        }
        flags = ["--cert", str(tls[0]), "--key", str(tls[1])] if tls else []
        self.process = subprocess.Popen(
            [
                self.available(),
                "serve",
                "s3",
                "--auth-key",
                f"{self.KEY},{self.SECRET}",
                "--addr",
                f"127.0.0.1:{port}",
                *flags,
                str(root),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(listens(port), self.process)

    __enter__ = Nginx.__enter__
    __exit__ = Nginx.__exit__


class Moto:
    """The server of moto, with a bucket: it keeps everything in memory, and does not check signatures."""

    @staticmethod
    def available():
        return shutil.which(
            "moto_server", path=os.environ.get("PATH", "") + ":" + os.environ.get("SHARD_MOTO_FOLDER", "")
        )

    def __init__(self, bucket):
        port = free_port()
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "KEYID",
            "AWS_SECRET_ACCESS_KEY": "topsecret0",
        }
        self.process = subprocess.Popen(
            [self.available(), "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(listens(port), self.process, seconds=60)
        urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{port}/{bucket}", method="PUT"), timeout=30
        ).close()

    __enter__ = Nginx.__enter__
    __exit__ = Nginx.__exit__


class Link:
    """tcp_link (tcp_link.cpp) before a server: its latency, rate and flipped bits.
    `url` is that of the server through the line."""

    def __init__(self, program, url, **options):
        words = [f"{name}={value}" for name, value in options.items()]
        self.process = subprocess.Popen(
            [str(program), url.rpartition(":")[2], *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = f"{url.rpartition(':')[0]}:{int(self.process.stdout.readline())}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Bytes that came from the server, and how many of them were changed."""
        if self.process.poll() is None:
            self.process.stdin.close()
            self.counts = [int(word) for word in self.process.stdout.read().split()]
            self.process.wait(10)
            self.process.stdout.close()
        return self.counts


class Hosts:
    """Two hosts and a line between them (ip_link.cpp): `near` and `far` are the address of each,
    and what a command begins with that runs there."""

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
        words = [f"{name}={value}" for name, value in options.items()]
        self.process = subprocess.Popen(
            [str(program), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        near, far = self.process.stdout.readline().split()
        self.near = "192.0.2.1", ["nsenter", f"--net={near}"]
        self.far = "192.0.2.2", ["nsenter", f"--net={far}"]

    __enter__ = Link.__enter__
    __exit__ = Link.__exit__
    end = Link.end  # packets to `near`, and how many of them were lost

    def change(self, **options):
        for name, value in options.items():
            self.process.stdin.write(f"{name}={value}\n")
        self.process.stdin.flush()


def listens(port):
    def tried():
        with socket.socket() as probe:
            probe.settimeout(0.5)
            return probe.connect_ex(("127.0.0.1", port)) == 0

    return tried


def wait_for(ready, process, seconds=20):
    """Until a server is ready. Raises if the process ended before."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        if ready():
            return
        time.sleep(0.05)
    raise RuntimeError("the server does not listen")


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


def make_certificate(folder, name="IP:127.0.0.1"):
    """An authority of its own and a certificate for `name`: (authority, certificate, key)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def run(*command):
        return subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True, timeout=60)

    ca, ca_key, key, request, certificate, names = (
        folder / name for name in ("ca.pem", "ca.key", "key", "csr", "cert.pem", "names")
    )
    run(
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        ca_key,
        "-out",
        ca,
        "-days",
        "2",
        "-subj",
        "/CN=test authority",
    )
    run(
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        request,
        "-subj",
        f"/CN={name.partition(':')[2]}",
    )
    names.write_text(f"subjectAltName={name}\n")
    run(
        "x509",
        "-req",
        "-in",
        request,
        "-CA",
        ca,
        "-CAkey",
        ca_key,
        "-CAcreateserial",
        "-out",
        certificate,
        "-days",
        "2",
        "-extfile",
        names,
    )
    return ca, certificate, key
