#!/usr/bin/env python3
"""Recomputes the public price list from the TOML of a catalog, and compares.

    records.py FILE.toml … <view.json

The view says who looks (`groups`, `topped_up`, `known`), when (`at_ms`), and what the gateway shows (`record`). Shares nothing with the crate:
another language, and fractions in place of its arithmetic. Exit code 1 with one line for each member that differs.
"""

import json
import sys
import tomllib
from datetime import timezone
from decimal import Decimal
from fractions import Fraction

FACES = ["input", "output", "cache_read", "cache_write", "cache_write_1h", "image_input", "image_output", "audio_input",
         "audio_output", "per_call", "video_second"]
MAIN = {"tokens": "input", "characters": "input", "audio_duration": "input", "per_call": "per_call",
        "per_second": "video_second"}
LIKE = {"cache_read": "input", "cache_write": "input", "cache_write_1h": "cache_write", "image_input": "input",
        "audio_input": "input", "image_output": "output", "audio_output": "output"}
SPECS = ["type", "context_window", "max_input_tokens", "max_output_tokens", "input_modalities", "output_modalities",
         "reasoning_efforts", "resolutions", "max_duration_seconds", "pricing_notes"]
CHAT = {"openai", "anthropic", "openai-response", "gemini"}
KINDS = {"image-generation": ("image", ["image"], ["text-to-image"]), "openai-video": ("video", ["video"], ["text-to-video"]),
         "audio-speech": ("tts", ["audio-speech"], ["text-to-speech"]),
         "audio-transcription": ("asr", ["audio-speech"], ["transcription"]),
         "realtime": ("voice", ["text-multimodal", "audio-speech"], ["voice-conversation"]),
         "music-generation": ("music", ["music"], ["music"]), "system-one": ("decision", ["decision"], ["decision"]),
         "embeddings": ("embedding", ["embedding"], ["embedding"]), "jina-rerank": ("rerank", ["rerank"], ["rerank"])}


def fraction(value):
    return Fraction(str(value)) if not isinstance(value, int) else Fraction(value)


def decimal(value):
    """Twelve places, half up, as a number of JSON."""
    scaled = value * 10**12
    whole = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    return Decimal(whole).scaleb(-12)


def percent(old, new):
    if old == 0:
        return None
    hundredths = abs(old - new) * 10_000 / old
    cut = Decimal(int(hundredths)) / 100
    return -cut if new > old else cut


def verdict(listed, sold):
    return "below_list" if sold < listed else "above_list" if sold > listed else "at_list"


def once(words):
    return list(dict.fromkeys(words))


def endpoint_types(name, model):
    if "supported_endpoint_types" in model:
        return model["supported_endpoint_types"]
    return ["openai", "anthropic", "openai-response"] + (["gemini"] if name.startswith("gemini-") else [])


def labels(model, types):
    """Type, capabilities and tasks, where they are not given."""
    meaning = [KINDS.get(kind, ("llm", ["text-multimodal"], ["chat"])) for kind in types]
    kinds = [one[0] for one in meaning]
    kind = model.get("type") or ("llm" if "llm" in kinds[1:] else kinds[0] if kinds else "llm")
    inputs = model.get("input_modalities", [])
    reasons = model.get("reasoning_efforts") or model.get("chat", {}).get("thinks_always")
    tasks = []
    for own, (first, _, its) in zip(types, meaning):
        tasks += its
        if first == "llm":
            tasks += ["reasoning"] if reasons else []
            tasks += ["vision"] if {"image", "video"} & set(inputs) else []
        if own == "image-generation" and "image" in inputs:
            tasks += ["image-editing"]
        if own == "openai-video":
            tasks += [task for need, task in (("image", "image-to-video"), ("video", "video-editing")) if need in inputs]
    capabilities = model.get("capabilities") or once(word for one in meaning for word in one[1])
    return kind, capabilities, model.get("tasks") or once(tasks)


def selling(faces, face):
    """What a face costs, written or not; None where it is not sold."""
    if face in faces:
        return faces[face]
    return selling(faces, LIKE[face]) if face in LIKE else None


def ratios(unit, faces):
    main = MAIN[unit]
    if main in ("per_call", "video_second"):
        return {"quota_type": 1, "model_ratio": Decimal(0), "model_price": decimal(Fraction(faces[main], 10**6))}
    shown = {"quota_type": 0, "model_ratio": decimal(Fraction(faces["input"], 2 * 10**6)), "model_price": Decimal(0)}
    of = {"completion_ratio": ("output", "input"), "cache_ratio": ("cache_read", "input"),
          "create_cache_ratio": ("cache_write", "input"), "image_ratio": ("image_input", "input"),
          "audio_ratio": ("audio_input", "input"), "audio_completion_ratio": ("audio_output", "audio_input")}
    for name, (face, base) in of.items():
        below = selling(faces, base) or 0
        if below > 0 and (face in faces or face == "output"):
            shown[name] = decimal(Fraction(faces.get(face, 0), below))
    return shown


