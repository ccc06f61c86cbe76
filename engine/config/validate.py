"""Is a value fit for its setting? And what may have been meant, when a name is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from engine.config.table import BY_KEY, FIXED_CONF, Setting
from engine.durations import parse_duration
from engine.errors import ConfigError, InvalidArgument


def validate(setting: Setting, value: Any) -> Any:
    """`value` as the setting holds it, or InvalidArgument."""
    match setting.type:
        case "integer":
            if isinstance(value, bool) or not isinstance(value, int):
                raise _bad(setting, value, "a whole number is needed")
            return _in_range(setting, value)
        case "number":
            if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
                raise _bad(setting, value, "a number is needed")
            return _in_range(setting, float(value))
        case "boolean":
            if not isinstance(value, bool):
                raise _bad(setting, value, "true or false is needed")
            return value
        case "choice":
            if value not in setting.choices:
                hint = did_you_mean(str(value), setting.choices)
                raise _bad(setting, value, f"one of {', '.join(setting.choices)} is needed", hint)
            return value
        case "duration":
            if not isinstance(value, str):
                raise _bad(setting, value, "a duration in quotes is needed", "write '30s', '1h30m' or '500ms'")
            try:
                parse_duration(value)
            except InvalidArgument as error:
                raise _bad(setting, value, error.message, error.hint) from error
            return value
        case "names":
            if not isinstance(value, list | tuple) or not all(isinstance(name, str) and name.strip() for name in value):
                raise _bad(setting, value, "a list of names is needed", "write ['one', 'another']")
            return tuple(dict.fromkeys(name.strip().lower() for name in value))
        case "table":
            if not isinstance(value, dict):
                raise _bad(setting, value, "a table of settings is needed")
            return _flat(setting, value)
        case _:
            if not isinstance(value, str):
                raise _bad(setting, value, "text in quotes is needed")
            return value


def _in_range(setting: Setting, value: float) -> float:
    if setting.least is not None and value < setting.least:
        raise _bad(setting, value, f"it must not be less than {setting.least:g}")
    if setting.most is not None and value > setting.most:
        raise _bad(setting, value, f"it must not be more than {setting.most:g}")
    return value


def _flat(setting: Setting, table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Spark's names are dotted, with quotes or without: a.b = 1 and "a.b" = 1 are the same."""
    flat: dict[str, str] = {}
    for name, value in table.items():
        if prefix + name in FIXED_CONF:
            raise _bad(
                setting, value, f"{prefix}{name} is the same for all: what is stored depends on it", "leave it out"
            )
        match value:
            case dict():
                flat |= _flat(setting, value, f"{prefix}{name}.")
            case bool():
                flat[prefix + name] = str(value).lower()
            case str() | int() | float():
                flat[prefix + name] = str(value)
            case _:
                raise _bad(setting, value, f"{prefix}{name} must be text, a number or a boolean")
    return flat


def _bad(setting: Setting, value: Any, detail: str, hint: str | None = None) -> InvalidArgument:
    default = f"The default is {setting.default!r}."
    return InvalidArgument(
        f"bad value for {setting.key}: {value!r}", detail=detail, hint=hint or f"{setting.meaning} {default}"
    )


def find_setting(key: str) -> Setting:
    if key not in BY_KEY:
        raise ConfigError(f"unknown setting {key}", hint=did_you_mean(key, tuple(BY_KEY)))
    return BY_KEY[key]


def did_you_mean(text: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(text, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
