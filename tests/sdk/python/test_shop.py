"""docs/shop.md does what it says: both of its scripts run as they stand against the house."""

import os
import re
import subprocess
import sys

import pytest

from house import ROOT

PAGE = (ROOT / "docs/shop.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("language", ["sh", "python"])
def test_the_scripts_of_the_page_run(house, language, tmp_path):
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    script = tmp_path / f"shop.{language}"
    script.write_text(text, encoding="utf-8")
    command = ["sh" if language == "sh" else sys.executable, str(script)]
    environment = {**os.environ, "BASE": house.base_url, "ADMIN_KEY": house.admin_key}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tollgate-demo" in done.stdout, done.stdout
    name = "Ada Lovelace" if language == "sh" else "Grace Hopper"
    account = next(one for one in house.cli("account", "list") if one["name"] == name)
    assert account["suspended_at_ms"] and account["paid_available_nano_usd"] < 20_000_000_000
    if language == "python":
        actions = ["account.suspend", "credit.top_up", "key.create", "key.create", "account.create"]
        assert str(actions) in done.stdout, done.stdout
