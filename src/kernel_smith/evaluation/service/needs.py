"""Is everything installed that a service needs beyond the rest of kernel-smith?"""

from __future__ import annotations

from importlib.util import find_spec

from kernel_smith.errors import MissingPrerequisite

_PACKAGES = ("fastapi", "prometheus_client", "uvicorn")


def need_web_packages() -> None:
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise MissingPrerequisite(
            f"a service needs {', '.join(missing)}, which cannot be found",
            hint="pip install 'kernel-smith[serve]'",
        )
