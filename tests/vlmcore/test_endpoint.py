"""Tests of `vlmcore.endpoint`: what may be dialled, and what is refused."""

from __future__ import annotations

import ipaddress
import pickle
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vlmcore.endpoint import Endpoint, is_public_address
from vlmcore.errors import EndpointError

ANY = ("http", "https", "ws", "wss", "tcp")


def parse(text: Any, **options: Any) -> Endpoint:
    return Endpoint.parse(text, **{"schemes": ANY, "default_scheme": "http", **options})


def refused(text: Any, **options: Any) -> EndpointError:
    with pytest.raises(EndpointError) as caught:
        parse(text, **options)
    return caught.value


@pytest.mark.parametrize(
    ("text", "url", "address"),
    [
        ("http://127.0.0.1:8787/v1/infer", "http://127.0.0.1:8787/v1/infer", "127.0.0.1"),
        ("127.0.0.1", "http://127.0.0.1:80", "127.0.0.1"),
        ("https://127.8.9.10", "https://127.8.9.10:443", "127.8.9.10"),
        ("localhost:8000", "http://localhost:8000", "127.0.0.1"),
        ("WSS://LocalHost/", "wss://localhost:443/", "127.0.0.1"),
        ("localhost.:8000", "http://localhost:8000", "127.0.0.1"),
        ("arm.LOCALHOST", "http://arm.localhost:80", "127.0.0.1"),
        ("arm.localhost.", "http://arm.localhost:80", "127.0.0.1"),
        ("[::1]:5555", "http://[::1]:5555", "::1"),
        ("tcp://[::1]:5555", "tcp://[::1]:5555", "::1"),
        ("ws://localhost:8000/v1/realtime/robot/openpi",) * 2 + ("127.0.0.1",),
    ],
)
def test_loopback_is_dialled_by_its_address_and_never_looked_up(
    text: str, url: str, address: str
) -> None:
    """
    Letter case and one trailing dot do not matter.
    """
    endpoint = parse(text)

    assert (url, address, True) == (endpoint.url, endpoint.address, endpoint.is_loopback)
    assert endpoint.is_confidential


