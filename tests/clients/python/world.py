"""The example gateway in front of a simulated provider, both on loopback, for as long as the tests run."""

import json
import logging
import os
import pathlib
import queue
import subprocess
import tempfile
import threading

# Nothing but loopback: no proxy, no list of prices from afar.
os.environ.update(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1", LITELLM_LOCAL_MODEL_COST_MAP="True")
# Which step of a loop was slow is no news on a busy machine.
logging.getLogger("asyncio").setLevel(logging.ERROR)

#: Longer than any answer takes; a call that needs it has failed.
PATIENCE = 20
KEY = "sk-caller"
CONFIG = pathlib.Path(__file__).parent.parent / "gateway.toml"


class Process:
    """One of the examples, and the lines that it prints."""

    def __init__(self, name, *arguments):
        self.lines = queue.Queue()
        path = pathlib.Path(os.environ["EXAMPLES"]) / name
        self.process = subprocess.Popen([path, *arguments], stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def line(self, is_it):
        """The next line of which this can be said."""
        while True:
            line = self.lines.get(timeout=PATIENCE)
            if is_it(line):
                return line

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(timeout=5)
        self.process.stdout.close()


class World:
    """Both of them."""

    def __init__(self):
        self.provider = Process("simulated_provider", "--key", "sk-upstream", "--pace", "2", "--for", "300")
        url = self.provider.line(lambda line: line.startswith("url ")).split()[1]
        with tempfile.NamedTemporaryFile("w", suffix=".toml", delete=False) as file:
            file.write(CONFIG.read_text().replace("PROVIDER", url))
        self.config = pathlib.Path(file.name)
        arguments = ["--config", file.name, "--listen", "127.0.0.1:0", "--for", "300s", "--drain", "1s", "--quiet"]
        self.gateway = Process("gateway", *arguments)
        line = self.gateway.line(lambda line: "OPENAI_BASE_URL=" in line)
        self.v1 = line.split("OPENAI_BASE_URL=")[1]
        self.root = self.v1.removesuffix("/v1")

    def seen(self, is_it):
        """What the provider says of the next request that is over, and of which this can be said."""
        found = {}

        def matches(line):
            if line.startswith("{"):
                found.update(json.loads(line))
                return is_it(found)
            return False

        self.provider.line(matches)
        return found

    def end(self):
        self.gateway.end()
        self.provider.end()
        self.config.unlink()


_world = None


def world():
    """The one of now, started when it is first asked for."""
    global _world
    if _world is None:
        _world = World()
    return _world


def end():
    """Ends it, so that the next test begins with nothing used up."""
    global _world
    if _world is not None:
        _world.end()
        _world = None
