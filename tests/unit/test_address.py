"""Addresses: every form of URL, what people are shown of it, and what is refused without showing a password."""

import subprocess
import sys
import traceback
from urllib.parse import quote

import pytest
import redis
import redis.asyncio

from rqlite_jobs.address import TIMEOUT_S, Address
from rqlite_jobs.errors import BadUrl
from rqlite_jobs.secrecy import masked

CERTS = {"ssl_cert_reqs": "none", "ssl_check_hostname": False}


@pytest.mark.parametrize(
    ("url", "shown", "kind", "facts"),
    [
        ("redis://", "redis://localhost:6379/0", "tcp", {"host": "localhost", "port": 6379}),
        ("redis://h", "redis://h:6379/0", "tcp", {"host": "h", "port": 6379}),
        ("redis://h/", "redis://h:6379/0", "tcp", {"host": "h"}),
        ("redis://h:7/3", "redis://h:7/3", "tcp", {"host": "h", "port": 7, "db": 3}),
        ("redis://h?db=3", "redis://h:6379/3", "tcp", {"db": 3}),
        ("redis://[::1]:7", "redis://[::1]:7/0", "tcp", {"host": "::1", "port": 7}),
        ("redis://:p%40ss@h", "redis://h:6379/0", "tcp", {"password": "p@ss"}),
        ("redis://bob:secret@h", "redis://h:6379/0", "tcp", {"username": "bob", "password": "secret"}),
        ("redis://h?username=bob&password=secret", "redis://h:6379/0", "tcp", {"password": "secret"}),
        ("valkey://h:7/3", "valkey://h:7/3", "tcp", {"host": "h", "port": 7, "db": 3}),
        ("rediss://h", "rediss://h:6379/0", "tls", {"host": "h"}),
        ("rediss://h?ssl_cert_reqs=none", "rediss://h:6379/0", "tls", {"ssl_cert_reqs": "none"}),
        ("valkeys://h", "valkeys://h:6379/0", "tls", {"host": "h"}),
        ("unix:///tmp/s", "unix:///tmp/s", "unix", {"path": "/tmp/s"}),
        ("unix:///tmp/s?db=3", "unix:///tmp/s?db=3", "unix", {"path": "/tmp/s", "db": 3}),
        ("unix://bob:secret@/tmp/s", "unix:///tmp/s", "unix", {"username": "bob", "password": "secret"}),
    ],
)
def test_forms(url: str, shown: str, kind: str, facts: dict[str, object]) -> None:
    address = Address.parse(url)
    assert (address.shown, address.kind, address.fake) == (shown, kind, False)
    assert {name: address.arguments[name] for name in facts} == facts
    assert address == Address.parse(url)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "has no ://"),
        ("localhost:6379", "has no ://"),
        ("redis:/h", "has no ://"),
        ("http://h", "begins with 'http'"),
        ("REDIS://h", "begins with 'REDIS'"),
        ("redis+sentinel://h", "not supported yet"),
        ("redis+cluster://h", "not supported yet"),
        ("redis://h:x", "its port is no number"),
        ("redis://h:0", "no port is 0"),
        ("redis://h:70000", "its port is no number"),
        ("redis://h:-1", "its port is no number"),
        ("redis://h/x", "not the number of a db"),
        ("redis://h/-1", "not the number of a db"),
        ("redis://h/1/2", "not the number of a db"),
        ("redis://h/١", "not the number of a db"),
        ("redis://h?db=x", "cannot be read"),
        ("redis://[::1", "cannot be read"),
        ("unix://", "it names no socket"),
        ("unix:///", "it names no socket"),
        ("unix://tmp/s", "it names no socket"),
        ("unix:///tmp/s?db=x", "cannot be read"),
        # Here a piece of the password would be taken for something that is shown.
        ("redis://:12#34@h", "must be written as %xx"),
        ("redis://:12?34@h", "must be written as %xx"),
        ("unix://:s3/cr3t@/tmp/s", "it names no socket"),
    ],
)
def test_what_is_refused(url: str, why: str) -> None:
    with pytest.raises(BadUrl, match=why) as caught:
        Address.parse(url)
    assert caught.value.hint


@pytest.mark.parametrize(
    "secret", ["hunter2", "s3/cr3t", "s3#cr3t", "s3?cr3t", "12/34", "s3 cr3t", "s3%cr3t", "geheimß"]
)
@pytest.mark.parametrize(
    "form", ["redis://:{}@h:x", "redis://bob:{}@h/x", "nosuch://:{}@h", "unix://u:{}@", "redis://bob:{}@[h"]
)
def test_a_password_is_shown_nowhere(secret: str, form: str) -> None:
    for written in {secret, quote(secret, safe="")}:
        with pytest.raises(BadUrl) as caught:
            Address.parse(form.format(written))
        told = (
            "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(vars(caught.value))
        )
        told = "\n".join(line for line in told.splitlines() if "tests/unit" not in line)
        assert secret not in told
        assert quote(secret, safe="") not in told
        assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://h:7/3", "redis://h:7/3"),
        ("redis://:secret@h:7/3", "redis://***@h:7/3"),
        ("redis://h?password=secret", "redis://***@h:6379/0"),
        ("redis://bob@h", "redis://***@h:6379/0"),
        ("unix://:secret@/tmp/s?db=3", "unix://***@/tmp/s?db=3"),
    ],
)
def test_whether_there_are_credentials_is_no_secret(url: str, told: str) -> None:
    assert Address.parse(url).with_credentials == told


