"""Settings: what can be set, what is set, and where each value came from."""

from engine.config.load import CONFIG_NAME, Settings, load, user_config_file
from engine.config.table import SETTINGS, Setting
from engine.config.toml_file import render_default_toml
from engine.durations import format_duration, parse_duration

__all__ = [
    "CONFIG_NAME",
    "SETTINGS",
    "Setting",
    "Settings",
    "format_duration",
    "load",
    "parse_duration",
    "render_default_toml",
    "user_config_file",
]
