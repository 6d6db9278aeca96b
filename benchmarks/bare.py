"""What the client library itself allows: loops of EVALSHA around scripts that do nothing, or next to nothing."""

from collections.abc import Iterable, Sequence

import redis

EMPTY = "return 1"
# KEYS: queue, jobs. ARGV: id, payload. The least that storing a job can be.
PUSH = "redis.call('HSET',KEYS[2],ARGV[1],ARGV[2]) return redis.call('LPUSH',KEYS[1],ARGV[1])"

# KEYS: queue, jobs. ARGV: id, payload, id, payload ...
BULK = """
local ids = {}
for i = 1, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
redis.call('HSET', KEYS[2], unpack(ARGV))
return redis.call('LPUSH', KEYS[1], unpack(ids))
"""


def words_of(request: bytes) -> list[bytes]:
    """The words of a packed command, behind its first one."""
    words, at = [], request.index(b"\r\n") + 2
    while at < len(request):
        end = request.index(b"\r\n", at)
        size = int(request[at + 1 : end])
        words.append(request[end + 2 : end + 2 + size])
        at = end + 4 + size
    return words[1:]


class Bare:
    """A plain redis-py client, with or without a pool of connections, and nothing of ours around it.

    Args:
        url: the server's.
        held: keep one connection instead of taking one from a pool for every call.
    """

    def __init__(self, url: str, held: bool = False) -> None:
        self._client = redis.Redis.from_url(url, single_connection_client=held)
        self._empty = str(self._client.script_load(EMPTY))
        self._push = str(self._client.script_load(PUSH))
        self._bulk = str(self._client.script_load(BULK))

    def trips(self, n: int) -> None:
        """`n` times EVALSHA of an empty script: what a round trip costs."""
        evalsha, sha = self._client.evalsha, self._empty
        for _ in range(n):
            evalsha(sha, 0)

    def pushes(self, n: int) -> None:
        """`n` times EVALSHA of HSET and LPUSH: what storing a job must cost."""
        evalsha, sha, payload = self._client.evalsha, self._push, b'["crunch_sales",[42]]'
        for number in range(n):
            evalsha(sha, 2, "bare:queue", "bare:jobs", f"bare-job-id-{number:08}", payload)

    def bulk(self, n: int, batch: int) -> None:
        """The same for `batch` jobs a call: `n` in all."""
        for first in range(0, n, batch):
            args: list[str | bytes] = []
            for number in range(first, min(first + batch, n)):
                args += (f"bare-job-id-{number:08}", b'["crunch_sales",[42]]')
            self._client.evalsha(self._bulk, 2, "bare:queue", "bare:jobs", *args)

    def calls(self, requests: Iterable[Sequence[bytes]]) -> None:
        """EVALSHA of any script: its hash, the number of keys, and the rest, for each request."""
        evalsha = self._client.evalsha
        for sha, count, *words in requests:
            evalsha(sha.decode(), int(count), *words)

    def clear(self) -> None:
        """Drop what was pushed."""
        self._client.delete("bare:queue", "bare:jobs")
