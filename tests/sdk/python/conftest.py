"""One house for the whole run. It is checked when it is left: every call is closed, and the books add up."""

import openai
import pytest

from house import House, Till


@pytest.fixture(scope="session")
def house(tmp_path_factory):
    yield from served(tmp_path_factory.mktemp("house"), rows=30)


@pytest.fixture(scope="session")
def tls_house(tmp_path_factory):
    """The same with TLS. Clients trust it as `tollgate demo --tls` says."""
    patch = pytest.MonkeyPatch()
    for house in served(tmp_path_factory.mktemp("tls"), "--tls", rows=5):
        patch.setenv("SSL_CERT_FILE", house.authority)
        yield house
        patch.undo()


def served(folder, *options, rows):
    house = House(folder, *options)
    try:
        yield house
        held = [account for account in house.cli("account", "list") if account["trial_held_nano_usd"] or account["paid_held_nano_usd"]]
        assert held == [], "holds are left open"
    finally:
        code = house.stop()
    assert code == 0, code
    report = house.cli("ledger", "verify")
    assert report["breaches"] == [] and report["usage_rows"] > rows, report


@pytest.fixture
def client(house):
    """Strict: a reply that does not fit the SDK's types raises. No retries: what the gateway says is what is seen."""
    options = dict(api_key=house.key, base_url=house.base_url + "/v1", max_retries=0, timeout=30)
    with openai.OpenAI(**options, _strict_response_validation=True) as client:
        yield client


@pytest.fixture
def till(house):
    return Till(house)


def pytest_report_header():
    return f"openai {openai.__version__}"
