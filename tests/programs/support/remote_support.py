"""What tests of data sets on servers share: data sets that are converted once,
and calls that wait for servers at the same time."""

import atexit
import functools
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shardify_support import TestCase, make_images, run, shardctl, shardify


@functools.cache
def has_libcurl():
    return "without libcurl" not in shardctl("info", "http://127.0.0.1:1/x").err


@functools.cache
def converted(options, each):
    """A data set of this process, which is not to be changed."""
    folder = Path(tempfile.mkdtemp(prefix="shard-test."))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    result = shardify(make_images(folder / "in", each=each), folder / "out", *options)
    if result.code != 0:
        raise RuntimeError(result)
    return folder / "out"


class ServerCase(TestCase):
    def setUp(self):
        super().setUp()
        if not has_libcurl():
            self.skipTest("this build has no libcurl")

    def make_data(self, folder, options, each=6):
        """What shardify makes of make_images(each=each) with these options, as files that may be changed.
        Only the first such call converts."""
        shutil.copytree(converted(tuple(options), each), folder)
        return folder

    @staticmethod
    def at_once(*calls):
        """The results of the calls, each in a thread: they mostly wait."""
        with ThreadPoolExecutor(len(calls)) as pool:
            return [done.result() for done in [pool.submit(call) for call in calls]]


def timed_run(command, **options):
    """The result of the command, with `seconds`."""
    begin = time.monotonic()
    result = run(command, **options)
    result.seconds = time.monotonic() - begin
    return result
