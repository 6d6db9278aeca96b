"""A bookstore's jobs. Serve them, from this folder, with: rqj worker shop:app"""

import time

from store import Store

from rqlite_jobs import App, Retry, until_executed

app = App("bookstore")
store = Store()


@app.job(queue="sales", lock=until_executed(key="book:{book_id}"))
def crunch_sales(book_id: int) -> float:
    """Add up what a book has sold. A hundred sales that come in at once need one run, not a hundred."""
    return store.crunch(book_id) / 100


@app.job(queue="mail")
def send_email(to: str, subject: str) -> None:
    """Send a letter; here to a provider that always answers."""
    store.call("mail")


@app.job(retry=Retry(max_attempts=3))
def flaky(order_id: int) -> None:
    """Charge an order, with a provider that is away twice and then answers."""
    if store.call(f"charge {order_id}") <= 2:
        raise ConnectionError("provider timeout")


@app.job(retry=Retry(max_attempts=3))
def broken(order_id: int) -> None:
    """Read an order that no attempt will ever make readable."""
    raise ValueError("bad data")


@app.job
def print_catalogue(season: str, pages: int = 12) -> None:
    """Print a catalogue page by page: long enough to be killed in the middle."""
    for page in range(1, pages + 1):
        store.print_page(season, page)
        time.sleep(0.1)
