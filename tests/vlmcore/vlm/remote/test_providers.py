"""Hosted providers: their own host, over TLS, and nobody else sees their key."""

from __future__ import annotations

import ssl
from pathlib import Path
from unittest import mock

import pytest
import trustme

from model_server_cases import MESSAGE_OF_ANTHROPIC, Script, model, says, serving, streams
from routing_cases import ADDRESSES, routed
from vlmcore.errors import EndpointError, ModelServerRefusedError, ModelServerUnavailableError
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.providers import PROVIDERS, Provider, ServerProtocol

PROMPT = Prompt(text="What is this?")
PUBLIC = "93.184.216.34"
CHAT = [each for each in PROVIDERS if each.protocol is ServerProtocol.CHAT_COMPLETIONS]


def host_of(provider: Provider) -> str:
    return provider.base_url.split("/")[2]


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """An authority that this machine trusts, and a key for every provider."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    for variable in {each.key_variable for each in PROVIDERS}:
        monkeypatch.setenv(variable, f"sk-of-{variable}")
    return made


def proving(authority: trustme.CA, host: str) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(tls)
    return tls


def ask(provider: str, host: str, script: Script, authority: trustme.CA, address: str = PUBLIC):
    """Ask a server that stands where the provider is; give what it was asked, and the answer."""
    tls = proving(authority, host)
    with (
        mock.patch.dict(ADDRESSES, {host: address}),
        serving(script, tls=tls) as server,
        routed(server.port),
        load_predictor(f"{provider}:some-model") as predictor,
    ):
        return server.asked, predictor.generate(PROMPT)


@pytest.mark.parametrize("provider", CHAT, ids=lambda provider: provider.name)
def test_a_provider_is_asked_at_its_own_address_with_its_own_key(
    provider: Provider, authority: trustme.CA
) -> None:
    """
    Over real TLS, from the name to the answer.
    """
    (asked,), answer = ask(provider.name, host_of(provider), model, authority)
    path = provider.base_url.split(host_of(provider))[1].rstrip("/")
    assert "You asked: What is this?" == answer.text
    assert f"{path}/chat/completions" == asked.target
    assert host_of(provider) == asked.headers["host"]
    assert f"Bearer sk-of-{provider.key_variable}" == asked.headers["authorization"]
    assert "some-model" == asked.document["model"]
    assert 512 == asked.document[provider.length_field]


def test_anthropic_is_asked_in_its_own_protocol(authority: trustme.CA) -> None:
    """
    With the version that it wants to be told.
    """
    script = streams(*MESSAGE_OF_ANTHROPIC)
    (asked,), answer = ask("anthropic", "api.anthropic.com", script, authority)
    assert "A dog" == answer.text
    assert "/v1/messages" == asked.target
    assert ("sk-of-ANTHROPIC_API_KEY", "2023-06-01") == (
        asked.headers["x-api-key"],
        asked.headers["anthropic-version"],
    )
    assert "authorization" not in asked.headers


def test_a_key_follows_no_redirect(authority: trustme.CA) -> None:
    """
    Not even to the provider itself.
    """
    away = says(b"", status=307, more="location: https://evil.example/v1/chat/completions\r\n")
    with pytest.raises(ModelServerRefusedError, match="no redirect is followed"):
        ask("groq", "api.groq.com", away, authority)


def test_a_provider_whose_name_leads_into_a_private_network_is_not_asked(
    authority: trustme.CA,
) -> None:
    """
    A resolver that lies gets no key.
    """
    with pytest.raises(EndpointError, match="private network"):
        ask("groq", "api.groq.com", model, authority, address="10.0.0.5")


def test_who_cannot_prove_to_be_the_provider_gets_no_key(authority: trustme.CA) -> None:
    """
    A certificate for another name is none.
    """
    tls = proving(authority, "evil.example")
    with (
        mock.patch.dict(ADDRESSES, {"api.groq.com": PUBLIC}),
        serving(model, tls=tls) as server,
        routed(server.port),
        load_predictor("groq:some-model") as predictor,
        pytest.raises(ModelServerUnavailableError, match="certificate is not trusted"),
    ):
        predictor.generate(PROMPT)
    assert [] == server.asked
