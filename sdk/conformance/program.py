"""Starts a bench program the way Scruple does and talks to it line by line."""

import json
import os
import select
import signal
import subprocess
import tempfile
import time


class Gone(Exception):
    """The program ended or closed its side before a reply that was due."""


class Silent(Exception):
    """No complete reply line arrived in time."""


class Program:
    def __init__(self, argv, transport="pipe", timeout=60.0):
        self.timeout = timeout
        self.buffer = b""
        self.printed = tempfile.TemporaryFile()
        self.errors = tempfile.TemporaryFile()
        self.folder = None
        opening = self._pipes if transport == "pipe" else self._fifos
        opening(argv)
        self.cpu_before, self.asked_at = self.cpu(), time.monotonic()

    def _pipes(self, argv):
        child_in, self.requests = os.pipe()
        self.replies, child_out = os.pipe()
        self._start(argv, f"/dev/fd/{child_in}", f"/dev/fd/{child_out}", (child_in, child_out))
        os.close(child_in)
        os.close(child_out)

    def _fifos(self, argv):
        self.folder = tempfile.TemporaryDirectory()
        path_in, path_out = (os.path.join(self.folder.name, n) for n in ("in", "out"))
        os.mkfifo(path_in)
        os.mkfifo(path_out)
        self._start(argv, path_in, path_out, ())
        # A non-blocking open for writing fails until the program reads. A program that never reads must not block us.
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                self.requests = os.open(path_in, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    self.process.kill()
                    raise Gone("the program did not open SCRUPLE_BENCH_IN") from None
                time.sleep(0.005)
        os.set_blocking(self.requests, True)
        self.replies = os.open(path_out, os.O_RDONLY)

    def _start(self, argv, path_in, path_out, fds):
        environment = dict(os.environ, SCRUPLE_BENCH_IN=path_in, SCRUPLE_BENCH_OUT=path_out)
        self.process = subprocess.Popen(
            argv, env=environment, pass_fds=fds, stdin=subprocess.DEVNULL,
            stdout=self.printed, stderr=self.errors, start_new_session=True)

    def send(self, request, newline=True):
        self.cpu_before, self.asked_at = self.cpu(), time.monotonic()
        try:
            data = (request + ("\n" if newline else "")).encode()
            while data:
                data = data[os.write(self.requests, data):]
        except BrokenPipeError:
            raise Gone(self.how_it_ended()) from None

    def line(self, timeout=None):
        deadline = time.monotonic() + (timeout or self.timeout)
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.replies], [], [], left)[0]:
                raise Silent(f"no reply within {timeout or self.timeout:g} s")
            data = os.read(self.replies, 1 << 16)
            if not data:
                raise Gone(self.how_it_ended())
            self.buffer += data
        raw, self.buffer = self.buffer.split(b"\n", 1)
        return raw

    def silence(self, seconds):
        """Waits for a reply that should not come; the second half of the time shows whether the program is busy."""
        try:
            return self.line(seconds / 2)
        except Silent:
            self.cpu_before, self.asked_at = self.cpu(), time.monotonic()
        return self.line(seconds / 2)

    def reply(self, timeout=None):
        return strict_json(self.line(timeout))

    def ask(self, request, timeout=None):
        self.send(request)
        return self.reply(timeout)

    def cases(self):
        self.send("cases")
        found = []
        while True:
            reply = self.reply()
            if "case" not in reply:
                return found, reply
            found.append(reply["case"])

    def cpu(self):
        """Returns the CPU time of the whole process so far, in seconds."""
        try:
            with open(f"/proc/{self.process.pid}/stat", encoding="utf-8", errors="replace") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except (OSError, AttributeError):
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def busy_share(self):
        return (self.cpu() - self.cpu_before) / max(time.monotonic() - self.asked_at, 1e-3)

    def end_of_input(self):
        if self.requests is not None:
            os.close(self.requests)
            self.requests = None

    def exit_code(self, timeout=20.0):
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def output(self, which="printed"):
        stream = getattr(self, which)
        stream.seek(0)
        return stream.read().decode(errors="replace")

    def how_it_ended(self):
        code = self.exit_code(5)
        last = self.output("errors").strip().splitlines()[-3:]
        ended = "closed its replies but still runs" if code is None else f"ended with {code}"
        return f"the program {ended}" + (f"; stderr: {' | '.join(last)}" if last else "")

    def close(self):
        self.end_of_input()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()
        os.close(self.replies)
        self.printed.close()
        self.errors.close()
        if self.folder:
            self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def strict_json(raw):
    """Parses one JSON object in UTF-8. Raises ValueError if it does not follow the protocol."""
    def no_constant(word):
        raise ValueError(f"{word} is not JSON")

    def unique_keys(pairs):
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError(f"a key occurs twice in {keys}")
        return dict(pairs)

    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=no_constant, object_pairs_hook=unique_keys)
    except (UnicodeDecodeError, ValueError) as problem:
        raise ValueError(f"not a JSON line ({problem}): {raw[:200]!r}") from None
    if not isinstance(value, dict):
        raise ValueError(f"not an object: {raw[:200]!r}")
    return value
