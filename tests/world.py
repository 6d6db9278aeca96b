"""The whole of a namespace as one plain dict, read with plain commands, and the difference of two.

What a script does is what differs between the world before and after; a test that compares all of it also
notices what it did not think of.
"""

from collections.abc import Mapping
from typing import Any

from rqlite_jobs.keys import Keys

World = dict[str, Any]
"""Key without its tag, `ready:sales:0` -> str, list, set, or dict (a hash; a sorted set: member -> score)."""


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
    if not names:
        return {}
    with client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.type(name)
        kinds = [kind.decode() for kind in pipe.execute()]
    with client.pipeline(transaction=False) as pipe:
        for name, kind in zip(names, kinds, strict=True):
            _READ[kind](pipe, name)
        values = pipe.execute()
    found = zip(names, kinds, values, strict=True)
    return {_text(name).removeprefix(keys.tag): _plain(kind, value) for name, kind, value in found}


def ttls_ms(client: Any, keys: Keys) -> dict[str, int]:
    """The keys of a namespace that have a TTL, with it, in ms."""
    names = sorted(client.keys(keys.tag + "*"))
    with client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.pttl(name)
        left = pipe.execute()
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


_READ: dict[str, Any] = {
    "string": lambda pipe, name: pipe.get(name),
    "list": lambda pipe, name: pipe.lrange(name, 0, -1),
    "hash": lambda pipe, name: pipe.hgetall(name),
    "zset": lambda pipe, name: pipe.zrange(name, 0, -1, withscores=True),
    "set": lambda pipe, name: pipe.smembers(name),
    "stream": lambda pipe, name: pipe.xrange(name),
}


def _plain(kind: str, value: Any) -> Any:
    if kind == "string":
        return _text(value)
    if kind == "list":
        return [_text(item) for item in value]
    if kind == "hash":
        return {_text(field): _text(item) for field, item in value.items()}
    if kind == "zset":
        return {_text(member): int(score) if score.is_integer() else score for member, score in value}
    if kind == "set":
        return {_text(item) for item in value}
    return value


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
