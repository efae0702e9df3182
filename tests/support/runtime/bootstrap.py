"""Stands in for /var/runtime/bootstrap.py of the managed runtimes.

Puts the import path in the service's order, then hands over to the real runtime client. The folders
that are fixed on Lambda come from the environment: LAMBDA_TASK_ROOT for /var/task, TEST_OPT for
/opt. The folder of TEST_RUNTIME_PACKAGES, if set, comes before the interpreter's own site-packages,
to run another version of the runtime client.
"""

import os
import sys
import sysconfig


def service_path() -> list[str]:
    """The import path of a function: its own code, layers, runtime packages, standard library."""
    task = os.environ["LAMBDA_TASK_ROOT"]
    opt = os.environ.get("TEST_OPT", "/opt")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    runtime_packages = os.environ.get("TEST_RUNTIME_PACKAGES")
    site_packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    script_folder, *rest = sys.path
    return [
        task,
        f"{opt}/python/lib/{version}/site-packages",
        f"{opt}/python",
        *([runtime_packages] if runtime_packages else []),
        *sorted(site_packages),
        script_folder,
        *(entry for entry in rest if entry not in site_packages),
    ]


if "PYTHONPATH" not in os.environ:
    sys.path[:] = service_path()
else:
    sys.path.insert(0, os.environ["LAMBDA_TASK_ROOT"])

from awslambdaric.__main__ import main  # noqa: E402 - only now can it be found

main([sys.argv[0], os.environ["_HANDLER"]])
