"""Finding the App that a command line names: `module:attribute`, or `module` where it has exactly one."""

import importlib
import os
import re
import sys
import traceback
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rqlite_jobs.errors import AppNotFound, nearest

if TYPE_CHECKING:
    from rqlite_jobs.app import App

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def load_app(name: str) -> "App":
    """Import the module that a name says, find the App in it, and import what it names as its `imports`.

    The current folder is searched first.

    Args:
        name: `shop.jobs:app`, or `shop.jobs`.

    Raises:
        AppNotFound: there is no such module or attribute, it is no App, or the module fails when it is imported.
    """
    from rqlite_jobs.app import App

    app = _find(name, App)
    for module in app.imports:
        _import(module)
    return app


def _find(name: str, kind: "type[App]") -> "App":
    module_name, colon, path = name.partition(":")
    if (
        module_name.endswith(".py")
        or not _MODULE.fullmatch(module_name)
        or (colon and not _MODULE.fullmatch(path))
    ):
        raise AppNotFound(f"{name!r} does not name an app.", hint=_spelling(name))
    module = _import(module_name)
    if not colon:
        return _only_app(module, kind)
    found: Any = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            apps = [f"{module_name}:{other}" for other in _apps(module, kind)]
            raise AppNotFound(
                f"the module {module_name!r} has no attribute {part!r}.",
                hint=f"There is no {name!r}. "
                + (nearest(name, apps) if apps else "Nothing else in it is an App."),
            ) from None
    if not isinstance(found, kind):
        raise AppNotFound(
            f"{name!r} is a {type(found).__name__}, not an App.",
            hint=f"Name one that is an App, as {module_name}:app where {name!r} is not.",
        )
    return found


def _import(module_name: str) -> ModuleType:
    here = os.getcwd()
    if sys.path[:1] != [here]:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name == missing or module_name.startswith(missing + "."):
            raise AppNotFound(
                f"there is no module {missing!r}.",
                hint=f"The current folder, {here}, is searched first; no {module_name!r} is in it or installed.",
            ) from error
        raise _failed(module_name, error) from error
    except (Exception, SystemExit) as error:  # importing runs the user's code
        raise _failed(module_name, error) from error


def _failed(module_name: str, error: BaseException) -> AppNotFound:
    said = (str(error).strip().splitlines() or [""])[0][:300]
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")
    ]
    file, line = (frames[-1].filename, frames[-1].lineno) if frames else ("", 0)
    if isinstance(error, SyntaxError) and error.filename:
        file, line = error.filename, error.lineno
    place = f" at {os.path.relpath(file)}:{line}" if file and file != __file__ else ""
    return AppNotFound(
        f"importing {module_name!r} failed{place}: {type(error).__name__}: {said}",
        hint=f"Mend the module {module_name!r}; --debug shows the traceback.",
    )


def _only_app(module: ModuleType, kind: type) -> "App":
    apps = _apps(module, kind)
    if len({id(app) for app in apps.values()}) == 1:
        found: App = next(iter(apps.values()))
        return found
    if not apps:
        raise AppNotFound(
            f"the module {module.__name__!r} has no App in it.",
            hint=f'Make one: app = App("shop"), and name it {module.__name__}:app.',
        )
    names = ", ".join(f"{module.__name__}:{name}" for name in apps)
    raise AppNotFound(f"the module {module.__name__!r} has several Apps.", hint=f"Name one of them: {names}.")


def _apps(module: ModuleType, kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if isinstance(value, kind)}


def _spelling(name: str) -> str:
    if name.endswith(".py") or ".py:" in name or "/" in name:
        dotted = name.replace(".py", "").strip("./").replace("/", ".")
        return f"It is the name of a module, not a file: {dotted}, where {name!r} is."
    return f"Write module:attribute, as in shop.jobs:app, instead of {name!r}."
