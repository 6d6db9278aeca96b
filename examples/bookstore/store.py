"""The bookstore's own data: one SQLite file, filled from the two CSV files beside this module."""

import csv
import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent

TABLES = """
CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT, author TEXT, cents INTEGER);
CREATE TABLE sales (id INTEGER PRIMARY KEY, book_id INTEGER, copies INTEGER);
CREATE TABLE totals (book_id INTEGER PRIMARY KEY, copies INTEGER, cents INTEGER, runs INTEGER);
CREATE TABLE calls (provider TEXT PRIMARY KEY, number INTEGER);
CREATE TABLE pages (catalogue TEXT, number INTEGER, pid INTEGER, PRIMARY KEY (catalogue, number));
"""


@dataclass(frozen=True, slots=True)
class Total:
    """What one book has sold, and how many runs it took to find out."""

    title: str
    copies: int
    cents: int
    runs: int


class Store:
    """The file. Each call opens it anew, so threads and processes may share one.

    Args:
        path: the file, made and filled when it is first used. None: what BOOKSTORE_DB names, else one in a
            temporary folder that ends with this process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._guard = threading.Lock()

    @property
    def path(self) -> Path:
        """Where the file is."""
        with self._guard:
            if self._path is None:
                named = os.environ.get("BOOKSTORE_DB")
                if not named:
                    self._folder = tempfile.TemporaryDirectory(prefix="bookstore-")
                    named = f"{self._folder.name}/bookstore.db"
                self._path = Path(named)
            return self._path

    def sales(self) -> list[int]:
        """The book of every sale, in the order in which they came in."""
        with self._open() as db:
            return [book_id for (book_id,) in db.execute("SELECT book_id FROM sales ORDER BY id")]

    def crunch(self, book_id: int) -> int:
        """Add up the sales of a book, and write the total down; answers with it in cents."""
        with self._open() as db:
            copies, cents = db.execute(
                "SELECT sum(sales.copies), sum(sales.copies * books.cents) FROM sales JOIN books"
                " ON books.id = sales.book_id WHERE books.id = ?",
                (book_id,),
            ).fetchone()
            if copies is None:
                raise LookupError(f"no book {book_id} was ever sold")
            db.execute(
                "INSERT INTO totals VALUES (?, ?, ?, 1) ON CONFLICT (book_id)"
                " DO UPDATE SET copies = excluded.copies, cents = excluded.cents, runs = runs + 1",
                (book_id, copies, cents),
            )
            return int(cents)

    def totals(self) -> list[Total]:
        """All totals, best seller first."""
        with self._open() as db:
            found = db.execute(
                "SELECT title, copies, totals.cents, runs FROM totals JOIN books ON books.id = book_id"
                " ORDER BY totals.cents DESC"
            )
            return [Total(*row) for row in found]

    def call(self, provider: str) -> int:
        """Note that a provider is called; answers with how often it was by now."""
        with self._open() as db:
            (number,) = db.execute(
                "INSERT INTO calls VALUES (?, 1) ON CONFLICT (provider) DO UPDATE SET number = number + 1"
                " RETURNING number",
                (provider,),
            ).fetchone()
            return int(number)

    def print_page(self, catalogue: str, number: int) -> None:
        """Print a page. Printed again it is the same page: a job may run twice, and must not do harm by it."""
        with self._open() as db:
            db.execute("INSERT OR REPLACE INTO pages VALUES (?, ?, ?)", (catalogue, number, os.getpid()))

    def pages(self, catalogue: str) -> list[int]:
        """Which process printed each page, in the order of the pages."""
        with self._open() as db:
            found = db.execute("SELECT pid FROM pages WHERE catalogue = ? ORDER BY number", (catalogue,))
            return [pid for (pid,) in found]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.path, timeout=10, isolation_level=None)
        try:
            db.execute("BEGIN IMMEDIATE")
            if not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                _fill(db)
            yield db
            db.execute("COMMIT")
        finally:
            db.close()


def _fill(db: sqlite3.Connection) -> None:
    for statement in TABLES.split(";"):
        db.execute(statement)
    for table in ("books", "sales"):
        with (HERE / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
            db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(header))})", rows)
