"""Python processes for the cases: fresh interpreters with this checkout, told what to do by a piece of code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[2]


def told(code: str, *arguments: str, **environ: str) -> Any:
    """Run code in a fresh interpreter and read what it prints as JSON.

    Args:
        code: the program; `sys.argv[1:]` are the arguments.
        arguments: for it.
        environ: variables besides those of this process.
    """
    # Nothing of the surroundings may choose another server or namespace.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RQJ_", "REDIS_URL"))}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**kept, "PYTHONPATH": str(CHECKOUT), **environ},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
