"""Settings: their order of precedence, their forms, and clear refusals that name where a value came from."""

from pathlib import Path
from typing import Any

import pytest

from rqlite_jobs.backoff import Retry
from rqlite_jobs.config import Settings
from rqlite_jobs.errors import BadDuration, BadName, BadOption, UnknownOption
from rqlite_jobs.setting import SETTINGS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with both files."""
    (tmp_path / "rqj.toml").write_text('lease = "4s"\nbeat = "300ms"\nstop-after = "5s"\n')
    (tmp_path / "pyproject.toml").write_text(
        '[tool.rqj]\nlease = "6s"\nconcurrency = 3\nnamespace = "shop"\n'
    )
    return tmp_path


def load(overrides: dict[str, Any] | None = None, /, **environ: str) -> Settings:
    """Load without files."""
    return Settings.load(overrides, environ, Path("/nowhere"))


def test_the_defaults_are_those_of_the_contract() -> None:
    settings = load()
    found = {name: getattr(settings, setting.attribute) for name, setting in SETTINGS.items()}
    assert found == {
        "url": None, "namespace": "default", "default_queue": "default", "retry": Retry(), "lease": 15_000,
        "beat": 5_000, "sweep": 1_000, "stop_after": 25_000, "concurrency": 10, "max_crashes": 3,
        "dead_max_count": 10_000, "dead_max_age": 180 * 86_400_000, "rejected_max_count": 1_000,
        "done_max_count": 1_000, "changelog_max": 10_000, "payload_max": 262_144, "result_ttl": None,
        "result_max": 262_144, "lock_safety": 30 * 86_400_000,
        "data_dir": Path("~/.local/share/rqlite-jobs").expanduser(), "embedded": True,
        "allow_eviction": False,
    }  # fmt: skip
    assert {settings.origin(name) for name in SETTINGS} == {"default"}


def test_flags_go_before_code_before_variables_before_files_before_defaults(folder: Path) -> None:
    environ = {"RQJ_LEASE": "3s", "RQJ_STOP_AFTER": "7"}
    settings = Settings.load({"lease": "2s"}, environ, folder, flags={"lease": "1s"})
    seen = []
    for flags, code, env in (
        ({"lease": "1s"}, {"lease": "2s"}, environ),
        ({}, {"lease": "2s"}, environ),
        ({"lease": None}, {"lease": None}, environ),
        ({}, {}, {}),
    ):
        found = Settings.load(code, env, folder, flags=flags)
        seen.append((found.lease_ms, found.origin("lease")))
    toml = str(folder / "rqj.toml")
    assert seen == [(1_000, "flag"), (2_000, "code"), (3_000, "RQJ_LEASE"), (4_000, toml)]
    assert (settings.beat_ms, settings.origin("beat")) == (300, toml)
    assert (settings.stop_after_ms, settings.origin("stop_after")) == (7_000, "RQJ_STOP_AFTER")
    assert (settings.concurrency, settings.origin("concurrency")) == (3, str(folder / "pyproject.toml"))
    assert (settings.namespace, settings.default_queue, settings.origin("retry")) == (
        "shop",
        "default",
        "default",
    )


def test_rqj_url_goes_before_redis_url_and_empty_variables_are_not_set() -> None:
    assert load(RQJ_URL="redis://a", REDIS_URL="redis://b").url == "redis://a"
    settings = load(RQJ_URL="", REDIS_URL="redis://b")
    assert (settings.url, settings.origin("url")) == ("redis://b", "REDIS_URL")
    assert load(REDIS_URL="").url is None


def test_beat_and_sweep_follow_a_short_lease_and_a_slow_beat_is_refused() -> None:
    settings = load({"lease": "2s"})
    assert (settings.beat_ms, settings.sweep_ms) == (666, 666)
    shortest = load({"lease": "100ms"})
    assert (shortest.lease_ms, shortest.beat_ms, shortest.sweep_ms) == (100, 33, 33)
    with pytest.raises(BadOption, match=r"beat \(5s\) is not shorter than the lease \(2s\)"):
        load({"lease": "2s", "beat": "5s"})


def test_a_copy_with_other_settings_works_out_again_what_follows_from_them() -> None:
    settings = load({"concurrency": 4}, RQJ_NAMESPACE="shop")
    other = settings.but("flag", lease="2s", concurrency=None)
    assert (other.lease_ms, other.beat_ms, other.concurrency, other.namespace) == (2_000, 666, 4, "shop")
    assert (other.origin("lease"), other.origin("concurrency")) == ("flag", "code")
    assert settings.lease_ms == 15_000
    assert settings.but(lease="3s").origin("lease") == "code"


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("lease", "2", 2_000),
        ("lease", 0.5, 500),
        ("stop_after", "0", 0),
        ("stop_after", "0.5", 500),
        ("concurrency", "25", 25),
        ("payload_max", "1MiB", 1_048_576),
        ("payload_max", "500", 500),
        ("payload_max", 500, 500),
        ("payload_max", "2KB", 2_000),
        ("embedded", "0", False),
        ("embedded", False, False),
        ("allow_eviction", "yes", True),
        ("retry", "5", Retry(5)),
        ("retry", 5, Retry(5)),
        ("retry", Retry(7), Retry(7)),
        ("retry", {"max_attempts": 4, "delay": "5s", "jitter": False}, Retry(4, delay="5s", jitter=False)),
        ("data_dir", "/var/x", Path("/var/x")),
        ("data_dir", Path("/var/x"), Path("/var/x")),
        ("namespace", "größe", "größe"),
    ],
)
def test_values_are_read_in_the_forms_people_write(name: str, value: Any, found: Any) -> None:
    assert getattr(load({name: value}), SETTINGS[name].attribute) == found
    if isinstance(value, str):
        assert getattr(load(**{f"RQJ_{name.upper()}": value}), SETTINGS[name].attribute) == found


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("lease", "99ms", BadOption),
        ("lease", "soon", BadDuration),
        ("lease", True, BadDuration),
        ("lease", -1, BadDuration),
        ("concurrency", 0, BadOption),
        ("concurrency", True, BadOption),
        ("concurrency", "many", BadOption),
        ("concurrency", 2.5, BadOption),
        ("dead_max_count", -1, BadOption),
        ("payload_max", "big", BadOption),
        ("payload_max", 0, BadOption),
        ("payload_max", "1GiB", BadOption),
        ("embedded", "maybe", BadOption),
        ("retry", "often", BadOption),
        ("retry", 0, BadOption),
        ("retry", {"delay": "soon"}, BadDuration),
        ("retry", {"attempts": 3}, UnknownOption),
        ("data_dir", 5, BadOption),
        ("namespace", "a b", BadName),
        ("default_queue", 5, BadName),
        ("url", 5, BadOption),
    ],
)
def test_values_that_make_no_sense_are_refused(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        load({name: value})
    assert caught.value.hint  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"flags": {"stop_after": "x"}}, "--stop-after 'x'"),
        ({"overrides": {"stop_after": "x"}}, "stop_after 'x'"),
        ({"environ": {"RQJ_STOP_AFTER": "x"}}, "RQJ_STOP_AFTER 'x'"),
    ],
)
def test_an_error_calls_a_setting_what_its_user_called_it(where: dict[str, Any], says: str) -> None:
    with pytest.raises(BadDuration, match=says):
        Settings.load(**{"environ": {}, "cwd": Path("/nowhere"), **where})


def test_an_unknown_name_is_refused_with_the_nearest_one(folder: Path) -> None:
    with pytest.raises(UnknownOption, match=r"'leese', given by code") as caught:
        load({"leese": "2s"})
    assert caught.value.hint == "Did you mean 'lease'?"
    with pytest.raises(UnknownOption, match="variable RQJ_CONCURENCY"):
        load(RQJ_CONCURENCY="5")
    with pytest.raises(UnknownOption, match="variable RQJ_COLOUR"):
        load(RQJ_COLOUR="red")
    assert load(RQJ_APP="shop:app", RQJ_COLOUR="").namespace == "default"
    with pytest.raises(UnknownOption):
        load().origin("leese")
    (folder / "rqj.toml").write_text("colour = 1\n")
    with pytest.raises(UnknownOption, match=r"colour.*rqj\.toml"):
        Settings.load({}, {}, folder)


def test_what_kubernetes_says_of_a_service_called_rqj_is_passed_over() -> None:
    says = {
        "RQJ_SERVICE_HOST": "10.0.0.1", "RQJ_SERVICE_PORT": "80", "RQJ_SERVICE_PORT_WEB": "80",
        "RQJ_PORT": "tcp://10.0.0.1:80", "RQJ_PORT_80_TCP": "tcp://10.0.0.1:80", "RQJ_PORT_80_TCP_PROTO": "tcp",
        "RQJ_PORT_80_TCP_PORT": "80", "RQJ_PORT_80_TCP_ADDR": "10.0.0.1",
    }  # fmt: skip
    assert load(**says) == load()


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_written_reads_as_the_same(name: str) -> None:
    settings = load(
        {
            "url": "redis://db",
            "retry": Retry(5, delay=["1s", "2m"], jitter=False),
            "payload_max": 5000,
            "result_ttl": "1h",
        }
    )
    written = settings.written(name)
    assert getattr(load({name: written}), SETTINGS[name].attribute) == getattr(
        settings, SETTINGS[name].attribute
    )
    assert isinstance(written, str | int | dict)
    if name not in ("retry",):
        again = load(**{f"RQJ_{name.upper()}": str(written)})
        assert getattr(again, SETTINGS[name].attribute) == getattr(settings, SETTINGS[name].attribute)


def test_sizes_and_policies_are_written_as_people_do() -> None:
    def written(name: str, value: Any) -> Any:
        return load({name: value}).written(name)

    assert [written("payload_max", size) for size in (500, 1024, 1536, 2 * 1024**2)] == [
        500,
        "1KiB",
        1536,
        "2MiB",
    ]
    assert written("retry", Retry(7)) == 7
    assert written("retry", Retry(only=(KeyError,))) == {"only": ["<class 'KeyError'>"]}
    with pytest.raises(UnknownOption):
        load().written("leese")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("rqj.toml", b"lease = "),
        ("rqj.toml", b"\xff\xfe"),
        ("pyproject.toml", b"[tool\n"),
        ("pyproject.toml", b"[tool]\nrqj = 5\n"),
        ("rqj.toml", b"lease = [1]\n"),
        ("rqj.toml", b"lease = 2031-01-01\n"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, file: str, text: bytes) -> None:
    (tmp_path / file).write_bytes(text)
    with pytest.raises((BadOption, BadDuration), match=file):
        Settings.load({}, {}, tmp_path)


@pytest.mark.parametrize("text", ["", "[tool.other]\na = 1\n", "[project]\nname = 'x'\n"])
def test_a_pyproject_that_says_nothing_of_us_is_fine(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert Settings.load({}, {}, tmp_path) == load()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "rqj.toml").mkdir()
    with pytest.raises(BadOption, match=r"rqj\.toml cannot be read"):
        Settings.load({}, {}, tmp_path)


def test_the_password_of_a_url_is_in_no_repr() -> None:
    settings = load({"url": "redis://:hush@host"}, RQJ_URL="redis://:hush@other")
    assert settings.url == "redis://:hush@host"
    assert "hush" not in repr(settings) + repr(settings._layers)


def test_the_data_folder_follows_xdg_and_a_user_without_a_home_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert load(XDG_DATA_HOME="/srv/data").data_dir == Path("/srv/data/rqlite-jobs")
    monkeypatch.setattr(Path, "expanduser", _no_home)
    assert load().data_dir == Path("~/.local/share/rqlite-jobs")


def _no_home(path: Path) -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_the_environment_and_folder_of_the_process_are_the_default(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RQJ_CONCURRENCY", "8")
    settings = Settings.load()
    assert (settings.concurrency, settings.lease_ms) == (8, 4_000)
