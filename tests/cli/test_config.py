"""`rqj config`: each setting as it would be written, where it came from, and never a password."""

import json
from pathlib import Path

import pytest

from rqlite_jobs.setting import SETTINGS
from tests.cli.conftest import Shop

pytestmark = pytest.mark.lanes("fake")
APP = """
import redis
from rqlite_jobs import App, Retry
app = App("bookstore", lease="3s", retry=Retry(4, delay=["1s", "5s"], never=KeyError))
connected = App("bookstore", redis=redis.Redis(host="db", port=7, db=2, password="hush"))
"""


@pytest.fixture
def module(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"{shop.module}_settings"
    (shop.folder / f"{name}.py").write_text(APP, "utf-8")
    return name


def test_shows_all_with_their_origins(shop: Shop, module: str) -> None:
    (shop.folder / "rqj.toml").write_text('dead-max-age = "90d"\nlease = "9s"\n')
    (shop.folder / "pyproject.toml").write_text("[tool.rqj]\npayload_max = 1048576\n")
    found = shop.json("config", "-a", f"{module}:app", "--concurrency", "3", "--no-embedded")["settings"]
    assert list(found) == list(SETTINGS)
    told = {name: (one["value"], one["from"]) for name, one in found.items()}
    assert told["namespace"] == ("bookstore", "code")
    assert told["lease"] == ("3s", "code")
    assert told["beat"] == ("1s", "default")
    assert told["concurrency"] == (3, "flag")
    assert told["embedded"] == (False, "flag")
    assert told["dead_max_age"] == ("90d", str(shop.folder / "rqj.toml"))
    assert told["payload_max"] == ("1MiB", str(shop.folder / "pyproject.toml"))
    assert told["retry"] == (
        {"max_attempts": 4, "delay": ["1s", "5s"], "never": ["<class 'KeyError'>"]},
        "code",
    )
    assert told["url"] == (shop.server.url, "RQJ_URL")
    lines = shop.ok("config", "-a", f"{module}:app").splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(SETTINGS)
    assert lines[2 + list(SETTINGS).index("lease")].split() == ["lease", "3s", "code"]


def test_without_an_app_or_a_server(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RQJ_URL")
    monkeypatch.delenv("RQJ_EMBEDDED")
    assert shop.ok("config", "url", "lease", "retry").splitlines() == ["the embedded server", "15s", "3"]
    assert shop.ok("config", "stop-after", "embedded").splitlines() == ["25s", "1"]
    assert shop.json("config", "url") == {"settings": {"url": {"value": None, "from": "default"}}}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://:hush@db:7/2", "redis://***@db:7/2"),
        ("redis://ann:hush@db", "redis://***@db:6379/0"),
        ("redis://db?password=hush", "redis://***@db:6379/0"),
        ("redis://db", "redis://db:6379/0"),
        ("unix://:hush@/tmp/s?db=3", "unix://***@/tmp/s?db=3"),
        ("redis://:hu@sh/1@db", "redis://***"),
        ("nonsense://hush", "nonsense://***"),
        ("hush", "***"),
        ("embedded:///data", "embedded:///data"),
    ],
)
def test_no_password_is_shown(shop: Shop, monkeypatch: pytest.MonkeyPatch, url: str, said: str) -> None:
    monkeypatch.setenv("RQJ_URL", url)
    assert shop.ok("config", "url") == f"{said}\n"
    assert "hush" not in shop.ok("config") + json.dumps(shop.json("config"))


def test_the_address_of_a_client_goes_before_all_but_a_flag(shop: Shop, module: str) -> None:
    app = f"{module}:connected"
    assert shop.json("config", "-a", app, "url")["settings"]["url"] == {
        "value": "redis://***@db:7/2",
        "from": "code",
    }
    assert shop.ok("config", "-a", app, "url", "-u", "redis://other").strip() == "redis://other:6379/0"


@pytest.mark.parametrize(
    ("words", "environ", "file", "said"),
    [
        (["leese"], {}, "", "'leese'"),
        (["--leese", "2s"], {}, "", "--leese"),
        ([], {"RQJ_LEESE": "2s"}, "", "the variable RQJ_LEESE"),
        ([], {}, 'leese = "2s"', "rqj.toml"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest(
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    environ: dict[str, str],
    file: str,
    said: str,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    Path("rqj.toml").write_text(file)
    result = shop.rqj("config", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    first, hint = result.stderr.splitlines()
    assert said in first
    assert "lease" in hint


def test_every_setting_is_a_flag(shop: Shop) -> None:
    given = {
        "namespace": "other", "default_queue": "q", "retry": "7", "lease": "9s", "beat": "2s", "sweep": "500ms",
        "stop_after": "5s", "concurrency": "2", "max_crashes": "5", "dead_max_count": "6", "dead_max_age": "7d",
        "rejected_max_count": "8", "done_max_count": "9", "changelog_max": "10", "payload_max": "1KiB",
        "result_ttl": "forever", "result_max": "2KiB", "lock_safety": "3d", "data_dir": "/data", "url": "redis://db:7/1",
    }  # fmt: skip
    words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]
    found = shop.json("config", *words, "--no-embedded", "--allow-eviction")["settings"]
    assert {name: one["from"] for name, one in found.items()} == dict.fromkeys(SETTINGS, "flag")
    assert {name: str(found[name]["value"]) for name in given} == given
    assert (found["embedded"]["value"], found["allow_eviction"]["value"]) == (False, True)
    worker = shop.ok("worker", "--help")
    assert [name for name in SETTINGS if f"--{name.replace('_', '-')}" not in worker] == []


def test_an_address_in_the_wrong_place_is_told_without_its_password(shop: Shop) -> None:
    for words in (
        ["stats", "redis://:hu@sh@db"],
        ["-n", "redis://:hush@db", "stats"],
        ["config", "redis://:hush@db"],
    ):
        result = shop.rqj(*words, "--debug")
        assert result.exit_code == 2
        assert "redis://***@db" in result.stderr
        assert "sh@" not in result.stderr
