"""Bad ground is refused at the door: a server that a worker must not serve, with what to change."""

import logging
from collections.abc import Iterable

from rqlite_jobs.errors import RqjError
from rqlite_jobs.inspector.checkup import Finding

log = logging.getLogger("rqlite_jobs.worker")


def check_ground(findings: Iterable[Finding]) -> None:
    """Refuse a server that was found unfit: errors stop a worker, warnings are logged.

    Args:
        findings: what `examine` found, the checks behind `rqj doctor`.

    Raises:
        RqjError: the first error, with its remedy.
    """
    for finding in findings:
        if finding.level == "error":
            raise RqjError(
                f"this server is no ground for a worker, by its {finding.check}: {finding.found}.",
                hint=finding.remedy,
            )
        if finding.level == "warning":
            log.warning("%s: %s. %s", finding.check, finding.found, finding.remedy)
