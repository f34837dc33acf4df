"""A headless Chromium, driven over a pipe by the DevTools protocol
(https://chromedevtools.github.io/devtools-protocol/).

Needs nothing but Python's standard library and a program named chromium, chromium-browser or google-chrome.
"""

import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
import unittest

SECONDS = 30  # for anything to happen
KEYS = {
    "Tab": ("Tab", 9, ""),
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    " ": ("Space", 32, " "),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
}


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    raise unittest.SkipTest("chromium is not installed: tools/install-deps browser (290 MB)")


class Browser:
    """One page. What its console said and which URLs it asked for are in `problems` and `requests`."""

    def __init__(self):
        program = find_browser()
        self.problems, self.requests = [], []
        self._numbers = itertools.count(1)
        self._answers, self._events, self._received = {}, [], b""
        self._profile = tempfile.mkdtemp(prefix="shard-browser.")
        # The browser reads commands from descriptor 3 and writes answers to 4.
        for_browser, self._commands = os.pipe()
        self._from_browser, answers = os.pipe()
        for_browser, answers = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (for_browser, answers))

        def take_descriptors():
            os.dup2(for_browser, 3)
            os.dup2(answers, 4)

        self._process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._profile}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=take_descriptors,
            pass_fds=(3, 4, for_browser, answers),
        )
        os.close(for_browser)
        os.close(answers)
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._from_browser)
        shutil.rmtree(self._profile, ignore_errors=True)

    # --- the protocol

    def _read(self, until):
        """Takes what the browser sends until `until()`, or fails."""
        end = time.monotonic() + SECONDS
        while not until():
            if not select.select([self._from_browser], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"the browser did not answer for {SECONDS} s")
            data = os.read(self._from_browser, 1 << 16)
            if not data:
                raise RuntimeError("the browser has ended")
            *messages, self._received = (self._received + data).split(b"\0")
            for message in messages:
                self._take(json.loads(message))

    def _take(self, message):
        if "id" in message:
            self._answers[message["id"]] = message
            return
        method, what = message["method"], message.get("params", {})
        self._events.append(method)
        if method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(
                what["exceptionDetails"].get("exception", {}).get("description", "exception")
            )
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.problems.append(what["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.problems.append(str(what["args"]))

    def call(self, method, **parameters):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        self._read(lambda: number in self._answers)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    # --- what a user does

    def open(self, url):
        self._events.clear()
        self.call("Page.navigate", url=url)
        self._read(lambda: "Page.loadEventFired" in self._events)

    def value(self, expression):
        """Of a JavaScript expression; promises are waited for."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression):
        end = time.monotonic() + SECONDS
        while not self.value(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.02)

    def click(self, selector, at=0.5):
        """With the mouse, in the middle of an element or at another part of its width and height."""
        found = self.value(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{block: "center"}});
            const box = element.getBoundingClientRect();
            return [box.left + box.width * {at}, box.top + box.height * {at}];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=found[0], y=found[1], button="left", clickCount=1
            )

    def press(self, key, times=1):
        code, number, text = KEYS[key]
        for _ in range(times):
            self.call(
                "Input.dispatchKeyEvent",
                type="keyDown",
                key=key,
                code=code,
                windowsVirtualKeyCode=number,
                text=text,
            )
            self.call(
                "Input.dispatchKeyEvent", type="keyUp", key=key, code=code, windowsVirtualKeyCode=number
            )

    def type(self, text):
        self.call("Input.insertText", text=text)

    def resize(self, width, height, dark=False):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def names(self):
        """(role, accessible name) of everything on the page that a screen reader names."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node.get("ignored")
        ]