@pytest.mark.parametrize(
    "text",
    [
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.1.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:0:0:1]",
        "[::01]",
        "[::1%eth0]",
        "[fe80::1%25eth0]",
    ],
)
@pytest.mark.parametrize("allow_remote", [False, True])
def test_other_spellings_of_an_address_are_refused(text: str, *, allow_remote: bool) -> None:
    """
    Also where remote hosts are allowed: one program reads them as loopback, the next does not.
    """
    error = refused(f"https://{text}:80", allow_remote=allow_remote)
    assert "got an address in an unusual spelling" in error.rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("http://:@127.0.0.1", "got a user name or a password"),
        ("@127.0.0.1", "got a user name or a password"),
        ("http://user:pw@127.0.0.1", "got a user name or a password"),
        ("http://user:p/w@127.0.0.1", "got a user name or a password"),
        ("http://127.0.0.1:99999", "got port 99999, expected 1 to 65535"),
        ("http://127.0.0.1:65536", "got port 65536, expected 1 to 65535"),
        ("http://127.0.0.1:abc", "got a port that is none"),
        ("http://127.0.0.1:0", "got a port that is none"),
        ("http://127.0.0.1:-1", "got a port that is none"),
        ("http://127.0.0.1:", "got a port that is none"),
        ("http://127.0.0.1:080", "got a port that is none"),
        ("http://127.0.0.1:999999999999", "got a port that is none"),
        ("http://127.0.0.1:8\u0660", "got the character '\\u0660'"),
        ("http://127.0.0.1/../admin", "got a path that may be read in two ways"),
        ("http://127.0.0.1/a/..", "got a path that may be read in two ways"),
        ("http://127.0.0.1/./a", "got a path that may be read in two ways"),
        ("http://127.0.0.1/%2e%2e/admin", "got a path that may be read in two ways"),
        ("http://127.0.0.1//admin", "got a path that may be read in two ways"),
        ("http://127.0.0.1/a;b", "got a path that may be read in two ways"),
        ("http://lo\tcalhost", "got the character '\\t'"),
        ("http://lo\rcalhost", "got the character '\\r'"),
        ("http://localhost\n", "got the character '\\n'"),
        (" http://localhost", "got the character ' '"),
        ("http://localhost\x00", "got the character '\\x00'"),
        ("http://local\\host", "got the character '\\\\'"),
        ("http://löcalhost", "got the character '\\xf6'"),
        ("http://ⓛocalhost", "got the character '\\u24db'"),
        ("http://127。0。0。1", "got the character '\\u3002'"),
        ("http://localhost?a=b", "got a query"),
        ("http://localhost/?", "got a query"),
        ("http://localhost/#x", "got a fragment"),
        ("http://localhost..", "got a host that is no name"),
        ("http://.localhost", "got a host that is no name"),
        ("http://-localhost", "got a host that is no name"),
        ("http://local;host", "got a host that is no name"),
        ("http://*:5555", "got a host that is no name"),
        ("http://local%68ost", "got a host that is no name"),
        ("http://", "got no host"),
        ("http:///path", "got no host"),
        ("//localhost", "got no host"),
        ("", "got 0 characters"),
        ("x" * 2049, "got 2049 characters"),
        ("::1", "got an IPv6 address, expected it in brackets"),
        ("tcp://::1:5555", "got an IPv6 address, expected it in brackets"),
        ("[127.0.0.1]:80", "got brackets"),
        ("[::1", "got brackets"),
        ("[::1]80", "got brackets"),
        ("http:localhost", "got a port that is none"),
        ("tcp://127.0.0.1:5555/path", "got a path, expected none with tcp"),
        ("tcp://127.0.0.1", "got no port"),
        ("ftp://127.0.0.1", "got the scheme ftp, expected one of http, https, ws, wss, tcp"),
        ("0.0.0.0:8000", "got the address of every interface"),
        ("[::]:8000", "got the address of every interface"),
        (None, "got NoneType, expected text"),
        (b"localhost", "got bytes, expected text"),
    ],
)
def test_what_may_be_read_in_two_ways_is_refused(text: Any, rule: str) -> None:
    """
    With the rule that it breaks; nothing is stripped or repaired in silence.
    """
    assert refused(text).rule.startswith(rule)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("https://robot.example:8787", True),
        ("wss://robot.example", True),
        ("tcp://10.0.0.5:5555", True),
        ("https://[2001:db8::1]", True),
        ("wss://policy_server:8000", True),
        ("http://robot.example", False),
        ("ws://10.0.0.5:8000", False),
    ],
)
def test_a_remote_host_is_dialled_on_request_only_and_encrypted(
    text: str, *, allowed: bool
) -> None:
    """
    Except over tcp, which has no encryption: a token must not travel there.
    """
    assert refused(text).rule.startswith(
        "got a remote host" if allowed else f"got {text.partition(':')[0]} to a remote host"
    )
    if allowed:
        endpoint = parse(text, allow_remote=True)
        assert (False, not text.startswith("tcp")) == (
            endpoint.is_loopback,
            endpoint.is_confidential,
        )
        assert endpoint.host == endpoint.address
    else:
        scheme = {"http": "https", "ws": "wss"}[text.partition(":")[0]]
        assert f"expected {scheme}: " in refused(text, allow_remote=True).rule


@pytest.mark.parametrize(
    "host", ["localhost.example", "notlocalhost", "127.0.0.1.example", "128.0.0.1", "[::2]"]
)
def test_a_host_that_only_looks_like_loopback_is_remote(host: str) -> None:
    """
    A name that begins as loopback does is somebody else's.
    """
    assert refused(f"https://{host}").rule.startswith("got a remote host")


@pytest.mark.parametrize("host", ["224.0.0.1", "[ff02::1]", "255.255.255.255"])
def test_an_address_of_many_hosts_is_refused(host: str) -> None:
    """
    A robot is driven by one policy.
    """
    assert refused(f"https://{host}", allow_remote=True).rule.startswith("got an address of many")