def test_an_address_in_any_text_is_masked() -> None:
    for text, wanted in (
        ("no 'redis://ann:p@ss@h:1' here", "no 'redis://***@h:1' here"),
        ("unix:///s?db=3&password=p%40ss&x=1", "unix:///s?db=3&password=***&x=1"),
        ("https://ann@shop.example/?to=a@b.c", "https://ann@shop.example/?to=a@b.c"),
        ("redis://h and a@b", "redis://h and a@b"),
    ):
        assert masked(text) == wanted


def test_a_good_address_shows_no_password_either() -> None:
    address = Address.parse("redis://bob:s3%2Fcr3t@h")
    assert address.arguments["password"] == "s3/cr3t"
    assert "cr3t" not in repr(address) + str(address) + address.shown + repr(address.connection())


@pytest.mark.parametrize(
    ("client", "shown", "kind", "facts"),
    [
        (
            redis.Redis(host="h", port=7, db=3, password="secret"),
            "redis://h:7/3",
            "tcp",
            {"password": "secret"},
        ),
        (redis.Redis(host="h", decode_responses=True, protocol=3), "redis://h:6379/0", "tcp", {"host": "h"}),
        (redis.Redis(host="h", ssl=True, **CERTS), "rediss://h:6379/0", "tls", {"ssl_cert_reqs": "none"}),
        (redis.Redis(unix_socket_path="/tmp/s", db=2), "unix:///tmp/s?db=2", "unix", {"path": "/tmp/s"}),
        (redis.from_url("redis://bob:secret@h/2"), "redis://h:6379/2", "tcp", {"username": "bob"}),
        (redis.asyncio.Redis(host="h", port=7, db=3), "redis://h:7/3", "tcp", {"host": "h", "db": 3}),
        (redis.asyncio.Redis(host="h", ssl=True), "rediss://h:6379/0", "tls", {"host": "h"}),
        (redis.asyncio.Redis(unix_socket_path="/tmp/s"), "unix:///tmp/s", "unix", {"path": "/tmp/s"}),
    ],
)
def test_of_a_client(client: redis.Redis, shown: str, kind: str, facts: dict[str, object]) -> None:
    address = Address.of_client(client)
    assert (address.shown, address.kind) == (shown, kind)
    assert {name: address.arguments[name] for name in facts} == facts
    assert address.arguments.keys().isdisjoint({"protocol", "decode_responses", "retry", "socket_timeout"})
    connection = address.connection()
    assert (connection.encoder.decode_responses, connection.protocol) == (False, 2)


@pytest.mark.parametrize("what", ["redis://h", 7, None, object()])
def test_of_what_is_no_client(what: object) -> None:
    with pytest.raises(BadUrl, match=f"was given a {type(what).__name__}"):
        Address.of_client(what)  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["redis://bob:pw@h:7/3", "rediss://h", "unix:///tmp/s", "valkey://h"])
def test_every_knob_of_a_connection_is_ours(url: str) -> None:
    address = Address.parse(f"{url}?decode_responses=1&protocol=3&socket_timeout=99&health_check_interval=7")
    connections = [address.connection(), address.async_connection(), address.connection(0.5)]
    for connection, timeout_s in zip(connections, (TIMEOUT_S, TIMEOUT_S, 0.5), strict=True):
        assert connection.protocol == 2
        assert connection.encoder.decode_responses is False
        assert connection.socket_timeout == timeout_s
        assert connection.retry._retries == 0
        assert connection.health_check_interval == 0
    assert type(connections[0]).__name__ in ("Connection", "SSLConnection", "UnixDomainSocketConnection")


def test_fakes_of_one_name_are_one_server() -> None:
    pytest.importorskip("fakeredis")
    one, two, other = (Address.parse(f"fake://{name}") for name in ("same", "same", "other"))
    assert (one.shown, one.kind, one.fake) == ("fake://same", "fake", True)
    assert one.arguments["server"] is two.arguments["server"] is not other.arguments["server"]


def test_a_fake_without_its_package_says_what_to_type() -> None:
    code = (
        "import sys; sys.modules['fakeredis'] = None\n"
        "from rqlite_jobs.address import Address\n"
        "from rqlite_jobs.errors import ServerMissing\n"
        "try: Address.parse('fake://x')\n"
        "except ServerMissing as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == (
        "fake:// needs the package fakeredis, which is not installed.\nRun: pip install 'rqlite-jobs[testing]'\n"
    )


def test_the_form_of_an_address_is_told_unmasked() -> None:
    with pytest.raises(BadUrl) as caught:
        Address.parse("redis://:p@ss:w@rd@h:x/0")
    assert "***" not in masked(caught.value.hint)
    assert "p@ss" not in str(caught.value)
