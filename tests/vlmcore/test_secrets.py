"""Tests of `vlmcore.secrets`: no text shows a token."""

from __future__ import annotations

import copy
import json
import pickle
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.secrets import REDACTED, Secret, hosts_from_env, last_words, redact

TOKEN = "tok/en+abc=%41z"

tokens = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=60)

SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "URL": lambda token: quote(token, safe=""),
    "URL path": quote,
    "URL form": quote_plus,
    "lower-case URL": lambda token: quote(token, safe="").replace("%2F", "%2f"),
    "JSON": json.dumps,
    "JSON with escaped slashes": lambda token: json.dumps(token).replace("/", "\\/"),
    "repr": repr,
    "repr of bytes": lambda token: repr(token.encode()),
    "Base64": lambda token: b64encode(token.encode()).decode(),
    "Basic of a user": lambda token: b64encode(f"user:{token}".encode()).decode(),
    "Basic without a user": lambda token: b64encode(f":{token}".encode()).decode(),
    "Base64 of URLs": lambda token: urlsafe_b64encode(f"a:{token}:b".encode()).decode(),
}


def test_a_secret_shows_where_it_came_from_and_nothing_else() -> None:
    """
    In a repr, a text, a format and a list; and it has no attributes to walk through.
    """
    secret = Secret(TOKEN, source="VLA_POLICY_TOKEN")
    shown = "Secret(from='VLA_POLICY_TOKEN')"

    assert [shown] * 4 == [repr(secret), str(secret), f"{secret}", f"{[secret]}"[1:-1]]
    assert (TOKEN, "VLA_POLICY_TOKEN") == (secret.reveal(), secret.source)
    assert not hasattr(secret, "__dict__")


def test_comparing_secrets_tells_nothing_about_their_values() -> None:
    """
    The same token twice is two secrets.
    """
    assert Secret(TOKEN) != Secret(TOKEN)
    assert Secret(TOKEN) != TOKEN


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_secret_cannot_be_pickled(protocol: int) -> None:
    """
    What is pickled lies on a disk or in a queue.
    """
    with pytest.raises(ContractError, match="to pickle, expected it to stay in its process") as it:
        pickle.dumps(Secret(TOKEN), protocol)
    assert TOKEN not in str(it.value)


def test_a_copy_of_a_secret_is_itself() -> None:
    """
    So that settings that hold one can be copied.
    """
    secret = Secret(TOKEN)
    assert secret is copy.copy(secret) is copy.deepcopy(secret)


