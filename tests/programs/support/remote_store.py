"""A server with the interface of S3 for writing, on the loopback interface,
which keeps everything in memory and misbehaves as a test says."""

import base64
import hashlib
import re
import threading
import time
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from loopback import ThreadServer, s3_environment


def etag_of(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


class HostileStore(ThreadServer):
    """`behave(method, key, query, count)` returns a word or None;
    count: of such requests (method, key, part) so far.

    status:NNN  status:NNN:CODE (of the error)  cut:N (reads N bytes of the body, then closes)
    drop (does what it should, then closes)  etag  encrypted  error200  stall  slow:SECONDS

    It refuses bodies that do not have the digests in their headers, as Amazon does. `conditions`: what
    If-None-Match means: "yes", "ignored", "refused".
    """

    def __init__(self, buckets=("bucket",), behave=None, conditions="yes"):
        self.buckets = buckets
        self.behave = behave or (lambda *_: None)
        self.conditions = conditions
        self.page = 1_000_000  # keys in a page of a list
        self.objects = {}  # (bucket, key) -> (bytes, etag)
        self.uploads = {}  # id -> ((bucket, key), {number: bytes})
        self.requests = []  # (method, key, query, headers) that were understood
        self.wrong = []  # digests that did not match
        self.lock = threading.Lock()
        self.current = threading.local()  # .headers of the request that `behave` is asked about
        super().__init__()
        self.environment = s3_environment(self.url)

    def files(self, prefix=""):
        """The objects below a prefix: name -> bytes."""
        with self.lock:
            return {
                key[len(prefix) :]: data
                for (_, key), (data, _) in self.objects.items()
                if key.startswith(prefix)
            }

    def remove(self, key, bucket="bucket"):
        with self.lock:
            self.objects.pop((bucket, key), None)

    def replace(self, key, bucket="bucket"):
        """As another writer would, where the store lets it: other bytes, as many as before,
        and with the digest of another head."""
        with self.lock:
            data, _ = self.objects[bucket, key]
            at = data.index(b'"head_digest":"') + 15
            digits = b"0123456789abcdef"  # the next one: twice must not give the first bytes back
            next_one = digits[(digits.index(data[at]) + 1) % len(digits)]
            other = data[:at] + bytes([next_one]) + data[at + 1 :]
            self.objects[bucket, key] = (other, etag_of(other))

    def count(self, method, name=""):
        with self.lock:
            return sum(1 for did, key, _, _ in self.requests if did == method and key.endswith(name))

    def answer(self, handler):
        parts = urlsplit(handler.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        method = handler.command
        with self.lock:
            self.requests.append((method, key, query, dict(handler.headers)))
            count = sum(
                1
                for did, on, of, _ in self.requests
                if did == method and on == key and of.get("partNumber") == query.get("partNumber")
            )
        self.current.headers = handler.headers
        act = self.behave(method, key, query, count) or ""
        length = int(handler.headers.get("Content-Length", 0))
        if act.startswith("cut:"):
            handler.rfile.read(min(length, int(act[4:])))
            return self.cut(handler)
        body = handler.rfile.read(length)
        if len(body) < length:  # a program that was killed
            handler.close_connection = True
            return
        if act == "stall":
            time.sleep(60)
        if act.startswith("slow:"):
            time.sleep(float(act[5:]))
        if act.startswith("status:"):
            return self.send(handler, int(act[7:10]), self.error(act[11:] or "SlowDown"))
        status, document, headers = self.refusal(handler, body, bucket) or self.act(
            method, (bucket, key), query, body, handler.headers, act
        )
        if act == "drop":
            return self.cut(handler)
        if act == "etag":
            headers["ETag"] = etag_of(b"other bytes")
        if act == "encrypted":
            headers.update({"ETag": etag_of(b"no digest"), "x-amz-server-side-encryption": "aws:kms"})
        self.send(handler, status, document, headers)

    def refusal(self, handler, body, bucket):
        said = handler.headers.get("x-amz-content-sha256", "")
        md5 = handler.headers.get("Content-MD5")
        if said != "UNSIGNED-PAYLOAD" and said != hashlib.sha256(body).hexdigest():
            self.wrong.append(handler.path)
            return 400, self.error("XAmzContentSHA256Mismatch"), {}
        if md5 is not None and base64.b64decode(md5) != hashlib.md5(body).digest():
            self.wrong.append(handler.path)
            return 400, self.error("BadDigest"), {}
        if bucket not in self.buckets:
            return 404, self.error("NoSuchBucket"), {}
        return None

    @staticmethod
    def error(code):
        return f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()

    def act(self, method, place, query, body, headers, act):
        with self.lock:
            upload = self.uploads.get(query.get("uploadId"))
            if "uploadId" in query and (upload is None or upload[0] != place):
                return 404, self.error("NoSuchUpload"), {}
            if (
                method in ("PUT", "POST")
                and "partNumber" not in query
                and "uploads" not in query
                and "If-None-Match" in headers
            ):
                if self.conditions == "refused":
                    return 501, self.error("NotImplemented"), {}
                if self.conditions == "yes" and place in self.objects:
                    return 412, self.error("PreconditionFailed"), {}
            if method == "GET" and "uploads" in query:
                return 200, self.list_uploads(place[0], query), {}
            if method == "GET" and "uploadId" in query:
                return 200, self.list_parts(upload[1], query), {}
            if method == "GET" and "list-type" in query:
                return 200, self.list_keys(place[0], query), {}
            if method in ("GET", "HEAD"):
                return self.read(method, place, headers)
            if method == "PUT" and "partNumber" in query:
                upload[1][int(query["partNumber"])] = body
                return 200, b"", {"ETag": etag_of(body)}
            if method == "PUT":
                self.objects[place] = (body, etag_of(body))
                return 200, b"", {"ETag": etag_of(body)}
            if method == "DELETE":
                del self.uploads[query["uploadId"]]
                return 204, b"", {}
            if "uploads" in query:
                name = f"upload/{len(self.requests)}+&="
                self.uploads[name] = (place, {})
                return 200, f"<R><UploadId>{escape(name)}</UploadId></R>".encode(), {}
            if act == "error200":
                return 200, self.error("InternalError"), {}
            return self.complete(place, query["uploadId"], body.decode(), act)

    def complete(self, place, upload, xml, act):
        parts = self.uploads[upload][1]
        named = re.findall("<PartNumber>([0-9]+)</PartNumber><ETag>(.*?)</ETag>", xml)
        numbers = [int(number) for number, _ in named]
        if act != "encrypted" and any(
            etag_of(parts[int(number)]) != unescape(etag, {"&quot;": '"'}) for number, etag in named
        ):
            return 400, self.error("InvalidPart"), {}  # another process sent other bytes as this part
        assert numbers == sorted(parts), (numbers, sorted(parts))
        assert all(len(parts[n]) >= 5 << 20 for n in numbers[:-1]), "a part is too small"
        del self.uploads[upload]
        digests = b"".join(hashlib.md5(parts[n]).digest() for n in numbers)
        etag = f'"{hashlib.md5(digests).hexdigest()}-{len(numbers)}"'
        self.objects[place] = (b"".join(parts[n] for n in numbers), etag)
        return 200, f"<R><ETag>{escape(etag)}</ETag></R>".encode(), {}

    def list_uploads(self, bucket, query):
        after = (query.get("key-marker", ""), query.get("upload-id-marker", ""))
        rows = sorted(
            (place[1], name)
            for name, (place, _) in self.uploads.items()
            if place[0] == bucket
            and place[1].startswith(query.get("prefix", ""))
            and (place[1], name) > after
        )
        more = len(rows) > 2  # pages of two, so that tests see several
        xml = "".join(
            f"<Upload><Key>{escape(key)}</Key><UploadId>{escape(name)}</UploadId></Upload>"
            for key, name in rows[:2]
        )
        if more:
            xml += f"<IsTruncated>true</IsTruncated><NextKeyMarker>{escape(rows[1][0])}</NextKeyMarker>"
            xml += f"<NextUploadIdMarker>{escape(rows[1][1])}</NextUploadIdMarker>"
        return f"<R>{xml}</R>".encode()

    def list_parts(self, parts, query):
        numbers = [n for n in sorted(parts) if n > int(query.get("part-number-marker", 0))]
        xml = "".join(
            f"<Part><PartNumber>{n}</PartNumber><ETag>&#34;{hashlib.md5(parts[n]).hexdigest()}&#34;</ETag><Size>{len(parts[n])}</Size></Part>"
            for n in numbers[:2]
        )
        if len(numbers) > 2:
            xml += f"<IsTruncated>true</IsTruncated><NextPartNumberMarker>{numbers[1]}</NextPartNumberMarker>"
        return f"<R>{xml}</R>".encode()

    def list_keys(self, bucket, query):
        keys = sorted(
            key for of, key in self.objects if of == bucket and key.startswith(query.get("prefix", ""))
        )
        keys = [key for key in keys if key > query.get("continuation-token", "")]
        xml = "".join(f"<Contents><Key>{escape(key)}</Key></Contents>" for key in keys[: self.page])
        if len(keys) > self.page:
            last = escape(keys[self.page - 1])
            xml += f"<IsTruncated>true</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>"
        return f"<R>{xml}</R>".encode()

    def read(self, method, place, headers):
        if place not in self.objects:
            return 404, self.error("NoSuchKey"), {}
        data, etag = self.objects[place]
        if "Range" not in headers:
            return 200, data, {"ETag": etag}
        first, last = headers["Range"].removeprefix("bytes=").split("-")
        if int(first) >= len(data):
            return 416, self.error("InvalidRange"), {}
        last = min(int(last), len(data) - 1)
        return (
            206,
            data[int(first) : last + 1],
            {"ETag": etag, "Content-Range": f"bytes {first}-{last}/{len(data)}"},
        )