def test_a_scheme_that_is_not_written_is_asked_for_where_there_is_no_default() -> None:
    """
    No scheme is guessed.
    """
    error = refused("localhost:8000", default_scheme=None, schemes=("ws", "wss"))
    assert "localhost:8000: got no scheme, expected one of ws, wss" == str(error)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("http://localhost", "localhost"),
        ("https://localhost:443", "localhost"),
        ("http://localhost:443", "localhost:443"),
        ("ws://[::1]:8000", "[::1]:8000"),
        ("tcp://127.0.0.1:5555", "127.0.0.1:5555"),
    ],
)
def test_the_host_header_keeps_the_name_that_was_written(text: str, header: str) -> None:
    """
    Servers compare it, also where the address is dialled.
    """
    assert header == parse(text).host_header


def test_the_default_port_is_that_of_the_protocol() -> None:
    """
    And where it has none, that of HTTP and HTTPS.
    """
    assert ["127.0.0.1:8787", "127.0.0.1:80", "[::1]:443"] == [
        parse("localhost", default_port=8787).address_and_port,
        parse("localhost").address_and_port,
        parse("https://[::1]").address_and_port,
    ]


@pytest.mark.parametrize(
    "text",
    [
        "http://user:hunter2@127.0.0.1/",
        "http://user:hun/ter2@127.0.0.1/",
        "user:hunter2@127.0.0.1",
        "http://127.0.0.1/?token=hunter2",
        "http://127.0.0.1#hunter2",
        "http://127.0.0.1/hunter2/..",
        "http://user:hunter2",
        "http://@hunter2@",
    ],
)
def test_no_error_shows_what_may_be_a_password(text: str) -> None:
    """
    Neither in its text nor in its attributes.
    """
    error = refused(text)
    assert "hunter2" not in f"{error}{error!r}{error.args}{vars(error)}"
    assert "ter2" not in str(error)


@pytest.mark.parametrize(
    "fields",
    [
        {"scheme": "HTTP"},
        {"scheme": ""},
        {"scheme": 1},
        {"host": "LOCALHOST"},
        {"host": "localhost."},
        {"host": "[::1]"},
        {"host": ""},
        {"host": "robot.example"},
        {"host": None},
        {"port": 0},
        {"port": 65536},
        {"port": True},
        {"port": "80"},
        {"path": "x"},
        {"path": "/../x"},
        {"path": "/x\n"},
        {"path": None},
    ],
)
def test_an_endpoint_made_by_hand_is_held_to_the_same_rules(fields: dict[str, Any]) -> None:
    """
    There is no way around the rules but for the question whether remote is wanted.
    """
    with pytest.raises(EndpointError):
        Endpoint(**{"scheme": "http", "host": "localhost", "port": 80, **fields})


def test_an_endpoint_crosses_a_process_boundary() -> None:
    """
    It holds no secret.
    """
    endpoint = parse("http://localhost:8787/v1/infer")
    assert endpoint == pickle.loads(pickle.dumps(endpoint))


hosts = st.sampled_from(
    ["localhost", "127.0.0.1", "[::1]", "a.localhost", "robot.example", "10.0.0.5", "[2001:db8::1]"]
)
texts = st.one_of(
    st.text(),
    st.text(alphabet="htps:/@[].?#%0123456789ablocahost-_", max_size=40),
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["", "http://", "https://", "ws://", "wss://", "tcp://", "HTTPS://"]),
        hosts,
        st.sampled_from(["", ":1", ":8000", ":65535", ":65536", ":"]),
        st.sampled_from(["", "/", "/v1/infer", "/a//b", "/.", "/a.b/c~d/"]),
    ),
)


