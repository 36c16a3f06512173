"""Runs programs within the time of a part, and knows when that time is over."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time

RESERVE = 3  # seconds kept for writing the report


class OutOfTime(Exception):
    """The part's time is over; what is finished is in its report."""


class Done:
    def __init__(self, status, text, seconds, late):
        self.status, self.text, self.seconds, self.late = status, text, seconds, late


class Runner:
    """`limit`: seconds of this part, 0 for none."""

    def __init__(self, env, limit):
        self.env, self.limit, self.begin = env, limit, time.monotonic()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="nmt-gpu-check-"))

    def close(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def used(self):
        return time.monotonic() - self.begin

    def left(self):
        return self.limit - RESERVE - self.used() if self.limit else float("inf")

    def begins_early(self):
        """Whether nearly all of the part's time was still there."""
        return self.limit and self.used() < 0.1 * self.limit

    def run(self, command, limit, on_line=None, env=None):
        """Runs a program for at most `limit` seconds; on_line gets every line of its standard
        output as it comes. Raises OutOfTime where the part's time, not `limit`, ended the program,
        or where there is no time to start it."""
        left = self.left()
        if left <= 1:
            raise OutOfTime
        start, lines = time.monotonic(), []
        errors = tempfile.TemporaryFile("w+", errors="replace")
        try:
            process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE,
                                       stderr=errors, text=True, errors="replace",
                                       env={**self.env, **(env or {})}, cwd=self.work,
                                       start_new_session=True)
        except OSError as error:
            return Done(127, f"{command[0]}: {error.strerror}", 0, False)
        late = threading.Event()

        def stop():
            late.set()
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

        timer = threading.Timer(min(limit, left), stop)
        timer.start()
        try:
            for line in process.stdout:
                lines.append(line)
                if on_line and not late.is_set():
                    on_line(line)
            process.wait()
        finally:
            timer.cancel()
            if process.poll() is None:
                stop()
                process.wait()
        errors.seek(0)
        done = Done(124 if late.is_set() else process.returncode, "".join(lines) + errors.read(),
                    time.monotonic() - start, late.is_set())
        if done.late and left < limit:
            raise OutOfTime
        return done
