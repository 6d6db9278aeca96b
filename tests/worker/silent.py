"""Reports that nobody hears, for executors whose jobs say nothing."""

from rqlite_jobs.current import CurrentJob


class Silent:
    def report(self, job: CurrentJob, value: float, text: str) -> None:
        raise AssertionError(f"{job} said something")

    def lost(self, job: CurrentJob) -> bool:
        return False


SILENT = Silent()
