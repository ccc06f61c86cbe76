"""Many stream tables at once: all of them or none, each behind those that it reads."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.errors import AlreadyExists, CycleDetected, InvalidArgument
from engine.names import check_name, same_name
from engine.refresh.define import Definitions
from engine.refresh.plans import Plans
from engine.results import CreateResult

#: one definition: the arguments of `create_stream_table` by their names
Asked = Mapping[str, Any]


def bulk_create(
    asked: Sequence[Asked], create: Callable[..., CreateResult], plans: Plans, definitions: Definitions
) -> tuple[CreateResult, ...]:
    """In the order that was asked for; what is made before one fails is dropped again."""
    _refuse_malformed(asked, create)
    made: dict[str, CreateResult] = {}
    try:
        for each in _upstream_first(asked, plans):
            made[each["name"]] = create(**each)
    except (Exception, KeyboardInterrupt):
        for name in reversed(made):
            definitions.drop(name, if_exists=True, cascade=False)
        raise
    return tuple(made[each["name"]] for each in asked)


def _refuse_malformed(asked: Sequence[Asked], create: Callable[..., CreateResult]) -> None:
    known = [name for name in inspect.signature(create).parameters if name != "self"]
    names: list[str] = []
    for number, each in enumerate(asked, start=1):
        for needed in ("name", "query"):
            if not isinstance(each.get(needed), str):
                raise InvalidArgument(f"definition {number} has no {needed}", hint="each needs a name and a query")
        for word in each:
            if word not in known:
                near = difflib.get_close_matches(word, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
                raise InvalidArgument(f"{each['name']}: a stream table has no option {word}", hint=hint)
        check_name(each["name"])
        if any(same_name(each["name"], other) for other in names):
            raise AlreadyExists(f"{each['name']} is asked for twice", hint="leave one of them out")
        names.append(each["name"])


def _upstream_first(asked: Sequence[Asked], plans: Plans) -> list[Asked]:
    waiting = {each["name"].casefold(): each for each in asked}
    reads = {
        key: {
            name.casefold()
            for name in plans.parsed(plans.in_spark(each["query"], each.get("dialect")).text).sources
            if name.casefold() in waiting
        }
        for key, each in waiting.items()
    }
    ordered: list[Asked] = []
    while waiting:
        free = [key for key in waiting if not reads[key] & waiting.keys()]
        if not free:
            raise CycleDetected(
                f"{', '.join(each['name'] for each in waiting.values())} read each other",
                hint="a stream table cannot depend on what it is made of",
            )
        ordered += [waiting.pop(key) for key in free]
    return ordered
