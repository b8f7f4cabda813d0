"""Tests of `vlmcore._net.public_urls`."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore._net.public_urls import PublicUrl
from vlmcore.endpoint import is_public_address
from vlmcore.errors import EndpointError


def parsed(text: str) -> PublicUrl:
    return PublicUrl.parse(text, most_characters=200)


@pytest.mark.parametrize(
    ("text", "host", "target"),
    [
        ("https://cdn.example/a.mp3", "cdn.example", "/a.mp3"),
        ("HTTPS://CDN.Example", "cdn.example", "/"),
        ("https://cdn.example:443/a?b=c&d=%2F..", "cdn.example", "/a?b=c&d=%2F.."),
        ("https://cdn.example?sign=1", "cdn.example", "/?sign=1"),
        ("https://cdn.example/a?b#c", "cdn.example", "/a?b"),
        ("https://93.184.216.34/a", "93.184.216.34", "/a"),
        ("https://[2606:4700::1111]/a", "2606:4700::1111", "/a"),
    ],
)
def test_an_address_is_a_host_and_what_is_asked_of_it(text: str, host: str, target: str) -> None:
    """
    On port 443; a fragment is nobody's business but the reader's.
    """
    url = parsed(text)
    assert ("https", host, 443, target) == (
        url.endpoint.scheme,
        url.endpoint.host,
        url.endpoint.port,
        url.target,
    )


REFUSED = [
    "",
    "cdn.example/a",
    "//cdn.example/a",
    "http://cdn.example/a",
    "ftp://cdn.example/a",
    "file:///etc/passwd",
    "data:,a",
    "https:/cdn.example/a",
    "https://",
    "https:///a",
    "https://:443/a",
    "https://cdn.example:80/a",
    "https://cdn.example:0/a",
    "https://cdn.example:65536/a",
    "https://cdn.example:/a",
    "https://user@cdn.example/a",
    "https://user:secret@cdn.example/a",
    "https://@cdn.example/a",
    "https://cdn.example\\a",
    "https://cdn.example/a\\b",
    "https://cdn.example\\@10.0.0.5/a",
    "https://cdn.example/a b",
    "https://cdn.example/a\nb",
    "https://cdn.example/a\0",
    "https://cdn.example/ä",
    "https://exämple.net/a",
    "https://cdn..example/a",
    "https://127.0.0.1/a",
    "https://127.1/a",
    "https://2130706433/a",
    "https://0x7f000001/a",
    "https://0177.0.0.1/a",
    "https://0.0.0.0/a",
    "https://10.0.0.5/a",
    "https://100.64.0.1/a",
    "https://169.254.169.254/a",
    "https://172.16.0.1/a",
    "https://192.168.0.1/a",
    "https://224.0.0.1/a",
    "https://255.255.255.255/a",
    "https://[::]/a",
    "https://[::1]/a",
    "https://[::ffff:127.0.0.1]/a",
    "https://[::ffff:a00:5]/a",
    "https://[64:ff9b::a00:5]/a",
    "https://[2002:a00:5::]/a",
    "https://[fe80::1%25eth0]/a",
    "https://[fd00::1]/a",
    "https://[::1/a",
    "https://localhost/a",
    "https://LOCALHOST./a",
    "https://me.localhost/a",
    f"https://cdn.example/{'a' * 200}",
]


@pytest.mark.parametrize("text", REFUSED)
def test_an_address_that_may_not_be_fetched_is_refused(text: str) -> None:
    """
    By how it is written, before anything is looked up.
    """
    with pytest.raises(EndpointError) as error:
        parsed(text)
    assert "secret" not in str(error.value)


SAME = ("", "cdn.example/a", "//cdn.example/a", "https:/cdn.example/a", "https://", "https:///a")


@pytest.mark.parametrize("text", REFUSED)
def test_a_redirect_leads_to_no_address_that_may_not_be_fetched(text: str) -> None:
    """
    What names no host leads back to the same one; all else is refused as it is at once.
    """
    url = parsed("https://cdn.example/x")
    with contextlib.suppress(EndpointError):
        assert url.endpoint == url.redirected(text, most_characters=200).endpoint
        assert text in SAME


@pytest.mark.parametrize("text", [None, 7, b"https://cdn.example/a"])
def test_what_is_no_text_is_no_address(text: object) -> None:
    """
    A document may hold anything.
    """
    with pytest.raises(EndpointError, match="expected text"):
        PublicUrl.parse(text, most_characters=200)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("location", "host", "target"),
    [
        ("/d", "cdn.example", "/d"),
        ("d?e=f", "cdn.example", "/a/d?e=f"),
        ("../d", "cdn.example", "/d"),
        ("?e", "cdn.example", "/a/b?e"),
        ("", "cdn.example", "/a/b?sign=1"),
        ("//other.example/d", "other.example", "/d"),
        ("https://other.example", "other.example", "/"),
    ],
)
def test_a_redirect_may_be_relative(location: str, host: str, target: str) -> None:
    """
    To where it came from.
    """
    url = parsed("https://cdn.example/a/b?sign=1").redirected(location, most_characters=200)
    assert (host, target) == (url.endpoint.host, url.target)


@pytest.mark.parametrize("location", ["http://cdn.example/d", "//10.0.0.5/d", "https://[", "/ä"])
def test_a_redirect_to_elsewhere_is_refused(location: str) -> None:
    """
    By the same rules as the first address.
    """
    with pytest.raises(EndpointError):
        parsed("https://cdn.example/").redirected(location, most_characters=200)


def test_what_is_asked_of_a_host_is_not_shown() -> None:
    """
    Whoever knows it may fetch the file.
    """
    url = parsed("https://cdn.example/a?sign=s3cret")
    assert "s3cret" not in repr(url)
    with pytest.raises(EndpointError) as error:
        url.redirected("http://cdn.example/a?sign=s3cret", most_characters=200)
    assert "s3cret" not in str(error.value)


@given(text=st.from_regex(r"https://[!-~]{0,12}(/[!-~]{0,8})?", fullmatch=True) | st.text())
def test_any_text_is_a_public_address_or_an_error_of_ours(text: str) -> None:
    """
    And what is asked of the host cannot end the line of a request.
    """
    url = parsed("https://cdn.example/a")
    with contextlib.suppress(EndpointError):
        url = parsed(text)
    with contextlib.suppress(EndpointError):
        url = url.redirected(text, most_characters=200)
    assert url.endpoint.port == 443
    assert url.target.startswith("/")
    assert not set(url.target) & set(" \r\n\\#")
    host = url.endpoint.host
    assert is_public_address(host) or set(host) - set("0123456789.:")
