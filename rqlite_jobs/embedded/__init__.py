"""The server that starts by itself: a real Valkey on a unix socket, kept in one folder."""

from rqlite_jobs.embedded.program import binary as binary
from rqlite_jobs.embedded.server import Embedded as Embedded
from rqlite_jobs.embedded.server import Status as Status

__all__ = ["Embedded", "Status", "binary"]
