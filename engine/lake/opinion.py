"""What Spark itself thinks of a query: would it give the same answer again?

It sees what no text shows: the bodies of functions that somebody made, and whether a text is read as a date. It is told
apart by rules of Spark's optimizer that replace the clock, the session and special words ('today') by their values:
where they change the plan, there is something to replace.

Spark takes more for deterministic than is: sketches with a random sample, encryption with a random vector, whatever
depends on the order of rows. `engine.compile.functions` knows those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.lake import query_failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Opinion:
    #: no expression draws at random or depends on how the work is cut
    deterministic: bool
    #: reads the clock, or tells the time zone
    clock: bool
    #: tells who runs it, and in which catalog and schema
    session: bool
    #: reads 'now', 'today', 'yesterday' or 'tomorrow' as a moment of the clock
    words: bool = False

    @property
    def stable(self) -> bool:
        """Does it say the same throughout one statement only?"""
        return self.clock or self.session or self.words


def of(session: SparkSession, sql: str) -> Opinion:
    try:
        plan = session.sql(sql)._jdf.queryExecution().analyzed()
        rules = session.sparkContext._jvm.org.apache.spark.sql.catalyst.optimizer  # type: ignore[union-attr]
        catalogs = session._jsparkSession.sessionState().catalogManager()
        spelled_out = rules.ReplaceExpressions.apply(plan)

        def changed(rule: Any) -> bool:
            return not rule.apply(spelled_out).fastEquals(spelled_out)

        return Opinion(
            deterministic=bool(plan.deterministic()),
            clock=changed(rules.ComputeCurrentTime),
            session=changed(rules.ReplaceCurrentLike(catalogs)),
            words=changed(rules.SpecialDatetimeValues),
        )
    except Exception as error:
        raise query_failures.of_query(error, sql) from error
