"""Chromium without a window, spoken to over its debugging pipe: no package and no port needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

FOUND = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE = 60.0
FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--no-sandbox", "--disable-gpu",
    "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
    "--disable-extensions", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb",
)  # fmt: skip
# Chromium reads commands from descriptor 3 and answers on 4; both may be taken when it is started.
LAUNCH = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 100) for fd in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A running browser; closes with its block."""

    def __init__(self, profile):
        self._number, self._buffer, self.events = 0, b"", []
        commands, self._send = os.pipe()
        self._receive, answers = os.pipe()
        call = [sys.executable, "-c", LAUNCH, str(commands), str(answers), FOUND]
        self._process = subprocess.Popen(
            [*call, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._send)
        os.close(self._receive)

    def call(self, method, session=None, **parameters):
        """The result of one command; events that come first are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event, session):
        """The first such event that has not been taken."""
        while True:
            for place, one in enumerate(self.events):
                if one.get("method") == event and one.get("sessionId") == session:
                    return self.events.pop(place)
            self.events.append(self._next())

    def _next(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            if not select.select([self._receive], [], [], max(0, deadline - time.monotonic()))[0]:
                raise RuntimeError(f"the browser said nothing for {PATIENCE} seconds")
            part = os.read(self._receive, 2**20)
            if not part:
                raise RuntimeError("the browser has gone")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, *wishes):
        """A page of its own, with the reader's wishes set before it loads."""
        return Page(self, *wishes)


class Page:
    """One open page: what it asked for, what it complained of, what its script says."""

    def __init__(self, browser, *wishes):
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.load(*wishes)

    def load(self, path, width=1280, height=900, scheme="light", media=""):
        """What was seen before is forgotten."""
        browser = self._browser
        browser.events = [one for one in browser.events if one.get("sessionId") != self._session]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.call("Page.bringToFront")  # one behind another draws nothing
        self.call("Page.navigate", url=f"file://{path}")
        browser.wait_for("Page.loadEventFired", self._session)

    def call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def run(self, expression):
        """The value of an expression of the page's script."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def seen(self, *methods):
        """The events of those names so far."""
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))")
        return [
            event["params"]
            for event in self._browser.events
            if event.get("sessionId") == self._session and event["method"] in methods
        ]

    def complaints(self):
        """Errors and warnings of the console, and exceptions."""
        return self.seen("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")

    def requests(self):
        """The addresses asked for, inline data left out."""
        asked = (event["request"]["url"] for event in self.seen("Network.requestWillBeSent"))
        return [address for address in asked if not address.startswith("data:")]

    def picture(self, path, whole=True):
        """A PNG of the page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                         **({"clip": self._all()} if whole else {}))  # fmt: skip
        path.write_bytes(base64.b64decode(shot["data"]))

    def printed(self):
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])

    def _all(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
