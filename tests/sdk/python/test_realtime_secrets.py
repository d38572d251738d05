"""Client secrets with the official SDK, over TLS: an application makes one, and somebody without a key talks."""

import os

import openai
import pytest

from talk import Rows

pytestmark = pytest.mark.skipif(os.environ.get("TOLLGATE_SDKS") != "newest", reason="older SDKs know no client secrets")

MODEL = "demo-realtime"


def client(house, key=None):
    return openai.OpenAI(api_key=key or house.key, base_url=house.base_url + "/v1", max_retries=0, timeout=30, _strict_response_validation=True)


def talk(house, key, said="hi [[sim:tokens=2]]", **connect):
    """What a session says about itself, and what it answers."""
    with client(house, key).realtime.connect(**connect) as connection:
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": said}]}
        connection.conversation.item.create(item=item)
        connection.response.create()
        shown, answer = None, ""
        for event in connection:
            assert event.type != "error", event
            if event.type == "session.updated":
                shown = event.session
            elif event.type == "response.output_text.delta":
                answer += event.delta
            elif event.type == "response.done":
                return shown, answer


def test_a_secret_opens_the_session_it_was_made_for(tls_house):
    rows = Rows(tls_house, MODEL)
    session = {"type": "realtime", "model": MODEL, "output_modalities": ["text"], "instructions": "Be brief."}
    made = client(tls_house).realtime.client_secrets.create(session=session, expires_after={"anchor": "created_at", "seconds": 120})
    assert made.value.startswith("ek_") and made.session.model == MODEL and made.session.instructions == "Be brief."
    for connect in ({"model": MODEL}, {}):
        shown, answer = talk(tls_house, made.value, **connect)
        assert (shown.instructions, shown.output_modalities, answer) == ("Be brief.", ["text"], "the toll")
    assert len(rows.charged(2)) == 2, "the account that made the secret pays"


def test_a_secret_is_bound(tls_house):
    made = client(tls_house).realtime.client_secrets.create(session={"type": "realtime", "model": MODEL})
    with pytest.raises(Exception, match="400"):
        talk(tls_house, made.value, model="demo-omni")
    with pytest.raises(openai.AuthenticationError, match="realtime sessions only"):
        client(tls_house, made.value).models.list()
    with pytest.raises(openai.NotFoundError):
        client(tls_house).realtime.client_secrets.create(session={"type": "realtime", "model": "no-such"})
    with pytest.raises(Exception, match="401"):
        talk(tls_house, "ek_none", model=MODEL)


def test_a_revoked_key_takes_its_secrets_along(tls_house):
    [account] = tls_house.cli("account", "list")
    key = tls_house.new_key(account["account_id"])
    made = client(tls_house, key["secret"]).realtime.client_secrets.create(session={"type": "realtime", "model": MODEL})
    with client(tls_house, made.value).realtime.connect(model=MODEL) as connection:
        assert connection.recv().type == "session.created"
        tls_house.cli("key", "revoke", key["key_id"])
        events = []
        with pytest.raises(Exception) as closed:
            while True:
                events.append(connection.recv())
    assert events[-1].type == "error" and events[-1].error.code == "invalid_api_key", events
    assert "1008" in str(closed.value), closed.value
    with pytest.raises(Exception, match="401"):
        talk(tls_house, made.value, model=MODEL)
