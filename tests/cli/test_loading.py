"""Finding the app that a command line names; 6 where it cannot be."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rqlite_jobs import App, AppNotFound
from rqlite_jobs.cli.loading import load_app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    known = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_module_and_attribute(folder: Path) -> None:
    (folder / "ld_a.py").write_text("from rqlite_jobs import App\none, two = App('one'), App('two')\n")
    assert load_app("ld_a:two").namespace == "two"
    assert sys.path[0] == str(folder)


def test_a_module_with_one_app(folder: Path) -> None:
    (folder / "ld_pkg").mkdir()
    (folder / "ld_pkg" / "jobs.py").write_text("from rqlite_jobs import App\napp = App('one')\nsame = app\n")
    assert load_app("ld_pkg.jobs").namespace == "one"


def test_an_attribute_of_an_attribute(folder: Path) -> None:
    (folder / "ld_c.py").write_text("from rqlite_jobs import App\nclass Site:\n    jobs = App('one')\n")
    assert load_app("ld_c:Site.jobs").namespace == "one"


def test_imports_are_imported(folder: Path) -> None:
    (folder / "ld_app.py").write_text("from rqlite_jobs import App\napp = App('one', imports=('ld_mail',))\n")
    (folder / "ld_mail.py").write_text("from ld_app import app\n@app.job\ndef send() -> None: ...\n")
    app = load_app("ld_app")
    assert isinstance(app, App)
    assert list(app.handlers) == ["send"]


@pytest.mark.parametrize(
    ("name", "source", "said", "last_names"),
    [
        ("ld_none", None, "there is no module 'ld_none'", "ld_none"),
        ("ld_none.jobs:app", None, "there is no module 'ld_none'", "ld_none.jobs"),
        (
            "ld_x:ap",
            "from rqlite_jobs import App\napp = App()",
            "has no attribute 'ap'",
            "Did you mean 'ld_x:app'",
        ),
        ("ld_x:app", "", "has no attribute 'app'", "'ld_x:app'"),
        ("ld_x:app", "app = 42", "is a int, not an App", "'ld_x:app'"),
        ("ld_x", "", "has no App in it", "ld_x:app"),
        ("ld_x", "from rqlite_jobs import App\na, b = App(), App()", "has several Apps", "ld_x:a, ld_x:b"),
        ("ld_x", "import ld_missing", "importing 'ld_x' failed at ld_x.py:1: ModuleNotFoundError", "'ld_x'"),
        ("ld_x", "1 / 0", "importing 'ld_x' failed at ld_x.py:1: ZeroDivisionError", "'ld_x'"),
        ("ld_x", "def f(:\n", "importing 'ld_x' failed at ld_x.py:1: SyntaxError", "'ld_x'"),
        ("ld_x", "raise SystemExit(3)", "importing 'ld_x' failed at ld_x.py:1: SystemExit: 3", "'ld_x'"),
        ("ld_x.py:app", "", "does not name an app", "ld_x:app, where 'ld_x.py:app' is"),
        ("./shop/jobs.py", "", "does not name an app", "shop.jobs, where"),
        ("..shop", "", "does not name an app", "'..shop'"),
        ("a:b:c", "", "does not name an app", "'a:b:c'"),
        ("", "", "does not name an app", "''"),
    ],
)
def test_what_cannot_be_found_is_named_to_the_last_line(
    folder: Path, name: str, source: str | None, said: str, last_names: str
) -> None:
    if source is not None:
        (folder / "ld_x.py").write_text(source + "\n")
    with pytest.raises(AppNotFound) as caught:
        load_app(name)
    assert said in caught.value.message
    assert last_names in caught.value.hint
    assert "\n" not in caught.value.message + caught.value.hint
