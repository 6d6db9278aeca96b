"""Settings: where each may come from, what each may be, and where the value in force came from.

A flag of the command line goes before an argument in code; then come the environment (`RQJ_LEASE=2s`),
`rqj.toml`, `[tool.rqj]` in `pyproject.toml`, and the default.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from rqlite_jobs.backoff import Retry
from rqlite_jobs.durations import to_text
from rqlite_jobs.errors import BadOption, UnknownOption, nearest
from rqlite_jobs.setting import SETTINGS

_PREFIX = "RQJ_"
_NO_SETTING = frozenset({"RQJ_APP"})
# Every pod gets these for a service that is called rqj.
_OF_KUBERNETES = re.compile(
    r"RQJ_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of settings.

    Attributes:
        source: what `Settings.origin` says of a value from here: `flag`, `code`, the path of a file ...
        values: by the name of the setting, as they were found there.
    """

    source: str
    values: Mapping[str, Any] = field(repr=False)  # an address may hold a password


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, read and checked. Made by `Settings.load`.

    Attributes:
        url: address of the server; None: the embedded one. `REDIS_URL` stands in for `RQJ_URL`.
        namespace: whose jobs these are (`default`).
        default_queue: where a job goes that names no queue (`default`).
        retry: the policy of handlers without one of their own (`Retry()`). As text: a number of attempts; in
            a file: a table with `max_attempts delay base cap jitter`.
        lease_ms: how long a worker that is not heard of keeps its jobs (`15s`; at least 100 ms).
        beat_ms: how often a worker says that it lives (a third of the lease: `5s`).
        sweep_ms: how often a worker looks after dead ones at most (`1s`, or a beat if that is shorter).
        stop_after_ms: how long a worker that was told to stop lets its jobs run (`25s`; 0: not at all).
        concurrency: jobs that one worker process runs at once (`10`).
        max_crashes: a job whose process died this often is buried (`3`).
        dead_max_count: dead jobs that are kept (`10000`; 0: none).
        dead_max_age_ms: how long they are kept at most (`180d`).
        rejected_max_count: refused duplicates that are kept (`1000`; 0: none).
        done_max_count: finished jobs that are kept (`1000`; 0: none).
        changelog_max: lines of the changelog that are kept (`10000`; 0: none).
        payload_max: the largest arguments of one job, in bytes (`256KiB`).
        result_ttl_ms: how long results are kept at least, -1 for ever (not given: as long as their job is among the
            last `done_max_count`).
        result_max: the largest result of one job, in bytes (`256KiB`).
        lock_safety_ms: after this a lock that lives with its job is let go although nobody did so (`30d` past
            the due time of the job).
        data_dir: folder of the embedded server (`$XDG_DATA_HOME/rqlite-jobs`).
        embedded: whether an embedded server may be started (`1`).
        allow_eviction: whether a worker serves a server that may drop keys when its memory is full (`0`).
    """

    url: str | None = field(repr=False)  # it may hold a password
    namespace: str
    default_queue: str
    retry: Retry
    lease_ms: int
    beat_ms: int
    sweep_ms: int
    stop_after_ms: int
    concurrency: int
    max_crashes: int
    dead_max_count: int
    dead_max_age_ms: int
    rejected_max_count: int
    done_max_count: int
    changelog_max: int
    payload_max: int
    result_ttl_ms: int | None
    result_max: int
    lock_safety_ms: int
    data_dir: Path
    embedded: bool
    allow_eviction: bool
    _layers: tuple[Layer, ...] = field(repr=False, compare=False)

    @classmethod
    def load(
        cls,
        overrides: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        *,
        flags: Mapping[str, Any] | None = None,
    ) -> Self:
        """Read all settings from wherever they are given.

        Args:
            overrides: arguments in code, by name (`{"lease": "2s"}`); None as a value means: not given.
            environ: the environment; that of this process if None.
            cwd: the folder in which `rqj.toml` and `pyproject.toml` are looked for; the current one if None.
            flags: options of the command line, by name; they go before everything else.

        Raises:
            UnknownOption: a name that is no setting.
            BadOption, BadDuration, BadName: a value that the setting cannot have, with where it came from.

        Cost: reads up to two files; once for an app.
        """
        environ = os.environ if environ is None else environ
        layers = [Layer("flag", flags or {}), Layer("code", overrides or {}), *_environment(environ)]
        layers += _files(Path.cwd() if cwd is None else cwd)
        layers.append(Layer("default", {"data_dir": _default_data_dir(environ)}))
        return cls._from(tuple(layers))

    def but(self, source: str = "code", /, **overrides: Any) -> Self:
        """Copy with some settings given anew; a value of None leaves a setting as it is.

        Args:
            source: what `origin` shall say of them: `code`, `flag`.

        Raises:
            The errors of `load`.

        Example: `settings.but(lease="2s").beat_ms` is 666.
        """
        return self._from((Layer(source, overrides), *self._layers))

    def written(self, name: str) -> Any:
        """A setting as it would be written in a file: `15s`, `256KiB`; a URL with its credentials.

        Raises:
            UnknownOption: there is no such setting.

        >>> Settings.load({"lease": 2}).written("lease")
        '2s'
        """
        _check_known([name], "")
        setting = SETTINGS[name]
        value = getattr(self, setting.attribute)
        return None if value is None else setting.written(value)

    def origin(self, name: str) -> str:
        """Say where a setting came from: `flag`, `code`, the variable, the path of a file, or `default`.

        Raises:
            UnknownOption: there is no such setting.

        >>> Settings.load({"lease": "2s"}).origin("lease")
        'code'
        """
        _check_known([name], "")
        return _found(self._layers, name)[1]

    @classmethod
    def _from(cls, layers: tuple[Layer, ...]) -> Self:
        for layer in layers:
            _check_known(layer.values, layer.source)
        read: dict[str, Any] = {}
        for name, setting in SETTINGS.items():
            value, source = _found(layers, name)
            value = setting.default if value is None else value
            read[setting.attribute] = None if value is None else setting.parse(_what(name, source), value)
        _fill_in_times(read)
        return cls(**read, _layers=layers)


def _fill_in_times(read: dict[str, Any]) -> None:
    """Work out the beat and the sweep that were not given; refuse a beat that is too slow for the lease."""
    lease_ms = read["lease_ms"]
    # Not constants: whoever only says lease=2s means it, and a beat of 5 s would lose every job.
    if read["beat_ms"] is None:
        read["beat_ms"] = lease_ms // 3
    if read["sweep_ms"] is None:
        read["sweep_ms"] = min(1000, read["beat_ms"])
    if read["beat_ms"] >= lease_ms:
        raise BadOption(
            f"the beat ({to_text(read['beat_ms'])}) is not shorter than the lease ({to_text(lease_ms)}), "
            "so every worker would lose its jobs.",
            hint="Leave the beat out: it is a third of the lease then.",
            option="beat",
        )


def _environment(environ: Mapping[str, str]) -> Iterator[Layer]:
    """The variables, one layer each; an empty one counts as not set, as compose files leave them."""
    for variable, value in sorted(environ.items()):
        name = variable.removeprefix(_PREFIX).lower()
        if not variable.startswith(_PREFIX) or variable in _NO_SETTING or not value:
            continue
        if name in SETTINGS:
            yield Layer(variable, {name: value})
        elif not _OF_KUBERNETES.fullmatch(variable):
            raise _unknown(name, f"the variable {variable}")
    if environ.get("REDIS_URL"):
        yield Layer("REDIS_URL", {"url": environ["REDIS_URL"]})


def _files(folder: Path) -> Iterator[Layer]:
    """What the two files in a folder say. Only this folder: one from further up would be a surprise."""
    for path in (folder / "rqj.toml", folder / "pyproject.toml"):
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise BadOption(f"{path} cannot be read: {error.strerror}.") from error
        except ValueError as error:  # not TOML, or not UTF-8
            raise BadOption(f"{path} is not a TOML file: {error}.", hint="Mend it at that place.") from error
        if path.name == "pyproject.toml":
            tool = values.get("tool")
            values = tool.get("rqj", {}) if isinstance(tool, dict) else {}
            if not isinstance(values, dict):
                raise BadOption(
                    f"[tool.rqj] in {path} is no table.",
                    hint="Write [tool.rqj] on a line of its own, and settings below it.",
                )
        yield Layer(str(path), {name.replace("-", "_"): value for name, value in values.items()})


def _default_data_dir(environ: Mapping[str, str]) -> Path:
    home = environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home, "rqlite-jobs")


def _check_known(names: Iterable[str], source: str) -> None:
    for name in names:
        if name not in SETTINGS:
            raise _unknown(name, source)


def _unknown(name: str, source: str) -> UnknownOption:
    where = f", given by {source}" if source else ""
    return UnknownOption(f"there is no setting {name!r}{where}.", hint=nearest(name, SETTINGS), option=name)


def _found(layers: tuple[Layer, ...], name: str) -> tuple[Any, str]:
    """The first value that is given, and by what."""
    for layer in layers:
        value = layer.values.get(name)
        if value is not None:
            return value, layer.source
    return None, "default"


def _what(name: str, source: str) -> str:
    """What an error calls a setting: as it was written where it came from."""
    if source == "flag":
        return f"--{name.replace('_', '-')}"
    if source.isupper():  # a variable
        return source
    return name if source in ("code", "default") else f"{name} in {source}"
