"""The house under test: the real executable in its own process, reached through a real socket.

`House` starts `tollgate demo` on a free port with a data folder of its own and stops it with SIGTERM. Its prices are
read from catalog/demo.toml here, by other code than the gateway's, so that an expected charge is a second opinion.
"""

import json
import os
import pathlib
import queue
import signal
import ssl
import subprocess
import threading
import time
import tomllib
import urllib.error
import urllib.request
from fractions import Fraction

ROOT = pathlib.Path(__file__).resolve().parents[3]
PRICED = [tomllib.loads((ROOT / "catalog" / name).read_text(encoding="utf-8"))["model"] for name in ("demo.toml", "dialects.toml")]
TWELVE = "the gate opens for every coin and counts each one with care"

# Which face prices which counter of a usage row; a face that a model does not have costs what its side costs.
INPUT = {"input": "input", "cache_read": "cache_read", "cache_write_5m": "cache_write", "cache_write_1h": "cache_write_1h"}
OUTPUT = {"output": "output", "reasoning": "output"}


def executable():
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return os.environ.get("TOLLGATE_BIN", str(target / "debug/tollgate"))


def price_of(counters, model, *, topped_up, multiplier=Fraction(1)):
    """Nano-USD for the counters of a usage row: micro-USD per million tokens, rounded up once."""
    table = next(models[model] for models in PRICED if model in models)
    prices = table.get("paid", table["price"]) if topped_up else table["price"]
    total = Fraction(0)
    for counter, face in (INPUT | OUTPUT).items():
        side = "input" if counter in INPUT else "output"
        fallback = prices.get("cache_write", prices.get(side)) if face == "cache_write_1h" else prices.get(side)
        total += Fraction(counters.get(counter, 0) * (prices.get(face, fallback) or 0), 1000)
    total += counters.get("calls", 0) * prices.get("per_call", 0) * 1000
    exact = total * multiplier
    return -((-exact.numerator) // exact.denominator)


def usd(nano):
    """Dollars as the gateway writes them: exact, no trailing zeros."""
    whole, rest = divmod(nano, 1_000_000_000)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".") if rest else str(whole)


