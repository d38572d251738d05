"""Receipts, verified by the very lines of Python that docs/receipts.md shows, and by the executable without a server."""

import json
import re
import subprocess
import sys

import pytest

from house import ROOT, executable

PAGE = (ROOT / "docs/receipts.md").read_text(encoding="utf-8")
GOLDEN = ROOT / "crates/store/tests/golden"


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path_factory.mktemp("docs") / "verify.py"
    path.write_text(text, encoding="utf-8")
    return path


def run(script, *files):
    command = [sys.executable, str(script), *(str(file) for file in files)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def proof(house, client, tmp_path):
    """The receipt of a call just made, and the published keys, as files."""
    reply = client.chat.completions.with_raw_response.create(
        model="tollgate-demo", messages=[{"role": "user", "content": "A receipt, please. [[sim:tokens=7]]"}]
    )
    call = reply.headers["x-request-id"]
    house.usage(call)
    receipt, keys = tmp_path / "receipt.json", tmp_path / "keys.json"
    receipt.write_bytes(house.request("GET", f"/v1/usage/{call}/receipt")[2])
    keys.write_bytes(house.request("GET", "/.well-known/tollgate-receipts")[2])
    return call, receipt, keys


def test_the_lines_of_the_page_verify_a_receipt(house, proof, script):
    call, receipt, keys = proof
    done = run(script, receipt, keys)
    charge = house.usage(call)["charge_nano_usd"]
    assert (done.returncode, done.stdout.split()) == (0, [call, str(charge), "nano-USD"]), done.stderr
    assert charge > 0


def test_the_lines_of_the_page_compare_it_with_its_price(house, proof, script, tmp_path):
    _, receipt, keys = proof
    price_id = json.loads(receipt.read_text(encoding="utf-8"))["receipt"]["calculation"]["price_id"]
    price = tmp_path / "price.json"
    price.write_bytes(house.request("GET", f"/api/pricing/versions/{price_id}")[2])
    done = run(script, receipt, keys, price)
    assert done.returncode == 0, done.stderr
    price.write_text(price.read_text(encoding="utf-8").replace("0", "1", 1), encoding="utf-8")
    assert run(script, receipt, keys, price).returncode != 0


def test_the_executable_verifies_it_without_a_server(proof, tmp_path):
    call, receipt, keys = proof
    command = [executable(), "--config", str(tmp_path / "none.toml"), "receipt", "verify", str(receipt)]
    done = subprocess.run([*command, "--keys", str(keys)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and f"valid: {call}" in done.stdout, (done.stdout, done.stderr)


def test_the_golden_receipt_verifies_in_both(script, tmp_path):
    receipt, keys = GOLDEN / "receipt.json", GOLDEN / "receipt-keys.json"
    done = run(script, receipt, keys)
    assert (done.returncode, done.stdout.split()[1:]) == (0, ["7616578", "nano-USD"]), done.stderr
    assert run(script, receipt, keys, GOLDEN / "price.json").returncode == 0
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(json.loads(receipt.read_text()), indent=4), encoding="utf-8")
    assert run(script, pretty, keys).returncode == 0


def test_a_changed_digit_anywhere_fails(script, tmp_path, monkeypatch):
    """The lines of the page, for every character of the golden receipt; in this process, because they are some thousand."""
    text = (GOLDEN / "receipt.json").read_text(encoding="utf-8").strip()
    program = compile(script.read_text(encoding="utf-8"), "verify.py", "exec")
    file = tmp_path / "changed.json"
    monkeypatch.setattr(sys, "argv", ["verify.py", str(file), str(GOLDEN / "receipt-keys.json")])

    def holds(text):
        file.write_text(text, encoding="utf-8")
        try:
            exec(program, {"__name__": "__main__"})
        except Exception:
            return False
        return True

    assert holds(text), "unchanged it holds"
    tried = 0
    for at, old in enumerate(text):
        for new in "0123456789" if old.isdigit() else "aZ_":
            if new != old:
                tried += 1
                assert not holds(text[:at] + new + text[at + 1 :]), (at, old, new)
    assert tried > 3_000
