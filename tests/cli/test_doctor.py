"""`rqj doctor`: what it finds on real servers, and what it says where it may not ask."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from rqlite_jobs import App
from rqlite_jobs.errors import ScriptFailed
from rqlite_jobs.inspector.checkup import called_by_scripts, examine
from tests.cli.conftest import Shop
from tests.servers import Server

Spawn = Callable[..., Server]


def findings(shop: Shop, *words: str) -> dict[str, Any]:
    """Each check, and what it found."""
    result = shop.rqj("doctor", "--json", *words)
    answer = json.loads(result.stdout)
    assert result.exit_code == (0 if answer["ok"] else 1)
    assert all(found["remedy"] for found in answer["findings"] if found["level"] != "ok")
    return {found["check"]: found for found in answer["findings"]}


def test_every_lane_is_good_ground(shop: Shop) -> None:
    found = findings(shop)
    wrong = {check: one for check, one in found.items() if one["level"] == "error"}
    assert wrong == {}
    assert found["scripts"]["found"].startswith("all ")
    said = shop.ok("doctor")
    assert "ok       trip" in said


@pytest.mark.lanes("fake")
def test_a_server_that_evicts_is_an_error(shop: Shop, spawn: Spawn) -> None:
    server = spawn("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", appendonly=True)
    found = findings(shop, "-u", server.url)
    assert found["eviction"]["level"] == "error"
    assert "maxmemory-policy noeviction" in found["eviction"]["remedy"]
    assert found["persistence"]["level"] == "ok"
    said = shop.rqj("doctor", "-u", server.url)
    assert said.exit_code == 1
    assert "error    eviction     allkeys-lru: a full server drops locks and jobs" in said.stdout


@pytest.mark.lanes("fake")
def test_allowed_eviction_is_a_warning(shop: Shop, spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    server = spawn("--maxmemory-policy", "volatile-ttl")
    monkeypatch.setenv("RQJ_ALLOW_EVICTION", "1")
    assert findings(shop, "-u", server.url)["eviction"]["level"] == "warning"


@pytest.mark.lanes("fake")
def test_no_append_only_file_is_a_warning(shop: Shop, spawn: Spawn) -> None:
    found = findings(shop, "-u", spawn().url)["persistence"]
    assert (found["level"], "appendonly yes" in found["remedy"]) == ("warning", True)


@pytest.mark.lanes("fake")
def test_a_server_that_is_nearly_full(shop: Shop, spawn: Spawn) -> None:
    server = spawn()
    with server.client() as client:
        client.config_set("maxmemory", int(client.info("memory")["used_memory"] * 1.05))
    assert findings(shop, "-u", server.url)["memory"]["level"] == "warning"


@pytest.mark.lanes("fake")
def test_a_replica_is_an_error(shop: Shop, spawn: Spawn) -> None:
    server = spawn()
    with server.client() as client:
        client.replicaof("127.0.0.1", 1)
    found = findings(shop, "-u", server.url)["role"]
    assert (found["level"], found["remedy"]) == ("error", "Use its primary, 127.0.0.1:1.")


@pytest.mark.lanes("fake")
@pytest.mark.parametrize(
    ("rights", "check", "said"),
    [
        ("+@all ~rqj:* -hset -zadd", "rights", "may not call: HSET, ZADD"),
        ("+@all ~rqj:{bookstore}:*", "rights", "SADD rqj:namespaces"),
        ("+@all ~rqj:* -script", "scripts", "is not taken"),
        ("+@all ~rqj:* -info", "version", "does not tell"),
        ("+@all ~rqj:* -eval -evalsha", "rights", "EVAL"),
    ],
)
def test_a_user_without_all_rights(shop: Shop, spawn: Spawn, rights: str, check: str, said: str) -> None:
    server = spawn()
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "clerk", "on", ">secret", *rights.split())
    url = f"unix://clerk:secret@{server.socket}"
    found = findings(shop, "-u", url, "-n", "bookstore")
    assert found[check]["level"] in ("error", "warning")
    assert said.casefold() in found[check]["found"].casefold()
    assert "secret" not in shop.rqj("doctor", "-u", url, "-n", "bookstore").output


@pytest.mark.lanes("fake")
def test_another_format_is_an_error(shop: Shop) -> None:
    shop.enqueue("anything")
    shop.server.client().hset(shop.app.keys.fixed("meta"), "format", "99")
    assert findings(shop)["format"]["level"] == "error"


@pytest.mark.lanes("fake")
def test_a_slow_trip_is_a_warning(shop: Shop) -> None:
    ticks = iter(range(1000))
    found = {one.check: one for one in examine(shop.app, clock=lambda: float(next(ticks)))}
    assert (found["trip"].level, found["trip"].found) == ("warning", "1000.00 ms there and back")


@pytest.mark.lanes("fake")
def test_several_namespaces_do_not_matter(shop: Shop) -> None:
    for name in ("one", "two"):
        app = App(name, url=shop.server.url)
        app.run(app.operations.recover(3))
    assert findings(shop)["trip"]["level"] == "ok"


def test_the_commands_of_the_scripts_are_found() -> None:
    assert {"HGET", "HSET", "ZADD", "LPUSH", "TIME", "MGET", "ZCARD"} <= called_by_scripts()
    assert all(name.isupper() for name in called_by_scripts())


@pytest.mark.parametrize("name", ["changelog", "events"])
def test_a_changelog_of_a_foreign_type_is_named(real_app: App, name: str) -> None:
    key = real_app.keys.fixed(name)
    real_app.caller.command("SET", key, "mine")
    found = {one.check: one for one in examine(real_app)}["keys"]
    assert (found.level, found.found) == ("error", f"{key} is a string and should be a stream")


def test_a_key_of_a_foreign_type_is_named(real_app: App) -> None:
    key = real_app.keys.fixed("dead")
    real_app.caller.command("SET", key, "mine")
    found = {one.check: one for one in examine(real_app)}["keys"]
    assert found.level == "error"
    assert found.found == f"{key} is a string and should be a list"
    with pytest.raises(ScriptFailed, match="rqj doctor"):
        real_app.run(real_app.operations.survey())


@pytest.mark.parametrize("key", ["ready:mail:0", "tombs:mail", "scheduled:mail", "wake:mail"])
def test_a_queue_s_key_of_a_foreign_type_is_named(real_app: App, key: str) -> None:
    @real_app.job(queue="mail")
    def send() -> None: ...

    send.enqueue()
    family, _, rest = key.partition(":")
    real_app.caller.command("DEL", real_app.keys.prefix(family) + rest)
    real_app.caller.command("SADD", real_app.keys.prefix(family) + rest, "mine")
    found = {one.check: one for one in examine(real_app)}["keys"]
    assert found.level == "error"
    assert found.found.startswith(f"{real_app.keys.prefix(family)}{rest} is a set and should be a ")
