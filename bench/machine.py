"""What the numbers were measured on: without it they say little."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.engine import Engine


def facts(engine: Engine) -> dict[str, Any]:
    version = engine.version()
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "python": version.python,
        "java": version.java,
        "spark": version.spark,
        "delta": version.delta,
        "deltalake": version.deltalake,
        "trickle": version.engine,
    }


def cpu() -> str:
    """The processor's name; the kernel knows it on most machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