def milliseconds(at):
    return int(at.timestamp() * 1000)


def as_of(model, at_ms):
    """The model at the prices in force at an instant."""
    for change in model.get("change", []):
        if milliseconds(change["from"]) <= at_ms:
            model = {key: value for key, value in model.items() if key not in ("price", "paid", "tier", "list")}
            model |= {key: value for key, value in change.items() if key != "from"}
    return completed(model)


def announced(model, at_ms):
    shown = []
    for change in model.get("change", []):
        begin = milliseconds(change["from"])
        if begin > at_ms:
            utc = change["from"].astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            shown.append({"from": utc, "old": prices(as_of(model, begin - 1)), "new": prices(as_of(model, begin))})
    return shown


def book(model):
    return prices(model) | {"route_count": len(model["route"])}


def prices(model):
    price, paid = model["price"], model.get("paid")
    shown = {"standard": price, "paid": paid}
    tiers = model.get("tier", [])
    if tiers:
        conditions = [one.get("dim") for tier in tiers for one in tier["when"]]
        shown |= {"tier_count": len(tiers), "tiers": [tier_of(tier, price, paid) for tier in tiers],
                  "has_request_condition": any(dim != "wall_clock" for dim in conditions),
                  "has_time_condition": "wall_clock" in conditions}
    return shown


