"""``--ca``: servers whose certificate is of an authority of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trustme

from client_cases import certified
from openpi_cases import INFO
from vlmcore.testing import ScriptedPolicy

WORDS = {
    "call": ("--previous", "state"),
    "doctor": (),
    "conformance": ("--good-only",),
    "record": ("--calls", 1),
}


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def file(authority: trustme.CA, tmp_path: Path) -> Path:
    """The certificate of the authority."""
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(path)
    return path


@pytest.mark.parametrize("command", WORDS)
@pytest.mark.parametrize("protocol", ["openpi", "http"])
def test_whoever_dials_can_be_told_whom_to_trust(  # noqa: PLR0917 - fixtures
    policy, serving, robot, authority, file: Path, tmp_path: Path, protocol: str, command: str
) -> None:
    """
    And trusts nobody of whom it was not told.
    """

    def run(*words: object) -> Any:
        episode = (tmp_path / f"episode{len(words)}",) if command == "record" else ()
        return policy(command, url, *episode, "--embodiment", robot, *WORDS[command], *words)

    safe = ScriptedPolicy([[[0.05, 0.05], [0.1, 0.1]]], info=INFO)
    with serving(protocol, safe, tls=certified(authority, "127.0.0.1")) as url:
        wary, trusting = run(), run("--ca", file)
    assert wary.code != 0
    assert "certificate" in (wary.out + wary.err).lower()
    assert 0 == trusting.code


def test_doctor_says_which_option_knows_an_authority(policy, serving, robot, authority) -> None:
    """
    Where the certificate is of none that browsers know.
    """
    with serving("http", tls=certified(authority, "127.0.0.1")) as url:
        done = policy("doctor", url, "--embodiment", robot)
    assert "--ca names the file of an authority" in done.out


@pytest.mark.parametrize("command", ["call", "conformance"])
@pytest.mark.parametrize("url", ["ws://localhost:9", "http://localhost:9", "tcp://localhost:9"])
def test_an_authority_for_what_is_not_encrypted_is_refused(
    policy, robot, file: Path, url: str, command: str
) -> None:
    """
    Whoever says one believes that it is.
    """
    done = policy(command, url, "--embodiment", robot, "--ca", file)
    assert 2 == done.code
    assert f"--ca: got a file, expected none with {url.partition(':')[0]}" in done.err


@pytest.mark.parametrize("command", ["call", "conformance"])
def test_what_is_no_file_of_certificates_is_refused(
    policy, robot, tmp_path: Path, command: str
) -> None:
    """
    A folder, a file that is not there, and one of something else.
    """
    (tmp_path / "words.pem").write_text("no certificate")
    for name in (".", "none.pem", "words.pem"):
        done = policy(command, "wss://localhost:9", "--embodiment", robot, "--ca", tmp_path / name)
        assert 2 == done.code
        assert "--ca: got " in done.err
        assert "expected certificates in PEM: there is none" in done.err
