"""Where the settings come from.

Precedence: command line > `TRICKLE_…` environment > the workspace's trickle.toml > the user's trickle.toml.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.config.table import (
    BY_KEY,
    SECTIONS,
    SETTINGS,
    CompileSettings,
    HistorySettings,
    MaintenanceSettings,
    RefreshSettings,
    SchedulerSettings,
    Setting,
    SourcesSettings,
    SparkSettings,
    UiSettings,
    WorkspaceSettings,
)
from engine.config.toml_file import read_file
from engine.config.validate import did_you_mean, find_setting, validate
from engine.durations import parse_duration
from engine.errors import ConfigError, InvalidArgument

CONFIG_NAME = "trickle.toml"

Values = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    workspace: WorkspaceSettings = field(default_factory=WorkspaceSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    sources: SourcesSettings = field(default_factory=SourcesSettings)
    refresh: RefreshSettings = field(default_factory=RefreshSettings)
    compile: CompileSettings = field(default_factory=CompileSettings)
    maintenance: MaintenanceSettings = field(default_factory=MaintenanceSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    ui: UiSettings = field(default_factory=UiSettings)
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    origins: Mapping[str, str] = field(default_factory=dict)

    def value(self, key: str) -> Any:
        setting = find_setting(key)
        return getattr(getattr(self, setting.section), setting.key.partition(".")[2])

    def origin(self, key: str) -> str:
        """'default', 'user file', 'workspace', 'env' or 'flag'."""
        return self.origins.get(find_setting(key).key, "default")

    def with_overrides(self, overrides: Mapping[str, str]) -> Settings:
        """The same with `overrides` (dotted key -> text) on top."""
        return _checked(_apply(self, _from_texts(overrides, _flag_name), "flag"))


def load(
    workspace: Path,
    overrides: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    user_file: Path | None = None,
) -> Settings:
    """The settings of the workspace folder `workspace`."""
    env = os.environ if env is None else env
    user_file = user_config_file(env) if user_file is None else user_file
    settings = _apply(Settings(), read_file(user_file), "user file")
    settings = _apply(settings, read_file(workspace / CONFIG_NAME), "workspace")
    settings = _apply(settings, _from_env(env), "env")
    settings = _apply(settings, _from_texts(overrides or {}, _flag_name), "flag")
    return _checked(settings)


def user_config_file(env: Mapping[str, str]) -> Path:
    base = env.get("XDG_CONFIG_HOME") or str(Path(env.get("HOME") or Path.home()) / ".config")
    return Path(base) / "trickle" / CONFIG_NAME


def _from_env(env: Mapping[str, str]) -> dict[str, Any]:
    known = {setting.env: setting.key for setting in SETTINGS if setting.type != "table"}
    texts = {}
    for name, text in env.items():
        # Other TRICKLE_… variables exist (the place of an Ivy file, say): a section's name makes it ours.
        if not name.startswith(tuple(f"TRICKLE_{section.upper()}_" for section in SECTIONS)):
            continue
        if name not in known:
            raise ConfigError(f"unknown setting {name} in the environment", hint=did_you_mean(name, tuple(known)))
        texts[known[name]] = text
    return _from_texts(texts, lambda key: BY_KEY[key].env)


def _flag_name(key: str) -> str:
    return f"--set {key}"


def _from_texts(texts: Mapping[str, str], name_of: Callable[[str], str]) -> dict[str, Any]:
    values: Values = {}
    for given, text in texts.items():
        key = given
        if given.startswith("spark.conf.") and given != "spark.conf.":
            key, value = "spark.conf", {**values.get("spark.conf", {}), given.removeprefix("spark.conf."): text}
        elif key not in BY_KEY or BY_KEY[key].type == "table":
            raise ConfigError(f"unknown setting {key}", hint=did_you_mean(key, tuple(BY_KEY)))
        else:
            value = _from_text(BY_KEY[key], text)
        try:
            values[key] = validate(BY_KEY[key], value)
        except InvalidArgument as error:
            raise ConfigError(f"{name_of(given)}: {error.message}", detail=error.detail, hint=error.hint) from error
    return values


def _from_text(setting: Setting, text: str) -> Any:
    try:
        match setting.type:
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "boolean":
                return {"true": True, "false": False}[text.strip().lower()]
            case "names":
                return [name for name in text.split(",") if name.strip()]
            case _:
                return text
    except (ValueError, KeyError):
        return text  # for _validate to refuse


def _apply(settings: Settings, values: Values, origin: str) -> Settings:
    changes: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, _, name = key.partition(".")
        if BY_KEY[key].type == "table":
            value = {**settings.value(key), **value}
        changes.setdefault(section, {})[name] = value
    sections = {section: replace(getattr(settings, section), **change) for section, change in changes.items()}
    return replace(settings, **sections, origins={**settings.origins, **dict.fromkeys(values, origin)})


def _checked(settings: Settings) -> Settings:
    """Refuses settings that are fine one by one but not together."""
    scheduler, refresh = settings.scheduler, settings.refresh
    if scheduler.lease_timeout_s < 2 * scheduler.heartbeat_s:
        raise ConfigError(
            "scheduler.lease_timeout_s is too short",
            detail=f"{scheduler.lease_timeout_s:g}s with a heartbeat every {scheduler.heartbeat_s:g}s: "
            "one late heartbeat would lose the lease",
            hint="make it at least twice scheduler.heartbeat_s",
        )
    if parse_duration(refresh.default_schedule) < parse_duration(refresh.min_schedule):
        raise ConfigError(
            "refresh.default_schedule is shorter than refresh.min_schedule",
            detail=f"{refresh.default_schedule} and {refresh.min_schedule}",
            hint="lengthen the one or shorten the other",
        )
    return settings
