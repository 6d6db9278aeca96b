"""Where the server is, and how one connection to it is made: every knob of the client library is set here.

RESP2, no automatic retries (one slow script under the library's defaults ran eleven times; the caller has its own),
explicit timeouts, replies as bytes. Text for people never comes from a URL, so no password can stand in it.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from rqlite_jobs.errors import BadUrl, ServerMissing

if TYPE_CHECKING:
    import redis
    import redis.asyncio

TIMEOUT_S = 5.0
"""How long a connection waits for the server, to connect and for an answer."""

_SCHEMES = {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis", "valkeys": "rediss"}
_LATER = ("redis+sentinel", "redis+cluster")
_FORMS = "redis:// rediss:// unix:// valkey:// embedded:// fake://"
# Taken from a client that an app is given; the rest of its settings are its own business.
_TAKEN = frozenset(
    "host port path db username password credential_provider ssl_keyfile ssl_certfile ssl_cert_reqs ssl_ca_certs "
    "ssl_ca_data ssl_ca_path ssl_check_hostname ssl_password ssl_min_version ssl_ciphers socket_keepalive "
    "socket_keepalive_options server version server_type lua_modules client_class".split()
)
_fakes: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Address:
    """The address of one server.

    Attributes:
        shown: for people; without credentials.
        kind: `tcp`, `tls`, `unix` or `fake`.
        arguments: of the client library's connection.
    """

    shown: str
    kind: str
    arguments: Mapping[str, Any] = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> "Address":
        """Read a URL.

        Args:
            url: `redis:// rediss:// unix:// valkey:// fake://<name>`; `embedded://` is the business of `embedded`.

        Raises:
            BadUrl: it has no form that is known. The message shows its scheme only: a URL may hold a password.
            ServerMissing: `fake://` without the extra `testing`.

        >>> Address.parse("redis://:secret@localhost:6379/3").shown
        'redis://localhost:6379/3'
        """
        scheme, mark, rest = url.partition("://")
        if scheme in _LATER:
            raise BadUrl(
                f"{scheme}:// addresses are not supported yet.", hint="Give the address of one server."
            )
        if not mark or scheme not in (*_SCHEMES, "fake"):
            what = f"begins with {scheme!r}" if mark else "has no ://"
            raise BadUrl(
                f"the server's address {what}, which is no form that is known.", hint=f"Known: {_FORMS}"
            )
        if scheme == "fake":
            return cls(f"fake://{rest}", "fake", {"server": _fake_server(rest)})
        import redis

        given: dict[str, Any] = {}
        try:
            fault = _fault(urlsplit(url))
            if not fault:
                given = redis.ConnectionPool.from_url(f"{_SCHEMES[scheme]}://{rest}").connection_kwargs
        except (ValueError, TypeError, redis.RedisError) as error:
            fault = type(error).__name__
        if fault:
            raise BadUrl(
                f"the server's {scheme}:// address cannot be read ({fault}).",
                hint="Its form is redis://host[:port][/db] or unix:///path[?db=n], with user:password@ behind the //; "
                "write special characters of a password as %xx.",
            )
        return _of(scheme, {name: value for name, value in given.items() if name in _TAKEN})

    @classmethod
    def of_client(cls, client: "redis.Redis | redis.asyncio.Redis") -> "Address":
        """The address of a redis-py client, blocking or async: its server, credentials, TLS and db.

        The connections made from it are our own, so it does not matter whether the client decodes.

        Raises:
            BadUrl: it is not such a client.
        """
        pool = getattr(client, "connection_pool", None)
        if pool is None:
            raise BadUrl(
                f"App(redis=...) was given a {type(client).__name__}.",
                hint="Give a redis.Redis, or url= instead.",
            )
        if hasattr(pool, "sentinel_manager"):
            # It knows no address of its own: without this, ours would be the default, localhost.
            raise BadUrl(
                "App(redis=...) was given a client of Sentinel, which is not supported yet.",
                hint="Give the address of one server.",
            )
        arguments = {name: value for name, value in pool.connection_kwargs.items() if name in _TAKEN}
        if "server" in arguments:
            return cls("fake://", "fake", {"server": arguments["server"]})
        # By its name: an SSLConnection of either kind, or a class of the user's made of one.
        secure = any("SSL" in kind.__name__ for kind in pool.connection_class.__mro__)
        return _of("unix" if "path" in arguments else "rediss" if secure else "redis", arguments)

    @property
    def with_credentials(self) -> str:
        """For people, who shall see whether it has credentials: they are masked, `redis://***@localhost:6379/3`."""
        secret = any(self.arguments.get(name) for name in ("username", "password", "credential_provider"))
        return self.shown.replace("://", "://***@", 1) if secret else self.shown

    @property
    def fake(self) -> bool:
        """Is it a server inside this process, for tests?"""
        return self.kind == "fake"

    def connection(self, timeout_s: float = TIMEOUT_S) -> Any:
        """A new blocking connection, not yet connected.

        Args:
            timeout_s: how long it waits for an answer.
        """
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        arguments = {**self.arguments, **_ours(timeout_s), "retry": Retry(NoBackoff(), 0)}
        if self.fake:
            from fakeredis import FakeRedis

            pool = FakeRedis(**arguments).connection_pool
            return pool.connection_class(**pool.connection_kwargs)
        arguments |= _anonymous(redis.Connection)
        kinds = {
            "tcp": redis.Connection,
            "tls": redis.SSLConnection,
            "unix": redis.UnixDomainSocketConnection,
        }
        return kinds[self.kind](**arguments)

    def async_connection(self, timeout_s: float = TIMEOUT_S) -> Any:
        """The same for an event loop."""
        import redis.asyncio as aredis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        arguments = {**self.arguments, **_ours(timeout_s), "retry": Retry(NoBackoff(), 0)}
        if self.fake:
            from fakeredis import FakeAsyncRedis

            pool = FakeAsyncRedis(**arguments).connection_pool
            return pool.connection_class(**pool.connection_kwargs)
        arguments |= _anonymous(aredis.Connection)
        kinds: dict[str, Any] = {
            "tcp": aredis.Connection, "tls": aredis.SSLConnection, "unix": aredis.UnixDomainSocketConnection
        }  # fmt: skip
        return kinds[self.kind](**arguments)


def _ours(timeout_s: float) -> dict[str, Any]:
    return {
        "protocol": 2,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": TIMEOUT_S,
        "decode_responses": False,
        "health_check_interval": 0,
        "encoding": "utf-8",
    }


@cache
def _anonymous(kind: Any) -> dict[str, Any]:
    """Keep a connection from telling the server which library it is: it costs a lookup of 1 ms, and two commands."""
    known = inspect.signature(kind.__init__).parameters
    base = inspect.signature(kind.__mro__[1].__init__).parameters
    if "driver_info" in known or "driver_info" in base:
        return {"driver_info": None}
    return {"lib_name": None, "lib_version": None}


def _fault(parts: SplitResult) -> str:
    """What the client library would pass over in silence: it takes a db that is no number for none at all.

    And what a character of a password makes of the rest that should have been written as %xx: a piece of the
    password must not be taken for a host, a db or the path of a socket, which are shown.
    """
    if parts.fragment or "@" in parts.query:
        return "its password, or something behind it, has a character that must be written as %xx"
    if parts.scheme == "unix":
        if parts.netloc and not parts.netloc.endswith("@"):
            return "it names no socket"
        return "" if len(parts.path) > 1 else "it names no socket"
    try:
        if parts.port == 0:
            return "no port is 0"
    except ValueError:
        return "its port is no number from 1 to 65535"
    db = parts.path.removeprefix("/")
    return (
        "" if not db or (db.isascii() and db.isdigit()) else "what follows the host is not the number of a db"
    )


def _of(scheme: str, arguments: dict[str, Any]) -> Address:
    db = arguments.get("db") or 0
    if "path" in arguments:
        arguments.pop("host", None)
        arguments.pop("port", None)
        return Address(f"unix://{arguments['path']}" + (f"?db={db}" if db else ""), "unix", arguments)
    host, port = arguments.get("host") or "localhost", arguments.get("port") or 6379
    arguments = {"host": host, "port": port, "socket_keepalive": True, **arguments}
    secure = _SCHEMES.get(scheme, scheme) == "rediss"
    named = f"[{host}]" if ":" in host else host
    return Address(f"{scheme}://{named}:{port}/{db}", "tls" if secure else "tcp", arguments)


def _fake_server(name: str) -> Any:
    try:
        import fakeredis
    except ImportError:
        raise ServerMissing(
            "fake:// needs the package fakeredis, which is not installed.",
            hint="Run: pip install 'rqlite-jobs[testing]'",
        ) from None
    # Not under a lock, which a fork might copy while it is held; one step of a dict is as good.
    found = _fakes.get(name)
    return _fakes.setdefault(name, fakeredis.FakeServer()) if found is None else found


def forget_fake(name: str) -> None:
    """Let go of the server of `fake://<name>`, and of all that is on it."""
    _fakes.pop(name, None)
