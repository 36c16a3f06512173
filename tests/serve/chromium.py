"""A headless Chromium, driven over its pipe by the DevTools protocol."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

SECONDS = 60


def program():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
                None)


class Browser:
    """One page. Commands and events are those of
    https://chromedevtools.github.io/devtools-protocol."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        inputs, outputs = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(inputs[0], fcntl.F_DUPFD, 20),
                fcntl.fcntl(outputs[1], fcntl.F_DUPFD, 20)]

        def connect():  # the browser reads from 3 and writes to 4
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [program(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--hide-scrollbars", f"--user-data-dir={self.profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=connect)
        for descriptor in (*ends, inputs[0], outputs[1]):
            os.close(descriptor)
        self.write, self.read = inputs[1], outputs[0]
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        target = next(each for each in self.send("Target.getTargets")["targetInfos"]
                      if each["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM", "Accessibility"):
            self.send(f"{domain}.enable")

    def receive(self, end):
        """The next message, or None."""
        while b"\0" not in self.buffer:
            if not select.select([self.read], [], [], max(0, end - time.monotonic()))[0]:
                return None
            part = os.read(self.read, 1 << 20)
            if not part:
                raise EOFError("Chromium ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data):]
        end = time.monotonic() + SECONDS
        while (answer := self.receive(end)) is not None:
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)
        raise TimeoutError(method)

    def evaluate(self, expression):
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, expression, seconds=SECONDS):
        """Waits until the expression is true; returns its value."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            if time.monotonic() > end:
                raise TimeoutError(f"{expression}: {self.evaluate('document.body.innerText')}")
            time.sleep(0.05)
        return value

    def open(self, address):
        self.send("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def key(self, name, text="", modifiers=0):
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowRight": 39, "ArrowDown": 40,
                 "ArrowLeft": 37, "Home": 36, "End": 35}
        common = {"key": name, "code": name, "windowsVirtualKeyCode": codes.get(name, 0),
                  "modifiers": modifiers}
        if name == "Enter":
            text = "\r"
        self.send("Input.dispatchKeyEvent", type="keyDown", **common,
                  **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def mouse(self, selector, click=False, index=0):
        x, y = self.evaluate(
            f"(() => {{ const b = "
            f"document.querySelectorAll({json.dumps(selector)})[{index}].getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                          clickCount=1)

    def size(self, width, height, phone=False):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=phone)

    def dark(self, dark=True):
        self.send("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        os.close(self.write)
        self.process.terminate()
        self.process.wait(timeout=SECONDS)
        os.close(self.read)
        self.profile.cleanup()
