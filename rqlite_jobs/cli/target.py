"""Which namespace on which server a command talks to."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import click

from rqlite_jobs.cli.chosen import Chosen
from rqlite_jobs.cli.text import remark
from rqlite_jobs.errors import RqjError, Unreachable
from rqlite_jobs.keys import NAMESPACES

if TYPE_CHECKING:
    from rqlite_jobs.app import App
    from rqlite_jobs.inspector import Inspector


@dataclass(frozen=True)
class Target:
    """Where a command goes.

    Attributes:
        app: an app that points there; the user's own where one was named, else one without jobs.
        on_server: the namespaces that are on the server, if that was asked.
    """

    app: "App"
    on_server: tuple[str, ...] | None = None

    @property
    def inspect(self) -> "Inspector":
        """Readers of the namespace."""
        return self.app.inspect

    @cached_property
    def shown(self) -> str:
        """The namespace and the server, for a sentence."""
        return f"namespace {self.app.namespace!r} on {self.app.address.shown}"

    def explain_nothing(self) -> None:
        """Say why there may be nothing: the namespace is not on this server. Costs a trip."""
        there = namespaces(self.app) if self.on_server is None else self.on_server
        if self.app.namespace in there:
            return
        if not there:
            remark(f"There is no namespace on {self.app.address.shown}: nothing was ever enqueued there.")
        else:
            remark(f"There is no {self.shown}; there is: {', '.join(there[:20])}.")


def resolve(chosen: Chosen, *, any_namespace: bool = False) -> Target:
    """Find out which namespace is meant: -n > --app > RQJ_NAMESPACE / RQJ_APP > settings file > the only one there is.

    Args:
        chosen: the options of the command line.
        any_namespace: it is the server that matters; where nothing says which of several namespaces, any will do.

    Raises:
        AppNotFound: there is no such app.
        UsageError: nothing says which of several namespaces.
        Unreachable: the server had to be asked, and does not answer.
    """
    if is_app_named(chosen):
        return Target(named_app(chosen))
    app = _without_jobs(chosen)
    if chosen.namespace or app.settings.origin("namespace") != "default":
        return Target(app)
    there = () if any_namespace and not _may_ask(app) else namespaces(app)
    if len(there) > 1 and not any_namespace:
        raise click.UsageError(
            f"there are {len(there)} namespaces on {app.address.shown}: {', '.join(there[:50])}. Say which: -n NAME"
        )
    if there:
        app.set_flags(namespace=there[0])
    return Target(app, there)


def pointed_app(chosen: Chosen) -> "App":
    """The app that the options, the variables and the files point at; no server is asked.

    Raises:
        AppNotFound: there is no such app.
    """
    return named_app(chosen) if is_app_named(chosen) else _without_jobs(chosen)


def is_app_named(chosen: Chosen) -> bool:
    """Does `--app` or RQJ_APP say whose jobs are meant?"""
    return bool(chosen.app or os.environ.get("RQJ_APP"))


def named_app(chosen: Chosen) -> "App":
    """The user's own app, with its `imports` and the options of the command line.

    Raises:
        AppNotFound: there is none of this name, or a module of it cannot be imported.
    """
    from rqlite_jobs.cli.loading import load_app

    app = load_app(chosen.app or os.environ["RQJ_APP"])
    _quiet()
    # RQJ_NAMESPACE goes before an app that RQJ_APP names, as `-n` goes before `--app`.
    beside = None if chosen.app else os.environ.get("RQJ_NAMESPACE")
    app.set_flags(url=chosen.url, namespace=chosen.namespace or beside or None)
    return app


def namespaces(app: "App") -> tuple[str, ...]:
    """The namespaces that anything was ever enqueued in, on the server of an app."""
    found = app.caller.command("SMEMBERS", NAMESPACES)
    return tuple(sorted(raw.decode("utf-8", "replace") for raw in found))


def _may_ask(app: "App") -> bool:
    """Is this user of the server allowed to ask for the namespaces?"""
    try:
        namespaces(app)
    except Unreachable:
        raise
    except RqjError:
        return False
    return True


def _without_jobs(chosen: Chosen) -> "App":
    from rqlite_jobs.app import App

    _quiet()
    app = App()
    app.set_flags(url=chosen.url, namespace=chosen.namespace)
    return app


def _quiet() -> None:
    # Whoever types `rqj` need not be told that the embedded server is used.
    from rqlite_jobs.embedded import Embedded

    Embedded.announce = False
