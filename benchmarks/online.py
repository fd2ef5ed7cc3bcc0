"""The online service beside a bare FastAPI echo, and its learner beside `lser.train`.

Every round measures both, one after the other, so that a busy machine slows both; the ratios are
what counts. Needs wrk (apt install wrk) and fastapi.

    python benchmarks/online.py [--items 100000] [--seconds 5] [--rounds 3] [--out online.json]
"""

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")
FEATURES, DIM, CONNECTIONS = 30, 32, 8
ECHO = """
from fastapi import FastAPI
from pydantic import BaseModel
class Ask(BaseModel):
    user: str
    features: list[float]
    k: int
app = FastAPI()
@app.post("/recommend")
async def recommend(ask: Ask):
    return {"id": "x", "items": ["1"] * ask.k, "propensities": [0.5] * ask.k}
"""
SCRIPT = """
local n = 0
request = function()
  n = n + 1
  local body = '{"user": "u' .. (n %% 5000) .. '", "features": %s, "k": 10}'
  return wrk.format("POST", "/recommend", {["Content-Type"] = "application/json"}, body)
end
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(address):
    for _ in range(600):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{address} does not answer")


def cpu_of(pid):
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wrk(port, pid, script, seconds, connections=CONNECTIONS):
    """Requests per second, latencies in ms, processor time in µs, answers that were not 200."""
    before = cpu_of(pid)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script)]
    done = subprocess.run(
        [*command, f"http://127.0.0.1:{port}"], capture_output=True, text=True, check=True
    )
    text = done.stdout

    def latency(share):
        value, unit = re.search(rf"\n\s+{share}%\s+([\d.]+)(\w+)", text).groups()
        return float(value) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]

    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
    return {
        "rate": rate,
        "p50": latency(50),
        "p99": latency(99),
        "cpu": (cpu_of(pid) - before) / (rate * seconds) * 1e6,
        "wrong": int(wrong[1]) if wrong else 0,
    }


class Service:
    """A supervised service over many random items."""

    def __init__(self, folder, items, durability, learner):
        from lser.online.service.server import Options
        from lser.online.service.supervisor import Supervisor

        settings = {
            "features": FEATURES, "window": 2.0, "publish_every": 1.0, "cold": "none",
            "learning_starts": 200, "snapshot_every": 30.0, "lag_limit": 2_000,
        }  # fmt: skip
        self.port = free_port()
        self.folder = folder
        options = Options(
            shop=str(folder), items=items, port=self.port, durability=durability, learner=learner,
            settings=settings,
        )  # fmt: skip
        self._supervisor = Supervisor(options)
        self._thread = threading.Thread(target=self._supervisor.run)
        self._thread.start()
        assert self._supervisor.wait_until_ready(300)

    @property
    def pid(self):
        """The server's process."""
        return self._supervisor.pid

    def teach(self, seconds):
        """Clicks on pages, for so long and until there is a policy to serve."""
        rng, end, version = np.random.default_rng(0), time.monotonic() + seconds, "0"
        while time.monotonic() < end or version == "0":
            body = {"user": f"t{rng.integers(500)}", "features": [0.1] * FEATURES, "k": 10}
            page = self.post("/recommend", body)
            self.post("/feedback", {"page": page["id"], "clicks": page["items"][:1]})
            version = page["policy"].rpartition("-")[2]
            assert time.monotonic() < end + 120, "the learner brings no policy"

    def post(self, path, body):
        """The answer to a request."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def stop(self):
        """End it in peace."""
        self._supervisor.stop()
        self._thread.join()


def traffic(arguments, scratch):
    """The rates and latencies of every service beside the echo, round by round."""
    items = scratch / "items.csv"
    vectors = np.random.default_rng(0).standard_normal((arguments.items, DIM))
    with items.open("w") as file:
        file.write("id," + ",".join(f"v{n}" for n in range(DIM)) + "\n")
        for number, row in enumerate(vectors.round(4).tolist()):
            file.write(f"{number}," + ",".join(map(str, row)) + "\n")
    script = scratch / "post.lua"
    script.write_text(SCRIPT % json.dumps([0.1] * FEATURES))
    (scratch / "echo_app.py").write_text(ECHO)
    port = free_port()
    echo = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "echo_app:app", "--port", str(port), "--no-access-log",
         "--log-level", "error"],
        cwd=scratch,
    )  # fmt: skip
    services = {}
    try:
        wait_for(f"http://127.0.0.1:{port}/docs")
        for name, durability, learner in (
            ("process", "process", "process"),
            ("power", "power", "off"),
            ("idle", "process", "off"),
        ):
            taught = Service(scratch / name, items, durability, "process")
            services[name] = taught
            taught.teach(10)
            if learner == "off":  # the policy stays, the learner goes
                taught.stop()
                services[name] = Service(scratch / name, items, durability, learner)
        found = {name: [] for name in ("echo", *services)}
        for _ in range(arguments.rounds):
            found["echo"].append(wrk(port, echo.pid, script, arguments.seconds))
            for name, service in services.items():
                found[name].append(wrk(service.port, service.pid, script, arguments.seconds))
        many = {name: [] for name in ("idle", "power")}
        for _ in range(arguments.rounds):
            for name in many:
                many[name].append(
                    wrk(services[name].port, services[name].pid, script, arguments.seconds, 64)
                )
    finally:
        for service in services.values():
            service.stop()
        echo.terminate()
        echo.wait()
    return found, many


def live_delay(scratch, rounds=12):
    """Seconds from a click to a policy that has learned from it, beyond window and interval."""
    from lser.online import Recommender, Settings

    settings = Settings(
        arms=(("lser", 1.0),), window=1.0, publish_every=1.0, cold="none", learning_starts=5
    )
    vectors = np.random.default_rng(0).standard_normal((1_000, 8)).astype(np.float32)
    delays = []
    with Recommender(vectors, scratch / "delay", settings=settings, learner="process") as shop:
        for _ in range(100):
            shop.recommend("warm")
        time.sleep(8)
        for _ in range(rounds):
            page = shop.recommend("u")
            shop.feedback(page.id, page.items[:1])
            clicked, seen = time.monotonic(), shop.log.head
            while time.monotonic() - clicked < 30:
                versions = shop.books.arms.versions.get("lser")
                current = versions.about[versions.current] if versions and versions.current else {}
                if current.get("cursor", 0) > seen and ("lser", versions.current) in shop._policies:
                    learned = current["pages"]
                    if learned >= shop.books.joins.closed:
                        break
                time.sleep(0.01)
            delays.append(time.monotonic() - clicked - settings.window - settings.publish_every)
    return delays


def learner_speed(scratch, pages=1_500):
    """Updates per second of the DDPG arm over a recorded log, beside `lser.train`'s."""
    import gymnasium as gym

    import lser
    from lser.online import Recommender, Settings
    from lser.online.folder_store import FolderShelf
    from lser.online.learning import Learning
    from lser.online.sqlite_reader import SqliteReader

    settings = Settings(
        arms=(("lser-ddpg", 1.0),), cold="none", window=0.5, learning_starts=128, batch_size=128,
        publish_every=1e6, snapshot_every=1e6,
    )  # fmt: skip
    vectors = np.random.default_rng(0).standard_normal((1_000, 8)).astype(np.float32)
    folder = scratch / "learner"
    with Recommender(vectors, folder, features=8, settings=settings, learner="off") as shop:
        for number in range(pages):
            page = shop.recommend(f"u{number % 50}", np.ones(8))
            shop.feedback(page.id, page.items[: number % 3])
        time.sleep(0.6)
        shop.recommend("u")

    class Nowhere:
        def send(self, kind, id, body):
            pass

    def online():
        reader = SqliteReader(folder)
        learning = Learning(FolderShelf(folder), reader, Nowhere())
        learning.step(600)
        updates, began = learning.learners["lser-ddpg"].updates, time.perf_counter()
        while learning.step(2_000):
            pass
        done = learning.learners["lser-ddpg"].updates - updates
        reader.close()
        return done / (time.perf_counter() - began)

    def train():
        env = gym.make_vec("lser/Bazaar-v0", num_envs=8)
        width = env.single_observation_space.shape[0]
        agent = lser.DDPG(width, env.single_action_space, seed=0)
        replay = lser.LocalityReplay(50_000, width, 8, bits=6, seed=0)
        updates = began = 0
        for step in lser.train(env, agent, replay, seed=0):
            if began == 0 and step.updates > 200:
                updates, began = step.updates, time.perf_counter()
            if step.updates > 1_200:
                break
        return (step.updates - updates) / (time.perf_counter() - began)

    return [(online(), train()) for _ in range(3)]


