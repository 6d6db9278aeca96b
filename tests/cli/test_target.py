"""Which namespace a command means."""

import pytest

from rqlite_jobs import App
from tests.cli.conftest import Shop

pytestmark = pytest.mark.lanes("fake", "valkey")


def one_job(shop: Shop, namespace: str) -> None:
    app = App(namespace, url=shop.server.url)

    @app.job
    def noop() -> None: ...

    noop.enqueue()


def test_none_on_the_server_is_an_empty_table_and_a_line(shop: Shop) -> None:
    for words in (["jobs"], ["queues"], ["locks"], ["dead"], ["scheduled"], ["workers"]):
        result = shop.rqj(*words)
        assert result.exit_code == 0
        assert result.stdout.startswith("No ")
        assert "There is no namespace on" in result.stderr
        answer = shop.json(*words)
        assert answer[words[0] if words[0] in answer else "jobs"] == []
    assert shop.json("stats")["enqueued"] == 0


def test_the_only_one_is_meant(shop: Shop) -> None:
    one_job(shop, "first")
    assert shop.json("jobs")["namespace"] == "first"


def test_several_are_listed_and_it_ends_with_2(shop: Shop) -> None:
    one_job(shop, "first")
    one_job(shop, "second")
    result = shop.rqj("jobs")
    assert result.exit_code == 2
    assert "there are 2 namespaces" in result.stderr
    assert "first, second" in result.stderr
    assert result.stdout == ""


def test_the_order(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second", "third", "bookstore"):
        one_job(shop, name)

    def meant(*words: str) -> str:
        found: str = shop.json("stats", *words)["namespace"]
        return found

    (shop.folder / "rqj.toml").write_text('namespace = "third"\n')
    assert meant() == "third"
    monkeypatch.setenv("RQJ_NAMESPACE", "second")
    assert meant() == "second"
    monkeypatch.setenv("RQJ_APP", shop.module)
    assert meant() == "second"
    monkeypatch.delenv("RQJ_NAMESPACE")
    assert meant() == "bookstore"
    monkeypatch.setenv("RQJ_NAMESPACE", "second")
    assert meant("--app", shop.module) == "bookstore"
    assert meant("--app", shop.module, "-n", "first") == "first"
    assert shop.json("-n", "first", "stats")["namespace"] == "first"


def test_a_namespace_that_is_not_there_is_told(shop: Shop) -> None:
    one_job(shop, "first")
    result = shop.rqj("jobs", "-n", "frist")
    assert result.exit_code == 0
    assert "There is no namespace 'frist'" in result.stderr
    assert "there is: first" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["jobs", "cancel", "-y", "nope"],
        ["jobs", "delete", "-y", "nope"],
        ["jobs", "bury", "-y", "nope"],
        ["dead", "revive", "-y", "nope"],
        ["dead", "delete", "-y", "--all"],
        ["queues", "purge", "-y", "nope"],
        ["recover"],
        ["doctor"],
        ["jobs"],
        ["stats"],
    ],
)
def test_nothing_is_written_into_a_namespace_by_a_slip(shop: Shop, words: list[str]) -> None:
    shop.rqj(*words, "-n", "typo")
    assert shop.server.client().keys("*") == []
