"""A headless Chromium, driven over its DevTools protocol.

With --remote-debugging-pipe the protocol is JSON between two pipes, each message ended by a zero byte. So it needs
neither a driver nor a WebSocket library: Debian's `chromium` (or `chromium-headless-shell`) and python3 are enough.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time

PATIENCE = 60  # seconds; the machine may be busy
KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "ArrowDown": (40, ""), "Tab": (9, "")}


def find():
    """The browser's path; None if there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome"))), None)


class Browser:
    def __init__(self, path, home):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def connect():  # the browser reads 3 and writes 4
            saved_in, saved_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(saved_in, 3)
            os.dup2(saved_out, 4)

        self.log = open(os.path.join(home, "chromium.log"), "wb")
        self.process = subprocess.Popen(
            [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update",
             "--no-default-browser-check", "--hide-scrollbars", "--remote-debugging-pipe",
             "--user-data-dir=" + os.path.join(home, "profile"), "about:blank"],
            preexec_fn=connect, close_fds=False, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        os.close(theirs_in)
        os.close(theirs_out)
        self.reading, self.writing = ours_in, ours_out
        self.unread = b""
        self.number = 0
        self.events = []

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.reading)
        os.close(self.writing)
        self.log.close()

    def call(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self):
        while b"\0" not in self.unread:
            if not select.select([self.reading], [], [], PATIENCE)[0]:
                raise TimeoutError("Chromium does not answer")
            piece = os.read(self.reading, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium has ended; see chromium.log")
            self.unread += piece
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def open(self, url, width=1280, height=800, dark=False, touch=False):
        return Page(self, url, width, height, dark, touch)


class Page:
    def __init__(self, browser, url, width, height, dark, touch):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def run(self, script):
        """The value of a JavaScript expression; promises are waited for."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise RuntimeError(f"{script}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def wait(self, script, why=None):
        """Returns the value of an expression as soon as it is true."""
        last = None
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                last = self.run(script)
            except RuntimeError as error:  # the page is being loaded
                last = error
            if last and not isinstance(last, Exception):
                return last
            time.sleep(0.05)
        raise AssertionError(f"never came true: {why or script} (last: {last})\n" + self.run("document.body.innerText"))

    def press(self, key):
        code, text = KEYS.get(key, (ord(key.upper()[0]), key))
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **extra)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def click(self, selector):
        x, y = self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
                        "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); "
                        "return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, path):
        told = self.call("Page.captureScreenshot", format="png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(told["data"]))

    def events(self, method):
        self.run("0")  # what came until now has been read
        return [e["params"] for e in self.browser.events if e.get("sessionId") == self.session and e["method"] == method]

    def complaints(self):
        """What the page did wrong: exceptions, errors and violations of its policy."""
        found = [e["exceptionDetails"].get("exception", {}).get("description", str(e))
                 for e in self.events("Runtime.exceptionThrown")]
        return found + [e["entry"]["text"] for e in self.events("Log.entryAdded") if e["entry"]["level"] == "error"]

    def requests(self):
        return [e["request"]["url"] for e in self.events("Network.requestWillBeSent")]
