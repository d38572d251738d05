#!/usr/bin/env python3
"""Does the sums of these tables a second time, with nothing of the gateway: Python's fractions, time zones and TOML.

    sums.py            every row must say what comes out here; exit code 1 and the rows that do not
    sums.py --write    fill in tier, lines and total
"""
import re
import sys
import tomllib
from datetime import datetime
from fractions import Fraction
from math import ceil
from pathlib import Path
from zoneinfo import ZoneInfo

HERE = Path(__file__).parent
SHOP = tomllib.loads((HERE / "shop.toml").read_text())
FACES = ["input", "output", "cache_read", "cache_write", "cache_write_1h", "image_input", "image_output",
         "audio_input", "audio_output", "per_call", "video_second"]
ORDINARY = {"cache_read": "input", "cache_write": "input", "cache_write_1h": "cache_write", "image_input": "input",
            "audio_input": "input", "image_output": "output", "audio_output": "output"}
FREE = {"characters": ["output", "audio_output"], "audio_duration": ["output"]}
MOST = 2**63 - 1


def holds(when, facts):
    match when["dim"]:
        case "context_len":
            return facts["ctx"] > when["context_len_gt"]
        case "request_attr":
            return facts["attr"].get(when["path"]) == when["equals"]
        case "wall_clock":
            local = facts["at"].astimezone(ZoneInfo(when["timezone"]))
            return (local.isoweekday() in when.get("weekdays", range(1, 8))
                    and local.hour in when.get("hours", range(24)))


def price_of(model, facts):
    """Name of the tier, prices by face, multiplier."""
    base = {False: model["price"], True: model.get("paid", model["price"])}
    for tier in model.get("tier", []):
        if all(holds(when, facts) for when in tier["when"]):
            if "multiplier" in tier:
                return tier["name"], base[facts["paid"]], Fraction(tier["multiplier"])
            prices = {False: tier["price"], True: tier.get("paid", tier["price"])}
            return tier["name"], prices[facts["paid"]], Fraction(1)
    return "-", base[facts["paid"]], Fraction(1)


def complete(prices, unit):
    prices = dict(prices)
    if unit == "tokens":
        for face in FACES:
            if face not in prices and face in ORDINARY:
                prices[face] = prices[ORDINARY[face]]
    for face in FREE.get(unit, []):
        prices.setdefault(face, 0)
    return prices


def usd(amount):
    text = f"{amount.numerator * 10**9 // amount.denominator:010d}"
    return f"{text[:-9]}.{text[-9:]}".rstrip("0").rstrip(".")


def run(name, fact_text, used_text):
    model = SHOP["model"][name]
    unit = model.get("billing_unit", "tokens")
    facts = {"ctx": 0, "at": datetime.fromisoformat("1970-01-01T00:00:00+00:00"), "paid": False, "attr": {}}
    group = "default"
    for fact in fact_text.split():
        key, _, value = fact.partition("=")
        match key:
            case "topped-up":
                facts["paid"] = True
            case "ctx":
                facts["ctx"] = int(value)
            case "at":
                facts["at"] = datetime.fromisoformat(value.replace("Z", "+00:00"))
            case "group":
                group = value
            case _:
                facts["attr"][key] = value
    if group not in model.get("enable_groups", ["default"]):
        return "-", "-", "the model is not offered to this group"
    tier, prices, multiplier = price_of(model, facts)
    prices = complete(prices, unit)
    multiplier *= Fraction(SHOP["group"].get(group, {"multiplier": 1})["multiplier"])
    used = {}
    for key, value in re.findall(r'(\w+)=("[^"]*"|\S+)', used_text):
        if key == "text":
            used["input"] = len(value.strip('"'))
        elif key == "recording":
            used["input"] = max(1, ceil(Fraction(value.rstrip("s").replace("_", ""))))
        else:
            used[key] = int(value)
    total, lines = Fraction(0), []
    for face in FACES:
        quantity = used.get(face, 0)
        if quantity == 0:
            continue
        if face not in prices:
            return tier, "-", f"the model has no price for {face}"
        each = Fraction(prices[face], 10**6)
        mark, per = "", Fraction(1, 10**6)
        if face in ("per_call", "video_second"):
            mark, per = ("s" if face == "video_second" else ""), Fraction(1)
        elif face == "input" and unit == "characters":
            mark = "c"
        elif face == "input" and unit == "audio_duration":
            mark, per = "s*50/3", Fraction(1000, 60) / 10**6
        total += quantity * per * each
        lines.append(f"{quantity}{mark} {face}@{usd(each)}")
    nano = ceil(total * multiplier * 10**9)
    if nano > MOST:
        return tier, "-", "the charge is too large to be an amount of money"
    text = " + ".join(lines) or "-"
    if multiplier != 1:
        text += f"; x {multiplier}"
    return tier, text, usd(Fraction(nano, 10**9))


def aligned(lines):
    rows = [line for line in lines if isinstance(line, list)]
    widths = [max(len(row[at]) for row in rows) for at in range(6)]
    widths = [min(width, 44) for width in widths[:5]] + [0]
    for line in lines:
        if isinstance(line, list):
            line = " | ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        yield line


def main():
    write = "--write" in sys.argv
    rows, wrong = 0, []
    for path in sorted(HERE.glob("*.txt")):
        lines = []
        for line in path.read_text().splitlines():
            if not line.strip() or line.startswith("#"):
                lines.append(line)
                continue
            cells = [cell.strip() for cell in line.split("|")]
            want = run(*cells[:3])
            rows += 1
            if tuple(cells[3:]) != want and not write:
                wrong.append(f"{path.name}: {line}\n   here: {' | '.join(want)}")
            lines.append([*cells[:3], *want])
        if write:
            path.write_text("\n".join(aligned(lines)) + "\n")
    print("\n".join([*wrong, f"{rows} rows, {len(wrong)} wrong"]))
    return 1 if wrong else 0


sys.exit(main())
