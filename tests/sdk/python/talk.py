"""What the suites of realtime sessions share: sounds, and the rows of what was charged."""

import base64
import struct
import time


def pcm(milliseconds, level, rate=24_000):
    """A square wave that can be told from silence."""
    samples = (level if at // 40 % 2 else -level for at in range(rate * milliseconds // 1000))
    return b"".join(struct.pack("<h", sample) for sample in samples)


def text(audio):
    return base64.b64encode(audio).decode()


class Rows:
    """Rows of one model that are charged while a test runs. A session lets its last hold go when it is closed, so
    whoever counts money waits for that."""

    def __init__(self, house, model):
        self.house, self.model = house, model
        self.settled()
        self.before = {row["call_id"] for row in self.all()}
        self.available = house.balance()["available_nano_usd"]

    def all(self):
        rows = self.house.get("/v1/usage?limit=100")["data"]
        return [row for row in rows if row["model"] == self.model and row["charge_nano_usd"]]

    def settled(self):
        for _ in range(600):
            if not self.house.balance()["held_nano_usd"]:
                return
            time.sleep(0.05)
        raise AssertionError("a hold stays open")

    def charged(self, count=1):
        """The new rows, oldest first; the balance fell by exactly their charges."""
        self.settled()
        rows = [row for row in reversed(self.all()) if row["call_id"] not in self.before]
        assert len(rows) == count, rows
        fell = self.available - self.house.balance()["available_nano_usd"]
        assert fell == sum(row["charge_nano_usd"] for row in rows), (fell, rows)
        return rows