def tier_of(tier, price, paid):
    when = []
    for one in tier["when"]:
        own = dict(one)
        for fact in ("thinking", "endpoint"):
            if fact in own:
                own = {"dim": "request_attr", "path": fact, "equals": own[fact]}
        for key in ("weekdays", "hours"):
            if key in own:
                own[key] = sorted(set(own[key]))
        if "equals" in own:
            own["equals"] = str(own["equals"]).lower() if isinstance(own["equals"], bool) else str(own["equals"])
        when.append(own)
    shown = {"tier": tier["name"], "when": when}
    if "price" in tier:
        return shown | {"standard": tier["price"], "paid": tier.get("paid")}
    by = fraction(tier["multiplier"])
    scaled = lambda faces: {face: -(-micro * by.numerator // by.denominator) for face, micro in faces.items()}
    return shown | {"standard": scaled(price), "paid": scaled(paid) if paid else None, "multiplier": str(by)}


def vendor_list(listed, unit, faces, rate):
    to_usd, main = fraction(listed.get("usd_rate", 1)), MAIN[unit]
    usd = lambda micro, by: decimal(Fraction(micro) * by / 10**6)
    shown, unverified = [], []
    for face in FACES + sorted(set(faces) - set(FACES)):
        sold = selling(faces, face)
        if sold is None:
            continue
        if face in listed["price"]:
            old, new = listed["price"][face] * to_usd, sold * rate
            shown.append({"face": face, "list_usd": usd(listed["price"][face], to_usd), "selling_usd": usd(sold, rate),
                          "discount_pct": percent(old, new), "verdict": verdict(old, new)})
        elif face in faces:
            unverified.append(face)
    old, new = listed["price"][main] * to_usd, faces[main] * rate
    return {"verdict": verdict(old, new), "discount_pct": percent(old, new), "list_currency": listed.get("currency", "USD"),
            "list_input": usd(listed["price"][main], 1), "list_input_usd": usd(listed["price"][main], to_usd),
            "selling_usd": usd(faces[main], rate), "list_source": listed["source"],
            "unit": {"per_call": "call", "video_second": "second"}.get(main, "1M tokens"),
            "verified_at": str(listed["verified_at"]) if "verified_at" in listed else None,
            "faces": shown, "unverified_faces": unverified}


class Catalog:
    def __init__(self, files):
        self.models, self.groups, self.vendors, order = {}, {"default": {"multiplier": 1}}, {}, []
        for name in files:
            with open(name, "rb") as file:
                toml = tomllib.load(file)
            self.models |= toml.get("model", {})
            self.groups |= toml.get("group", {})
            self.vendors |= toml.get("vendor", {})
            order += toml.get("auto_groups", [])
        rest = sorted(group for group in self.groups if group != "default") + ["default"]
        self.order = once(order + rest)

    def public(self, group):
        return self.groups[group].get("public", group == "default")


def completed(model):
    """By characters and by seconds of audio, what comes out is free, and the record says so."""
    if model.get("billing_unit") not in ("characters", "audio_duration"):
        return model
    return model | {key: {"output": 0} | model[key] for key in ("price", "paid") if key in model}


def record(catalog, view, name, model):
    comes, model = announced(model, view["at_ms"]), as_of(model, view["at_ms"])
    sold_to = once(model.get("enable_groups", ["default"]))
    group = next((own for own in view["groups"] if own in sold_to), None)
    if group is None or (model.get("login_required") and not view["known"]):
        return None
    unit, types = model.get("billing_unit", "tokens"), endpoint_types(name, model)
    kind, capabilities, tasks = labels(model, types)
    faces = model["paid"] if view["topped_up"] and "paid" in model else model["price"]
    rate = fraction(catalog.groups[group]["multiplier"])
    vendor, speech = catalog.vendors.get(model.get("vendor"), {}), model.get("speech", {})
    specs = {key: ({"type": kind} | model)[key] for key in SPECS if ({"type": kind} | model).get(key)}
    specs |= {key: speech[own] for key, own in (("voices", "voices"), ("response_formats", "formats"),
                                               ("max_characters", "max_characters")) if speech.get(own)}
    mp3 = "mp3" if "mp3" in speech.get("formats", []) else None
    shown = {
        "model_name": name, "description": model.get("description", ""),
        "specs": json.dumps(specs, separators=(",", ":"), ensure_ascii=False),
        "login_required": int(model.get("login_required", False)), "icon": model.get("icon") or vendor.get("icon"),
        "tags": ",".join(model.get("tags", [])), "vendor_id": vendor.get("id", model.get("vendor_id")),
        "owner_by": model.get("owner_by") or (vendor and vendor.get("name", model["vendor"])) or None,
        "enable_groups": [own for own in sold_to if own in view["groups"] or catalog.public(own)],
        "supported_endpoint_types": types, "capabilities": capabilities, "tasks": tasks,
        "billing_rate": decimal(rate), "billing_rate_source": "default" if group == "default" else f"group:{group}",
        "billing_unit": unit, "default_voice": model.get("default_voice"),
        "default_response_format": model.get("default_response_format") or mp3,
        "speech_input": model.get("speech_input") or ("text" if speech else None),
        "accepted_upload_formats": model.get("accepted_upload_formats") or None,
        "vendor_list": vendor_list(model["list"], unit, faces, rate) if "list" in model else None,
        "book_faces": book(model), "announced": comes or None,
    }
    shown |= ratios(unit, faces)
    return {key: value for key, value in shown.items() if value is not None}


def main():
    view = json.load(sys.stdin, parse_float=Decimal)
    catalog, given = Catalog(sys.argv[1:]), view["record"]
    wanted = [record(catalog, view, name, model) for name, model in sorted(catalog.models.items())]
    wanted = [one for one in wanted if one]
    knows = lambda group: group in view["groups"] or catalog.public(group)
    wrong = []

    def same(where, ours, theirs):
        if ours != theirs:
            wrong.append(f"{where}: {ours!r} in TOML, {theirs!r} shown")

    same("auto_groups", [group for group in catalog.order if knows(group)], given["auto_groups"])
    ratio = {group: decimal(fraction(own["multiplier"])) for group, own in catalog.groups.items() if knows(group)}
    same("group_ratio", ratio, given["group_ratio"])
    usable = {group: own.get("description", "") for group, own in catalog.groups.items() if group in view["groups"]}
    same("usable_group", usable, given["usable_group"])
    seen = {one.get("vendor_id") for one in wanted}
    tables = {own["id"]: {"name": name} | own for name, own in catalog.vendors.items() if own["id"] in seen}
    shown = {one["id"]: one for one in given["vendors"] if one["id"] in tables}
    same("vendors", {key: {"description": ""} | own for key, own in tables.items()}, shown)
    same("models", [one["model_name"] for one in wanted], [one["model_name"] for one in given["data"]])
    changes = [{"model_name": one["model_name"]} | change for one in wanted for change in one.get("announced", [])]
    same("announced", sorted(changes, key=lambda one: (one["from"], one["model_name"])), given.get("announced", []))
    versions = {one["pricing_version"] for one in given["data"]}
    if len(versions) > 1:
        wrong.append(f"pricing_version: {versions}")
    for ours, theirs in zip(wanted, given["data"]):
        theirs = {key: value for key, value in theirs.items() if key not in ("pricing_version", "route_health")}
        for key in sorted(ours.keys() | theirs.keys()):
            same(f"{ours['model_name']}.{key}", ours.get(key), theirs.get(key))
    print("\n".join(wrong) or f"{len(wanted)} records, every member as computed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
