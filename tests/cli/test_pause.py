"""`rqj queues pause` and `resume`."""

from tests.cli.conftest import Shop


def test_a_queue_is_paused_seen_paused_and_resumed(shop: Shop) -> None:
    shop.enqueue("crunch_sales", 1)
    assert shop.ok("queues", "pause", "sales").startswith("paused queue 'sales'")
    (row,) = [row for row in shop.json("queues")["queues"] if row["name"] == "sales"]
    assert row["paused_since"] is not None
    assert row["paused_until"] is None
    assert "@" in row["paused_by"]
    assert "till it is resumed" in shop.ok("queues")
    shop.enqueue("crunch_sales", 2)  # it still takes jobs
    assert shop.ok("queues", "resume", "sales").startswith("resumed queue 'sales'")
    assert shop.ok("queues", "resume", "sales").startswith("was not paused: queue 'sales'")


def test_a_pause_with_an_end(shop: Shop) -> None:
    shop.enqueue("crunch_sales", 1)
    assert shop.json("queues", "pause", "--for", "10m", "sales")["queues"] == {"sales": "paused"}
    (row,) = [row for row in shop.json("queues")["queues"] if row["name"] == "sales"]
    assert row["paused_until"] is not None


def test_what_cannot_be_paused(shop: Shop) -> None:
    shop.enqueue("crunch_sales", 1)
    assert shop.rqj("queues", "pause", "sale").exit_code == 3
    for words in (("--for", "0s"), ("--for", "soon")):
        assert shop.rqj("queues", "pause", *words, "sales").exit_code == 2
