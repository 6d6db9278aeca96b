"""What type checkers must refuse: every line that ends in `# refused`, and no other."""

from rqlite_jobs import (
    App,
    AsyncHandler,
    Job,
    Retry,
    SyncHandler,
    Worker,
    current_job,
    until_executed,
    until_expired,
)
from rqlite_jobs.testing import assert_enqueued, isolated

app = App("bookstore")
App(url=3)  # refused
App("a", "b")  # refused


@app.job
def crunch_sales(book_id: int, *, full: bool = False) -> float:
    return 1.0


@app.job
async def send_mail(to: str) -> bytes:
    return b""


@app.job(queue="sales")
def locked(book_id: int) -> list[int]:
    return []


# Arguments.

crunch_sales.enqueue()  # refused
crunch_sales.enqueue("42")  # refused
crunch_sales.enqueue(1, True)  # refused
crunch_sales.enqueue(1, fill=True)  # refused
crunch_sales.enqueue(1, delay="5s")  # refused
crunch_sales.s("42")  # refused
crunch_sales("42")  # refused
send_mail.enqueue(b"a@b.c")  # refused
locked.enqueue(book="1")  # refused
locked.options(queue="slow").enqueue("1")  # refused


async def enqueue_it() -> None:
    await crunch_sales.aenqueue("42")  # refused
    await locked.aenqueue()  # refused
    await crunch_sales(1)  # refused
    send_mail("a@b.c")  # refused


# Options.

crunch_sales.options(dely="5s")  # refused
crunch_sales.options(delay=[])  # refused
crunch_sales.options(run_at="2031-07-01")  # refused
crunch_sales.options(retry=3)  # refused
crunch_sales.options(lock=True)  # refused
crunch_sales.options(lock=until_executed)  # refused
crunch_sales.options(priority=3)  # refused
crunch_sales.options(id=3)  # refused
crunch_sales.options(tags="night")  # refused
crunch_sales.options(expires_in=None, tags=[3])  # refused
app.job(id="x")  # refused
crunch_sales.options("slow")  # refused

# Other libraries' verbs.

crunch_sales.delay(42)  # refused
crunch_sales.send(42)  # refused
send_mail.kiq("a@b.c")  # refused
crunch_sales.apply_async((42,))  # refused
app.task()  # refused

# Many calls.

crunch_sales.enqueue_many([1, 2])  # refused
crunch_sales.enqueue_many("ab")  # refused
crunch_sales.enqueue_many([send_mail.s("a@b.c")])  # refused
app.enqueue_many([(1,)])  # refused

# Declarations.

app.job(queue=3)  # refused
app.job(prioriti=3)  # refused
app.job("sales")  # refused
app.job(retry=3)  # refused
app.job(lock=until_executed)  # refused

# Kinds of handlers, and what a run yields.

wrong_kind: AsyncHandler[[int], list[int]] = locked  # refused
wrong_too: SyncHandler[[str], bytes] = send_mail  # refused
wrong_result: Job[str] = crunch_sales.enqueue(1)  # refused
narrower: Job[int] = crunch_sales.enqueue(1)  # refused

wrong_value: str = crunch_sales.enqueue(1).result()  # refused
crunch_sales.enqueue(1).result(b"5s")  # refused
app.job(result_ttl=b"1h")  # refused
crunch_sales.options(result_ttl=b"1h")  # refused

current_job().progress("40%")  # refused
current_job().progress(0.4, 5)  # refused
current_job().id = "x"  # refused

# The handle does not change.

job = crunch_sales.enqueue(42)
job.state = "done"  # refused
print(job.nothing)  # refused

# Control.

app.control.cancel(3)  # refused
app.control.pause()  # refused
app.control.pause("mail", until="10m")  # refused
app.control.release("k", True)  # refused

# Policies.

Retry(3, 5)  # refused
Retry(dely="5s")  # refused
until_executed("key")  # refused
until_executed(on_conflict="rerun")  # refused
until_executed(key=3)  # refused
until_expired()  # refused
until_expired(ttl="1h")  # refused

# Workers.

Worker(app, leese="2s")  # refused
Worker(app, concurrency="many")  # refused

# The testing kit.

assert_enqueued(crunch_sales)  # refused
assert_enqueued(crunch_sales, "42")  # refused
isolated()  # refused
isolated(app, clock=0)  # refused