def memory(scratch, decisions):
    """Resident megabytes after each tenth of so many decisions."""
    from lser.online import Recommender, Settings
    from lser.online.desk import Request

    settings = Settings(window=0.5, cold="none", retention_events=50_000, visitors=5_000)
    vectors = np.random.default_rng(0).standard_normal((1_000, 8)).astype(np.float32)
    sizes = []
    with Recommender(vectors, scratch / "memory", settings=settings, learner="off") as shop:
        part, done = max(decisions // 10, 1), 0
        while done < decisions:
            for _ in range(part // 200 or 1):
                users = [f"u{(done + n) % 20_000}" for n in range(200)]
                entries = [shop.desk.decision(Request(user)).entry for user in users]
                shop.log.append(*entries)
                done += 200
            text = Path("/proc/self/statm").read_text()
            sizes.append(int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6)
    return sizes


def ratios(found, name, key, over="echo"):
    return [one[key] / other[key] for one, other in zip(found[name], found[over], strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="lser-bench-"))
    try:
        found, many = traffic(arguments, scratch)
        delays = live_delay(scratch)
        speed = learner_speed(scratch)
        sizes = memory(scratch, arguments.decisions)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for name, rounds in found.items():
        keys = ("rate", "p50", "p99", "cpu")
        rate, p50, p99, cpu = (statistics.median(r[key] for r in rounds) for key in keys)
        print(f"{name:<9}{rate:7.0f}/s  p50 {p50:6.2f}  p99 {p99:6.2f} ms  {cpu:4.0f} µs of CPU")
    rows = {
        "durable /recommend beside FastAPI echo, learner idle (>= .5)": ratios(
            found, "idle", "rate"
        ),
        "processor time a request, echo's beside it": ratios(found, "echo", "cpu", "idle"),
        "the same, learner running": ratios(found, "process", "rate"),
        "p99 beside echo, learner running (<= 3)": ratios(found, "process", "p99"),
        "durability power beside process, 64 connections (>= .8)": ratios(
            many, "power", "rate", "idle"
        ),
        "learner updates/s beside lser.train (>= .8)": [a / b for a, b in speed],
        "click to live policy, s beyond window and interval (p95 <= 1)": sorted(delays),
        "resident MB over the run (flat)": sizes,
    }
    for name, values in rows.items():
        print(f"{name}: {', '.join(f'{v:.2f}' for v in values)}")
    wrong = sum(r["wrong"] for rounds in (*found.values(), *many.values()) for r in rounds)
    print(f"answers other than 200: {wrong}")
    if arguments.out:
        arguments.out.write_text(
            json.dumps({"rounds": found, "many": many, "rows": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
