"""trickle.toml: read with errors that name the line, and written for a new workspace."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.config.table import BY_KEY, SECTIONS, SETTINGS, Setting
from engine.config.validate import did_you_mean, validate
from engine.errors import ConfigError, InvalidArgument, Position


def read_file(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}", detail=error.strerror, hint="look at the file and its permissions"
        ) from error
    text = _decode(content, path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _in_file(path, _line_of_syntax_error(text), f"{path} is not valid TOML", detail=str(error)) from error
    values: dict[str, Any] = {}
    for section, content_of_section in document.items():
        if section not in SECTIONS:
            raise _unknown(section, path, _line_of(text, (section,)), _nearest_section(section, document))
        if not isinstance(content_of_section, dict):
            raise _in_file(
                path,
                _line_of(text, (section,)),
                f"{section} must be a section",
                hint=f"write [{section}] on a line of its own and its settings below",
            )
        for name, value in content_of_section.items():
            key = f"{section}.{name}"
            if value == {}:
                continue  # a heading with nothing below it
            if key not in BY_KEY:
                raise _unknown(key, path, _line_of(text, (section, name)), _nearest_key(key))
            try:
                values[key] = validate(BY_KEY[key], value)
            except InvalidArgument as error:
                line = _line_of(text, (section, name))
                raise _in_file(path, line, error.message, detail=error.detail, hint=error.hint) from error
    return values


def _in_file(path: Path, line: int, message: str, *, detail: str | None = None, hint: str | None = None) -> ConfigError:
    where = f"{path}, line {line}"
    return ConfigError(
        message,
        detail=f"{where}: {detail}" if detail else where,
        hint=hint or "mend that line",
        position=Position(line, 1),
    )


def _unknown(key: str, path: Path, line: int, hint: str) -> ConfigError:
    return _in_file(path, line, f"unknown setting {key}", hint=hint)


def _nearest_section(section: str, document: Mapping[str, Any]) -> str:
    if not isinstance(document[section], dict):
        homes = [key for key in BY_KEY if key.partition(".")[2] == section]
        if homes:
            return f"did you mean {homes[0]}? Put it below [{homes[0].partition('.')[0]}]"
    return did_you_mean(section, tuple(SECTIONS))


def _nearest_key(key: str) -> str:
    section, _, name = key.partition(".")
    elsewhere = [known for known in BY_KEY if known.partition(".")[2] == name]
    if elsewhere:
        return f"did you mean {elsewhere[0]}?"
    same_section = tuple(known for known in BY_KEY if known.startswith(f"{section}."))
    return did_you_mean(key, same_section or tuple(BY_KEY))


def _decode(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _in_file(
            path,
            line,
            f"{path} is not UTF-8 text",
            detail=f"byte {error.start} is {content[error.start]:#04x}",
        ) from error


def _line_of(text: str, path: tuple[str, ...]) -> int:
    """The line on which the key `path` first appears; tomllib does not tell.

    The shortest beginning of the file that parses and has the key ends with the key's last line; the key
    starts after the last line with which the file still parsed without it.
    """
    lines = text.splitlines()
    start = 0
    for count in range(1, len(lines) + 1):
        try:
            document: Any = tomllib.loads("\n".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            continue
        if _has(document, path):
            while start < count - 1 and (not lines[start].strip() or lines[start].lstrip().startswith("#")):
                start += 1
            return start + 1
        start = count
    return 1


def _has(document: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(document, dict) or name not in document:
            return False
        document = document[name]
    return True


def _line_of_syntax_error(text: str) -> int:
    """The first line that no continuation of the file can make right, as near as one can tell."""
    lines = text.splitlines()
    last_good = 0
    for count in range(1, len(lines) + 1):
        try:
            tomllib.loads("\n".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            continue
        last_good = count
    return min(last_good + 1, max(len(lines), 1))


def render_default_toml() -> str:
    """The trickle.toml of a new workspace: everything that can be set, commented out, with its default."""
    lines = [
        "# The settings of this Trickle workspace. Each line below shows a default:",
        "# take the # away and change the value. Unknown names are errors, so nothing is ever ignored.",
        "# The environment (TRICKLE_SPARK_MASTER) and the command line (--set spark.master=…) come first.",
    ]
    tables = []
    for section in SECTIONS:
        lines += ["", f"[{section}]"]
        for setting in SETTINGS:
            if setting.section != section:
                continue
            if setting.type == "table":
                tables.append(setting)
                continue
            lines.append(f"# {setting.meaning}{_choices_text(setting)}")
            lines.append(f"#{setting.key.partition('.')[2]} = {_toml(setting.default)}")
        for setting in tables:
            lines += ["", f"[{setting.key}]", f"# {setting.meaning}"]
        tables.clear()
    return "\n".join(lines) + "\n"


def _choices_text(setting: Setting) -> str:
    if setting.choices:
        return f" One of: {', '.join(setting.choices)}."
    return f" ({setting.unit})" if setting.unit in ("MB", "ms", "s", "days") else ""


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case _:
            return str(value)