class House:
    def __init__(self, folder, *options):
        self.folder = pathlib.Path(folder)
        self.log = open(self.folder / "log.jsonl", "wb")
        command = [executable(), "demo", "--listen", "127.0.0.1:0", "--json", "--data", str(self.folder / "data"), *options]
        # Tests that need a workflow verify it themselves.
        environment = os.environ | {"TOLLGATE_DEMO_DRAFTS": "true"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, env=environment)
        try:
            ready = json.loads(self._first_line(30))
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        self.base_url, self.key, self.admin_key = ready["base_url"], ready["key"], ready["admin_key"]
        self.sim_url = ready["sim_url"].removesuffix("/v1")
        # With `--tls`: the file that clients have to trust.
        self.authority = ready.get("ca_file")
        self.trust = ssl.create_default_context(cafile=self.authority) if self.authority else None

    def _first_line(self, seconds):
        lines = queue.Queue()
        threading.Thread(target=lambda: lines.put(self.process.stdout.readline()), daemon=True).start()
        line = lines.get(timeout=seconds)
        if not line:
            raise RuntimeError("tollgate ended at once: " + (self.folder / "log.jsonl").read_text(errors="replace"))
        return line

    def stop(self):
        """SIGTERM; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "did not stop after SIGTERM"
        finally:
            self.process.stdout.close()
            self.log.close()

    # The operator's side

    def cli(self, *arguments, check=True):
        command = [executable(), "--config", str(self.folder / "data/tollgate.toml"), "--json", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        if check:
            assert done.returncode == 0, (arguments, done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout) if done.stdout else None

    def account(self, name, *, trial=None, paid=None):
        """A new account and a key of it."""
        account = self.cli("account", "create", name, *(["--trial", trial] if trial else []))["account_id"]
        if paid:
            self.cli("account", "topup", account, paid)
        return account, self.new_key(account)["secret"]

    def new_key(self, account, *options):
        return self.cli("key", "create", account, *options)

    # The account holder's side

    def get(self, path, key=None):
        status, _, body = self.request("GET", path, key=key)
        assert status == 200, (path, status, body)
        return json.loads(body)

    def request(self, method, path, body=None, key=None, headers=()):
        """Status, headers and body, without any SDK in between."""
        request = urllib.request.Request(self.base_url + path, data=body, method=method)
        request.add_header("Authorization", f"Bearer {key or self.key}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in headers:
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.trust) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def balance(self, key=None):
        return self.get("/v1/balance", key)

    def usage(self, call_id, key=None, *, seconds=5):
        """The usage row of a call. A stream is closed with its last byte, a call whose client left a moment later."""
        deadline = time.monotonic() + seconds
        while True:
            status, _, body = self.request("GET", f"/v1/usage/{call_id}", key=key)
            row = json.loads(body)
            if status == 200 and row["ending"] is not None:
                return row
            assert time.monotonic() < deadline, (call_id, status, body)
            time.sleep(0.02)

    def newest(self):
        """The newest call of the account."""
        return next(iter(self.get("/v1/usage?limit=1")["data"]), None)

    def left(self, model, leave, *, seconds=10):
        """A client leaves in mid-stream: the provider notices at once, and the call is charged for what was said until then, at the
        published price. Works for SDKs that do not tell the id of a call."""
        mark, earlier = self.seen_by_provider(), self.newest()
        leave()
        deadline = time.monotonic() + seconds
        while True:
            row, [seen] = self.newest(), self.received(mark)
            ended = row and row["ending"] and (earlier is None or row["call_id"] != earlier["call_id"])
            if ended and seen["client_closed_at_ms"]:
                break
            assert time.monotonic() < deadline, (row, seen)
            time.sleep(0.02)
        # Gemini reports with every fragment what was used until then; for the others we count.
        assert (row["model"], row["ending"], row["estimated"]) == (model, "client_left", model != "gemini-demo-gemini"), row
        assert not seen["finished"], "the provider went on to its end"
        assert 0 < row["usage"]["output"] < 100, row
        assert row["charge_nano_usd"] == price_of(row["usage"], model, topped_up=self.balance()["topped_up"]), row
        assert row["charge_nano_usd"] <= row["hold_nano_usd"]

    # The provider's side

    def sim(self, path):
        with urllib.request.urlopen(self.sim_url + path, timeout=30) as reply:
            return json.loads(reply.read())

    def seen_by_provider(self):
        """A mark; `received(mark)` tells what reached the provider since."""
        return max((one["id"] for one in self.sim("/_sim/received")["received"]), default=0)

    def received(self, mark):
        return self.sim(f"/_sim/received?since={mark}")["received"]


class Till:
    """Watches one account over one test: what it was charged, to the nano-USD."""

    def __init__(self, house, key=None):
        self.house, self.key = house, key
        before = house.balance(key)
        assert before["held_nano_usd"] == 0, before
        self.available = before["available_nano_usd"]
        self.topped_up = before["topped_up"]

    def charged(self, call_id, model, *, ending="answered", estimated=False, multiplier=Fraction(1), **counters):
        """Checks the usage row of a call, and that the balance fell by exactly tokens × price; returns the row."""
        row = self.house.usage(call_id, self.key)
        assert (row["call_id"], row["model"], row["ending"]) == (call_id, model, ending), row
        assert row["estimated"] is estimated, row
        used = {name: count for name, count in row["usage"].items() if count}
        if not estimated:
            assert used == {name: count for name, count in counters.items() if count}, row
        expected = price_of(row["usage"], model, topped_up=self.topped_up, multiplier=multiplier)
        assert row["charge_nano_usd"] == expected, (row, expected)
        assert row["charge_usd"] == usd(expected)
        assert row["charge_nano_usd"] <= row["hold_nano_usd"]
        self.fell_by(expected)
        return row

    def free(self, call_id, *, ending, status):
        row = self.house.usage(call_id, self.key)
        assert (row["ending"], row["status"], row["charge_nano_usd"]) == (ending, status, 0), row
        self.fell_by(0)
        return row

    def fell_by(self, nano):
        now = self.house.balance(self.key)
        assert now["held_nano_usd"] == 0, now
        assert self.available - now["available_nano_usd"] == nano, (self.available, now, nano)
        assert now["available_usd"] == usd(now["available_nano_usd"])
        self.available = now["available_nano_usd"]
