"""What Spark says of a query that it does not accept, with the place in the text and a way out."""

from __future__ import annotations

import re

from engine.errors import NotFound, Position, QueryParseError, TrickleError
from engine.lake.failures import condition_of, headline, origin_of, typed

_UNKNOWN_TABLE = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
    "PATH_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
)
#: of what Spark says of a query, by its name or the first part of it
_WAYS_OUT = {
    "AMBIGUOUS_REFERENCE": "Say which is meant, as in table.column.",
    **dict.fromkeys(
        (
            "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
            "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE",
            "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
            "DATATYPE_MISMATCH.IN_SUBQUERY_DATA_TYPE_MISMATCH",
        ),
        "Cast one of the sides.",
    ),
    "DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH": "Give both sides of IN as many columns.",
    "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE": "Maps and variants have no order: say by which part of them.",
    "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE": "Cast the argument.",
    "GROUP_BY_AGGREGATE": "Group by what is aggregated, not by the aggregate.",
    "INCOMPATIBLE_COLUMN_TYPE": "Cast the column in one of the branches.",
    "INVALID_WHERE_CONDITION": "Conditions on aggregates and windows belong into HAVING and QUALIFY.",
    "MISSING_AGGREGATION": "Add the column to GROUP BY, or take any_value() of it.",
    "MISSING_GROUP_BY": "Add GROUP BY with the columns that are not aggregated.",
    "SCALAR_SUBQUERY_IS_IN_GROUP_BY_OR_AGGREGATE_FUNCTION": "Take any_value() of the subquery, or add it to GROUP BY.",
    "UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_GROUP_BY": "Group by the expression itself.",
    "UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_WINDOW": "Say the expression itself, or name it in a derived table.",
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY": "Speak of the query around in WHERE alone, or say it with a join.",
    "UNSUPPORTED_FEATURE.TIME_TRAVEL": "A stream table follows its sources: name the table alone.",
    "NUM_COLUMNS_MISMATCH": "Give all branches the same columns; NULL AS name fills a gap.",
    "WRONG_NUM_ARGS": "Look up the function's arguments: DESCRIBE FUNCTION in Spark tells them.",
}


def of_query(error: BaseException, query: str) -> TrickleError:
    """The typed error for a query that Spark does not accept, with the place where Spark gives one."""
    condition = condition_of(error) or ""
    parameters = _parameters(error)
    place = _position(error, query) or _place_of_a_word(parameters, query)
    root = condition.split(".")[0]
    if root in _UNKNOWN_TABLE:
        name = (parameters.get("relationName") or parameters.get("path") or "").replace("`", "")
        return NotFound(
            f"There is no table {name}." if name else "The query names a table that does not exist.",
            detail=headline(error),
            hint="`trickle source add NAME --path P` makes a Delta table known; SHOW SOURCES lists what is.",
            position=place,
        )
    if root.startswith("UNRESOLVED_"):
        name = (parameters.get("objectName") or parameters.get("routineName") or "").replace("`", "")
        known = (parameters.get("proposal") or "").replace("`", "")
        kind = "function" if "ROUTINE" in root else "column"
        return QueryParseError(
            f"There is no {kind} {name}." if name else f"The query names a {kind} that does not exist.",
            detail=headline(error),
            hint=f"Did you mean one of: {known}?" if known else f"Only a {kind} that Spark knows can be named.",
            position=place,
        )
    if type(error).__name__ == "ParseException":
        refused = QueryParseError("This is not SQL.", detail=headline(error), position=place)
        refused.by_parser = True
        return refused
    if type(error).__name__ == "AnalysisException" or root == "INTERNAL_ERROR":
        known_way = _WAYS_OUT.get(condition) or _WAYS_OUT.get(root)
        hint = known_way or "The detail is Spark's own message; the same SELECT fails in Spark."
        return QueryParseError("Spark does not accept this query.", detail=headline(error), hint=hint, position=place)
    failure = typed(error, "The analysis of the query")
    return failure if failure.position or not place else _placed(failure, place)


def _parameters(error: BaseException) -> dict[str, str]:
    from py4j.protocol import Py4JError

    origin = origin_of(error)
    try:
        return dict(origin.getMessageParameters() or {}) if origin is not None else {}
    except Py4JError:  # not one of Spark's exceptions
        return {}


def _position(error: BaseException, query: str) -> Position | None:
    """Spark counts characters from 0 over the text that it was given."""
    from py4j.protocol import Py4JError

    origin = origin_of(error)
    if origin is None:
        return None
    try:
        if type(error).__name__ == "ParseException":
            place = origin.start()
            line, column = place.line(), place.startPosition()
            if line.isDefined() and column.isDefined():
                return Position(int(line.get()), int(column.get()) + 1)
        for context in origin.getQueryContext():
            start = int(context.startIndex())
            if 0 <= start <= len(query):
                before = query[:start]
                return Position(before.count("\n") + 1, start - before.rfind("\n"))
    except Py4JError:  # this exception knows no place
        return None
    return None


def _place_of_a_word(parameters: dict[str, str], query: str) -> Position | None:
    """Where the text has what Spark complains of, if Spark only names it: the longest of the names that it has."""
    named = sorted((value.strip('`"') for value in parameters.values()), key=len, reverse=True)
    for name in filter(None, named):
        found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query, re.IGNORECASE)
        if found is not None:
            before = query[: found.start()]
            return Position(before.count("\n") + 1, found.start() - before.rfind("\n"))
    return None


def _placed(error: TrickleError, place: Position) -> TrickleError:
    error.position = place
    return error
