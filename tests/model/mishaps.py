"""What goes wrong between one request and the next."""

from hypothesis import strategies as st

from rqlite_jobs.job import NewJob
from tests.model.choices import answered_ways, queues
from tests.model.history import History
from tests.model.picture import FOREIGN


class Mishaps(History):
    """A method a mishap; see `choices.mishaps` for how often each comes."""

    def flush_scripts(self, data: st.DataObject) -> None:
        self.stage.client.script_flush()

    def crash(self, data: st.DataObject) -> None:
        """A worker's process dies: from now on it says nothing."""
        if len(self.alive) > 1:
            self.do_end(data.draw(st.sampled_from(self.alive)))

    def steal_token(self, data: st.DataObject) -> None:
        """A waiter takes the token of a queue; its turn comes some time."""
        queue = data.draw(queues)
        found = self.stage.client.lpop(self.stage.keys.wake(queue))
        assert (found is not None) == self.model.take_token(queue)
        if found is not None:
            self.stage.waiters.owes(queue)

    def id_exists(self, data: st.DataObject) -> None:
        if self.model.jobs:
            there = data.draw(st.sampled_from(sorted(self.model.jobs)))
            # Never cut off: sent again when the id is free, it would be an enqueue of an id that was used before.
            beside = [self.new_job("sales")] * data.draw(st.integers(0, 1))
            self.do_enqueue([*beside, NewJob(there, "mail", b'["g"]')], data.draw(answered_ways))

    def plant_or_mend(self, data: st.DataObject) -> None:
        """Somebody's key of another type stands where a ready list should be, till somebody takes it away."""
        name = self.stage.keys.prefix("ready") + "odd:0"
        self.stage.waiters.owes("odd")  # workers pass it by meanwhile, and look by themselves
        if "odd" in self.model.foreign:
            self.stage.client.delete(name)
            self.model.foreign.discard("odd")
            return
        waiting = len(self.model.ready.get("odd", ()))
        if waiting and self.registered:
            self.do_turn(
                data.draw(st.sampled_from(self.registered)), ["odd"], [], waiting, 0, False, "answered"
            )
        if not self.model.ready.get("odd"):
            self.stage.client.set(name, FOREIGN)
            self.model.foreign.add("odd")

    def server_was_away(self, data: st.DataObject) -> None:
        """Long enough for every lease to run out, while the workers lived on."""
        if self.model.workers:
            self.model.now_ms = max(self.model.now_ms, *self.model.workers.values()) + 1
