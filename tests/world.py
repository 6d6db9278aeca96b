"""The whole of a namespace as one plain dict, read with plain commands, and the difference of two.

What a script does is what differs between the world before and after; a test that compares all of it also
notices what it did not think of.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rqlite_jobs.keys import Keys

World = dict[str, Any]
"""Key without its tag, `ready:sales:0` -> str, list, set, or dict (a hash; a sorted set: member -> score); a stream is
a list of its entries, each a dict."""


def world(client: Any, keys: Keys) -> World:
    """Read every key of a namespace.

    Args:
        client: a `redis.Redis` that does not decode, or a fakeredis of the same kind.
        keys: of the namespace.

    Texts are str; bytes that are no UTF-8 survive as surrogates. Scores are int where they are whole.

    >>> world(client, Keys("shop"))     # doctest: +SKIP
    {'jobs': {'a': '1\\x00sales...'}, 'ready:sales:0': ['a'], 'scheduled:mail': {'b': 5000}, 'fence': '17'}
    """
    names = sorted(client.keys(keys.tag + "*"))
    kinds = [kind.decode() for kind in _ask(client, [(b"TYPE", name) for name in names])]
    asked = [_READ[kind](name) for name, kind in zip(names, kinds, strict=True)]
    found = zip(names, kinds, _ask(client, asked), strict=True)
    return {_text(name).removeprefix(keys.tag): _plain(kind, value) for name, kind, value in found}


def ttls_ms(client: Any, keys: Keys) -> dict[str, int]:
    """The keys of a namespace that have a TTL, with it, in ms."""
    names = sorted(client.keys(keys.tag + "*"))
    left = _ask(client, [(b"PTTL", name) for name in names])
    return {_text(name).removeprefix(keys.tag): ms for name, ms in zip(names, left, strict=True) if ms >= 0}


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What differs between two worlds, each as (before, after); None where there is nothing.

    A hash or sorted set that is one in both, or in one and absent in the other, is compared field by field.

    >>> changes({"jobs": {"a": "1"}, "dead": ["a"]}, {"jobs": {"a": "1", "b": "2"}})
    {'dead': (['a'], None), 'jobs': {'b': (None, '2')}}
    """
    differing: dict[str, Any] = {}
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old, dict | None) and isinstance(new, dict | None):
            one, two = old or {}, new or {}
            fields = sorted({*one, *two})
            differing[key] = {f: (one.get(f), two.get(f)) for f in fields if one.get(f) != two.get(f)}
        else:
            differing[key] = (old, new)
    return differing


_READ: dict[str, Callable[[bytes], tuple[bytes, ...]]] = {
    "string": lambda name: (b"GET", name),
    "list": lambda name: (b"LRANGE", name, b"0", b"-1"),
    "hash": lambda name: (b"HGETALL", name),
    "zset": lambda name: (b"ZRANGE", name, b"0", b"-1", b"WITHSCORES"),
    "set": lambda name: (b"SMEMBERS", name),
    "stream": lambda name: (b"XRANGE", name, b"-", b"+"),
}


def _ask(client: Any, commands: Sequence[tuple[bytes, ...]]) -> list[Any]:
    # Not by a pipeline of the client: its care for each command takes longer than the server, and tests that look
    # at the world after every step do little else.
    connection = client.connection_pool.get_connection()
    try:
        connection.send_packed_command([b"".join(map(_packed, commands))])
        return [connection.read_response(disable_decoding=True) for _ in commands]
    finally:
        client.connection_pool.release(connection)


def _packed(words: tuple[bytes, ...]) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def _plain(kind: str, value: Any) -> Any:
    if kind == "string":
        return _text(value)
    if kind == "list":
        return [_text(item) for item in value]
    if kind == "set":
        return {_text(item) for item in value}
    if kind == "stream":
        return [_plain("hash", fields) for _, fields in value]
    if kind == "hash":
        return {_text(field): _text(item) for field, item in _pairs(value)}
    return {_text(member): _score(float(score)) for member, score in _pairs(value)}


def _pairs(value: Any) -> Any:
    # Flat in RESP2; in RESP3, which newer clients speak, a map or a list of pairs.
    if isinstance(value, dict):
        return value.items()
    flat = not value or isinstance(value[0], bytes)
    return zip(value[::2], value[1::2], strict=True) if flat else value


def _score(score: float) -> int | float:
    return int(score) if score.is_integer() else score


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
