"""What every benchmark shares: its options, its rounds, the table it prints, the bars it is held to."""

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

CHECKOUT = Path(__file__).resolve().parent.parent
"""What is measured: the checkout that this file lies in, not an installed copy."""
sys.path.insert(0, str(CHECKOUT))

LIBRARIES = ("redis", "hiredis", "msgspec", "uvloop")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a name, a unit, and a value for each round."""

    name: str
    unit: str
    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)


@dataclass(frozen=True, slots=True)
class Bar:
    """What a value is held to: a name, the value, `>=` or `<=`, and the bound."""

    name: str
    value: float
    sign: str
    bound: float

    @property
    def met(self) -> bool:
        """Is the value on the right side?"""
        return self.value >= self.bound if self.sign == ">=" else self.value <= self.bound


class Report:
    """The options and the results of one benchmark.

    Args:
        question: what it answers, the first line of its documentation.
        rounds: how often everything is measured.
        n: how many jobs, or calls, a round.
        quick: the same two for `--quick`.

    Everything that is compared is measured in turns, round by round, so that what else the machine does hits all
    sides alike; ratios are made round by round, and their median counts.
    """

    def __init__(self, question: str | None, rounds: int, n: int, quick: tuple[int, int]) -> None:
        self.question = (question or "").strip().partition("\n")[0]
        parser = argparse.ArgumentParser(description=self.question)
        parser.add_argument("--rounds", type=int, help=f"how often everything is measured; default {rounds}")
        parser.add_argument("-n", type=int, help=f"how many jobs or calls a round; default {n}")
        parser.add_argument("--quick", action="store_true", help="a short form, to see that it runs")
        parser.add_argument("--server", choices=("redis", "valkey"), default="", help="which kind of server")
        parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
        parser.add_argument("--check", action="store_true", help="end with 1 where a bar is missed")
        given = parser.parse_args()
        chosen = quick if given.quick else (rounds, n)
        self.rounds: int = given.rounds or chosen[0]
        self.n: int = given.n or chosen[1]
        self.server_kind: str = given.server
        self._json: bool = given.json
        self._check: bool = given.check
        self._rows: dict[str, Row] = {}
        self._bars: list[Bar] = []
        self._load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0

    def add(self, name: str, unit: str, *values: float) -> None:
        """Note values of a row; a new name begins a row."""
        self._rows.setdefault(name, Row(name, unit)).values.extend(values)

    def ratio(self, name: str, above: str, below: str) -> float:
        """Add the row `above / below`, made round by round; answers its median."""
        pairs = zip(self._rows[above].values, self._rows[below].values, strict=True)
        self.add(name, "", *(one / other for one, other in pairs))
        return self.median(name)

    def median(self, name: str) -> float:
        """The middle value of a row."""
        return self._rows[name].median

    def bar(self, name: str, value: float, sign: str, bound: float) -> None:
        """Hold a value to a bound: `>=` at least, `<=` at most."""
        self._bars.append(Bar(name, value, sign, bound))

    def end(self, server_version: str) -> NoReturn:
        """Print everything, and leave."""
        facts = versions(server_version)
        if self._json:
            rows = {row.name: {"unit": row.unit, **_spread(row.values)} for row in self._rows.values()}
            bars = {
                bar.name: {"value": bar.value, "sign": bar.sign, "bound": bar.bound, "met": bar.met}
                for bar in self._bars
            }
            print(json.dumps({"question": self.question, "versions": facts, "rows": rows, "bars": bars}))
        else:
            print(self.question)
            print(", ".join(f"{name} {version}" for name, version in facts.items()), end="")
            print(f"; load {self._load:.1f}; {self.rounds} rounds of {self.n:,}\n")
            self._table()
            for bar in self._bars:
                word = "met   " if bar.met else "MISSED"
                print(f"{word} {bar.name}: {_shown(bar.value)}, bar {bar.sign} {_shown(bar.bound)}")
        sys.exit(1 if self._check and not all(bar.met for bar in self._bars) else 0)

    def _table(self) -> None:
        width = max(len(row.name) for row in self._rows.values())
        print(f"{'':{width}} {'min':>10} {'median':>10} {'max':>10}")
        for row in self._rows.values():
            low, middle, high = (_shown(value) for value in _spread(row.values).values())
            print(f"{row.name:{width}} {low:>10} {middle:>10} {high:>10} {row.unit}".rstrip())
        print()


def rate(n: int, run: Callable[[], object]) -> float:
    """How many a second, where `run` does `n`."""
    began_s = time.perf_counter()
    run()
    return n / (time.perf_counter() - began_s)


def versions(server_version: str) -> dict[str, str]:
    """What was measured, and on what."""
    server, _, number = server_version.partition(" ")
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name if name != "redis" else "redis-py"] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {**found, f"{server}-server": number, "cores": str(os.cpu_count())}


def percentile(values: Iterable[float], share: float) -> float:
    """The value that `share` of all are not above: 0.95 for p95."""
    ranked: Sequence[float] = sorted(values)
    return ranked[min(int(share * len(ranked)), len(ranked) - 1)]


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def _shown(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}"
