"""Spark's types, for the annotations of layers that hold a frame or a session in their hands and hand it on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    __all__ = ["DataFrame", "SparkSession"]
