"""What each minute counted, seen from outside: after every step, and compared with the copies that the scripts keep."""

from collections import Counter

from rqlite_jobs.counters import read_copies
from tests.world import World

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


class Counting:
    """The history of one namespace: the counters after each step less those before it, by minute and day."""

    def __init__(self) -> None:
        self._before: Counter[str] = Counter()
        self._by_unit: dict[str, dict[int, Counter[str]]] = {"minute": {}, "day": {}}

    def check(self, found: World, now_ms: int) -> list[str]:
        """Take the history out of what `world()` read, and hold it to what was seen: what differs, in words."""
        totals = found.get("totals", {})
        mark = totals.pop("minute", "0")
        after = Counter({name: int(count) for name, count in totals.items()})
        if added := after - self._before:
            for unit, unit_ms in (("minute", MINUTE_MS), ("day", DAY_MS)):
                self._by_unit[unit].setdefault(now_ms // unit_ms, Counter()).update(added)
        self._before = after
        copies = {key: found.pop(key) for key in list(found) if key.startswith("history:")}
        told = {
            unit: _told(copies, unit, unit_ms, {**totals, "minute": mark})
            for unit, unit_ms in (("minute", MINUTE_MS), ("day", DAY_MS))
        }
        return [
            f"by {unit}: {told[unit]}, and it was {seen}"
            for unit, seen in self._by_unit.items()
            if told[unit] != seen
        ]


def _told(
    copies: dict[str, dict[str, str]], unit: str, unit_ms: int, totals: dict[str, str]
) -> dict[int, dict[str, int]]:
    """What the copies tell, all of them: the newest first, as `history` answers them."""
    numbers = sorted((int(key.rpartition(":")[2]) for key in copies if f":{unit}:" in key), reverse=True)
    entries = [[number, _flat(copies[f"history:{unit}:{number}"])] for number in numbers]
    return read_copies([0, _flat(totals), *entries], unit_ms // MINUTE_MS).added()


def _flat(counters: dict[str, str]) -> list[bytes]:
    return [part.encode() for pair in counters.items() for part in pair]
