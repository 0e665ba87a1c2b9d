"""Checks of the official Python client against the embedded API server.

Prints `ok   <name>` or `FAIL <name>` (with indented details) for every check, and `done` at the end. The only
argument is the kubeconfig.
"""

import traceback

# The order is that of the checks: each module registers its own.
import objects, errors, lists, watches, patches, custom, dynamic_client  # noqa: E401, F401
from support import CHECKS

for title, function in CHECKS:
    try:
        function()
        print(f"ok   python: {title}")
    except Exception:  # A check may fail in any way; the others still run.
        print(f"FAIL python: {title}")
        for line in traceback.format_exc().splitlines():
            print(f"     {line}")
print("done")