@given(text=texts, allow_remote=st.booleans())
@example(text="http://@", allow_remote=False)
@example(text=":", allow_remote=True)
def test_any_text_is_an_endpoint_that_reads_the_same_again_or_our_error(
    text: str, *, allow_remote: bool
) -> None:
    """
    What is written of it is read as the same.
    """
    try:
        endpoint = parse(text, allow_remote=allow_remote)
    except EndpointError as error:
        shown = str(error)
        endpoint = None
    else:
        shown = str(endpoint)
    assert shown.isprintable()
    if endpoint is None:
        return
    again = Endpoint.parse(str(endpoint), schemes=ANY, allow_remote=allow_remote)
    assert endpoint == again
    assert endpoint.is_loopback or allow_remote


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    """
    Also an IPv4 address in the dress of IPv6, as a network without IPv4 hands them out.
    """
    assert is_public_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.0.0.5",
        "100.64.0.1",
        "169.254.169.254",
        "224.0.0.1",
        "240.0.0.1",
        "192.0.2.1",
        "::1",
        "fc00::1",
        "fe80::1",
        "fe80::1%eth0",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2130706433",
        "localhost",
        "",
    ],
)
def test_an_address_inside_a_network_is_not_public(address: str) -> None:
    """
    Nor is one of many hosts, one that stands for such an address, or a name.
    """
    assert not is_public_address(address)


# All blocks of the two IANA special-purpose address registries, and what RFC 3879, RFC 4291 and
# RFC 5771 keep from hosts beside them.
SPECIAL = (
    *("0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32"),
    *("192.0.0.10/32", "192.0.0.170/32", "192.0.0.171/32", "192.0.2.0/24", "192.88.99.0/24"),
    *("192.88.99.2/32", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
    *("::/128", "::1/128", "::ffff:10.0.0.0/104", "::/96", "64:ff9b::a00:0/104", "64:ff9b:1::/48"),
    *("100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128", "2001:1::2/128"),
    *("2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28"),
    *("2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16"),
    *("fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    *("4000::/3", "6000::/3", "8000::/3", "a000::/3", "c000::/3", "e000::/4", "f000::/5"),
)
TRANSLATED = ipaddress.IPv6Address("64:ff9b::")
# Networks of the internet whose whole block does one thing, as to answer for private names.
GLOBAL = ("192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", "2620:4f:8000::/48")


@pytest.mark.parametrize("block", SPECIAL)
def test_no_address_of_a_special_block_is_public(block: str) -> None:
    """
    Whatever the Python at hand knows of them. That some of these blocks may be routed makes no
    file lie there: what answers is the nearest router, or the end of a tunnel.
    """
    network = ipaddress.ip_network(block)
    middle = network[network.num_addresses // 2]
    assert [] == [str(at) for at in (network[0], middle, network[-1]) if is_public_address(str(at))]


@pytest.mark.parametrize("block", SPECIAL)
def test_an_ipv4_address_is_no_more_public_in_ipv6(block: str) -> None:
    """
    Both dresses of it are taken off first.
    """
    first = ipaddress.ip_network(block)[0]
    if first.version == 4:
        assert not is_public_address(f"::ffff:{first}")
        assert not is_public_address(str(ipaddress.IPv6Address(int(TRANSLATED) + int(first))))


@pytest.mark.parametrize("block", GLOBAL)
def test_a_block_that_the_internet_reaches_is_public(block: str) -> None:
    """
    So the registries say.
    """
    network = ipaddress.ip_network(block)
    assert is_public_address(str(network[0]))
    assert is_public_address(str(network[-1]))


@pytest.mark.parametrize(
    "address",
    [
        *("1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"),
        *("126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255"),
        *("172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.1.255", "192.0.3.0"),
        *("192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255"),
        *("198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0"),
        *("223.255.255.255", "2000::1", "2001:200::", "2001:db7:ffff::", "2001:db9::"),
        *("2001:ffff::", "2003::", "3ffe:ffff::", "3fff:1000::"),
    ],
)
def test_the_neighbours_of_special_blocks_are_public(address: str) -> None:
    """
    No block is refused as a larger one.
    """
    assert is_public_address(address)
