"""`python -m rqlite_jobs.cli`: the command `rqj` where its script is not on the PATH."""

from rqlite_jobs.cli.main import main

main()