def test_a_secret_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A newline at the end, as files have it, is no part of it; none is there if nothing is set.
    """
    monkeypatch.setenv("A_TOKEN", f" {TOKEN}\n")
    monkeypatch.setenv("BLANK", " ")
    secret = Secret.from_env("A_TOKEN")

    assert secret is not None
    assert (TOKEN, "A_TOKEN") == (secret.reveal(), secret.source)
    assert (None, None) == (Secret.from_env("BLANK"), Secret.from_env("NOT_SET_AT_ALL"))


@pytest.mark.parametrize("wrong", ["", "two words", "line\nbreak", "tab\t", "naïve", "x" * 4001, 7])
def test_what_no_header_can_carry_is_no_secret_and_is_not_shown(wrong: object) -> None:
    """
    A line break in a token would be a header of somebody else's.
    """
    with pytest.raises(ContractError, match=r"^secret: got ") as caught:
        Secret(wrong)  # type: ignore[arg-type]
    assert not wrong or str(wrong) not in str(caught.value).replace("4000", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer sekret", "Authorization: [REDACTED]"),
        ("authorization=Basic c2Vr and more", "authorization=[REDACTED]"),
        ('{"Authorization": "Bearer x", "a": 1}', '{"Authorization": [REDACTED], "a": 1}'),
        (
            "Proxy-Authorization: Digest a=b, c=d\nHost: h",
            "Proxy-Authorization: [REDACTED] Host: h",
        ),
        ('{"api_token": "x"}', '{"api_token": [REDACTED]}'),
        ("{'api_token': 'it\\'s'}", "{'api_token': [REDACTED]}"),
        ("Bearer x", "Bearer [REDACTED]"),
        ("Api-Key x", "Api-Key [REDACTED]"),
        ("X-API-Key: 123", "X-API-Key: [REDACTED]"),
        ("(b'x-api-key', b'abc')", "(b'x-api-key', [REDACTED])"),
        ("(b'authorization', b'Bearer x')", "(b'authorization', [REDACTED])"),
        ("OPENAI_API_KEY=abc def", "OPENAI_API_KEY=[REDACTED] def"),
        ("GET /v1?token=abc&x=1", "GET /v1?token=[REDACTED]&x=1"),
        ("http://user:p@127.0.0.1:80/", "http://[REDACTED]@127.0.0.1:80/"),
        ("key sk-abcdef123456 was refused", "key [REDACTED] was refused"),
        ("hf_abcdefghij", "[REDACTED]"),
        ("eyJhbGciOi.eyJzdWIi.c2ln", "[REDACTED]"),
    ],
)
def test_what_looks_like_a_token_is_not_shown_even_if_nobody_knows_it(
    text: str, shown: str
) -> None:
    """
    A server may repeat the token of somebody else.
    """
    assert shown == redact(text)
    assert shown == redact(shown)


@pytest.mark.parametrize(
    "text",
    [
        "response: got the keys state, expected actions",
        "max_new_tokens: got 0, expected a whole number of at least 1",
        "'side'",
        "no camera 'wrist' in observation.images",
        "got the key 'api_token', expected none",
        "HF_HUB_OFFLINE is set, task-oriented, (b'host', b'127.0.0.1')",
    ],
)
def test_a_text_without_secrets_is_left_as_it_is(text: str) -> None:
    """
    An error that is blacked out helps nobody.
    """
    assert text == redact(text, Secret(TOKEN), None)


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(token=tokens, before=st.text(max_size=20), after=st.text(max_size=20))
def test_a_known_token_is_in_no_text(spelling: str, token: str, before: str, after: str) -> None:
    """
    In none of the ways in which headers, URLs, JSON and tracebacks spell it.
    """
    assume(token not in REDACTED and REDACTED not in token)
    written = SPELLINGS[spelling](token)
    shown = redact(f"{before} {written} {after}", Secret(token))

    assert token not in shown
    assert written not in shown


def test_a_token_that_is_there_again_and_again_is_in_no_place() -> None:
    """
    Also within one run of Base64, and where one spelling stands in another.
    """
    twice = b64encode(f"{TOKEN}|||{TOKEN}".encode()).decode()
    text = f"{TOKEN}{TOKEN}, {twice}, {quote(TOKEN)}{TOKEN}"
    assert f"{REDACTED * 2}, {REDACTED}, {REDACTED * 2}" == redact(text, Secret(TOKEN))


def test_a_short_token_is_not_shown_either() -> None:
    """
    Its Base64 is not looked for: three letters of it would be found everywhere.
    """
    assert f"got {REDACTED}, twice" == redact("got abc, twice", Secret("abc"))


@given(token=tokens, kept=st.integers(4, 7))
def test_a_token_that_a_text_was_cut_in_is_not_shown(token: str, kept: int) -> None:
    """
    Peers cut their errors, too.
    """
    assert f"at {REDACTED}" == redact(f"at {token[:kept]}", Secret(token))


@given(st.text(), st.integers(10, 100))
def test_what_is_shown_is_one_short_line_that_a_terminal_can_show(text: str, longest: int) -> None:
    """
    No control characters, none that change the direction of writing, no lone surrogates.
    """
    shown = redact(text + "\x1b[31m\r\n\u202e\ud800" + text, max_characters=longest)

    assert len(shown) <= longest
    assert shown.isprintable()


def test_a_text_over_the_length_is_cut_after_secrets_were_taken_out() -> None:
    """
    Cutting first would leave a part of a token that nobody recognises.
    """
    shown = redact(f"{'x' * 990}{TOKEN} and so on", Secret(TOKEN))

    assert 1000 == len(shown)
    assert f"{'x' * 990}[REDACT..." == shown


@pytest.mark.parametrize("secret", [None, Secret(TOKEN), Secret("a" * 4000), Secret("%41%41%41")])
@pytest.mark.parametrize(
    "part",
    [
        "a",
        "authorization:",
        "Bearer ",
        '"\\',
        "://",
        'token="\\',
        "%41",
        "sk-",
        "\x00",
        "é",
        "QUFB",
    ],
)
def test_a_hostile_text_takes_no_time(part: str, secret: Secret | None) -> None:
    """
    Megabytes that nearly match each pattern, again and again.
    """
    text = part * (8_000_000 // len(part))
    started = time.process_time()
    redact(text, secret)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("two\nlines", "two\nlines"),
        ('Traceback:\n  File "a", line 1\n    x\n', ""),
        ('  File "a"\nValueError: two\n  lines', "ValueError: two\n  lines"),
        ('  File "a"\nKeyError: 1\n\nDuring it:\n\n  File "b"\nValueError: 2', "ValueError: 2"),
    ],
)
def test_a_traceback_is_told_by_its_last_words(text: str, words: str) -> None:
    """
    Where files are on somebody's machine is nobody else's concern.
    """
    assert words == last_words(text)


@pytest.mark.parametrize(
    ("value", "hosts"),
    [
        ("", []),
        ("a.example", ["a.example"]),
        ("A.example, b.example", ["a.example", "b.example"]),
        (" a.example  b.example,", ["a.example", "b.example"]),
    ],
)
def test_hosts_of_the_environment_are_names_in_lower_case(
    value: str, hosts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Between commas or spaces.
    """
    monkeypatch.setenv("SOME_HOSTS", value)
    assert hosts == sorted(hosts_from_env("SOME_HOSTS"))
