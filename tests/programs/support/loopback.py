"""What servers of tests are made of: a port, a certificate, a thread or a process that ends with the test.
All are on the loopback interface."""

import http.server
import os
import random
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

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


def s3_environment(url, key="KEYID", secret="topsecret0"):
    """What names a store at `url` to the programs under test."""
    return {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}


class ThreadServer:
    """A subclass's answer(handler) answers each request, on a thread of its own. With `tls` (certificate,
    key) by https."""

    def __init__(self, tls=None):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_any(self):
                try:
                    server.answer(self)
                except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                    self.close_connection = True

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

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
        threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.httpd.shutdown()
        self.httpd.server_close()

    @staticmethod
    def send(handler, status, body=b"", headers=None):
        """A whole answer."""
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    @staticmethod
    def cut(handler):
        """Closes the connection, whatever was sent."""
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)


class ProcessServer:
    """Programs of others, which end with the test."""

    def __init__(self):
        self.processes = []

    def start(self, command, ready, seconds=20, **options):
        """Returns when `ready()`."""
        null = subprocess.DEVNULL
        self.processes.append(subprocess.Popen(command, stdout=null, stderr=null, **options))
        wait_for(ready, self.processes[-1], seconds)

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


def make_certificate(folder, name="IP:127.0.0.1"):
    """An authority of its own and a certificate for `name`: (authority, certificate, key)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "names").write_text(f"subjectAltName={name}\n")
    for words in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj".split()
        + ["/CN=test authority"],
        "req -newkey rsa:2048 -nodes -keyout key -out csr -subj".split() + [f"/CN={name.partition(':')[2]}"],
        "x509 -req -in csr -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2"
        " -extfile names".split(),
    ):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=60)
    return folder / "ca.pem", folder / "cert.pem", folder / "key"
