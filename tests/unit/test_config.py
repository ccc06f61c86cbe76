"""Settings: precedence, validation that names the place, durations, the file of a new workspace."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from engine import config
from engine.config import SETTINGS, format_duration, load, parse_duration, render_default_toml
from engine.config.table import FIXED_CONF
from engine.errors import ConfigError, InvalidArgument

NOWHERE = Path("/nowhere/trickle.toml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "shop"
    made.mkdir()
    return made


def write(folder: Path, text: str) -> None:
    (folder / "trickle.toml").write_text(text, encoding="utf-8")


def refused(folder: Path, text: str) -> ConfigError:
    write(folder, text)
    with pytest.raises(ConfigError) as caught:
        load(folder, env={}, user_file=NOWHERE)
    return caught.value


def test_defaults(folder: Path) -> None:
    settings = load(folder, env={}, user_file=NOWHERE)
    assert settings.spark.master == "local[*]"
    assert settings.refresh.max_driver_delta_rows == 200_000
    assert settings.scheduler.heartbeat_s == 2.0
    assert settings.spark.conf == {}
    for setting in SETTINGS:
        assert settings.value(setting.key) == setting.default
        assert settings.origin(setting.key) == "default"


def test_precedence_flag_env_workspace_user(folder: Path, tmp_path: Path) -> None:
    user = tmp_path / "user.toml"
    keys = ("tick_ms", "heartbeat_s", "drain_timeout_s", "lease_timeout_s")
    user.write_text("[scheduler]\ntick_ms = 11\nheartbeat_s = 1.1\ndrain_timeout_s = 11\nlease_timeout_s = 11\n")
    write(folder, "[scheduler]\ntick_ms = 22\nheartbeat_s = 2.2\ndrain_timeout_s = 22\n")
    env = {"TRICKLE_SCHEDULER_TICK_MS": "33", "TRICKLE_SCHEDULER_HEARTBEAT_S": "3.5"}
    settings = load(folder, {"scheduler.tick_ms": "44"}, env=env, user_file=user)
    assert settings.scheduler.tick_ms == 44
    assert settings.scheduler.heartbeat_s == 3.5
    assert settings.scheduler.drain_timeout_s == 22
    assert [settings.origin(f"scheduler.{key}") for key in keys] == [
        "flag",
        "env",
        "workspace",
        "user file",
    ]
    write(folder, "")
    settings = load(folder, env={}, user_file=user)
    assert settings.scheduler.drain_timeout_s == 11
    assert settings.origin("scheduler.drain_timeout_s") == "user file"


def test_the_user_file_is_found_where_the_desktop_puts_it(folder: Path, tmp_path: Path) -> None:
    for env, place in (
        ({"XDG_CONFIG_HOME": str(tmp_path / "xdg"), "HOME": "/h"}, tmp_path / "xdg"),
        ({"HOME": str(tmp_path / "home")}, tmp_path / "home" / ".config"),
    ):
        file = place / "trickle" / "trickle.toml"
        file.parent.mkdir(parents=True)
        file.write_text('[ui]\ntheme = "day"\n')
        assert load(folder, env=env).ui.theme == "day"


def test_spark_conf_passes_through(folder: Path) -> None:
    write(folder, '[spark.conf]\nspark.sql.a = 1\n"spark.b" = true\nspark.c.d = "x"\n')
    settings = load(folder, {"spark.conf.spark.c.d": "y"}, env={}, user_file=NOWHERE)
    assert settings.spark.conf == {"spark.sql.a": "1", "spark.b": "true", "spark.c.d": "y"}


def test_a_list_of_names_is_written_as_one_or_with_commas(folder: Path) -> None:
    write(folder, '[compile]\nimmutable_functions = ["My_UDF", "shop.tax "]\n')
    assert load(folder, env={}, user_file=NOWHERE).compile.immutable_functions == ("my_udf", "shop.tax")
    env = {"TRICKLE_COMPILE_IMMUTABLE_FUNCTIONS": "one, two,"}
    assert load(folder, env=env, user_file=NOWHERE).compile.immutable_functions == ("one", "two")


@pytest.mark.parametrize("key", sorted(FIXED_CONF))
def test_what_every_answer_depends_on_is_nobodys_choice(folder: Path, key: str) -> None:
    write(folder, f'[spark.conf]\n"{key}" = "x"\n')
    with pytest.raises(ConfigError, match=r"spark\.conf") as caught:
        load(folder, env={}, user_file=NOWHERE)
    assert key in (caught.value.detail or "")
    write(folder, "")
    with pytest.raises(ConfigError, match=r"spark\.conf"):
        load(folder, {f"spark.conf.{key}": "x"}, env={}, user_file=NOWHERE)


def test_overrides_on_top_of_loaded_settings(folder: Path) -> None:
    before = load(folder, env={}, user_file=NOWHERE)
    after = before.with_overrides({"ui.glyphs": "ascii"})
    assert (before.ui.glyphs, after.ui.glyphs) == ("unicode", "ascii")
    assert (before.origin("ui.glyphs"), after.origin("ui.glyphs")) == ("default", "flag")


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ('[spark]\n# c\n\nmastr = "x"\n', 4, "spark.mastr", "spark.master"),
        ('[sprak]\nmaster = "x"\n', 1, "sprak", "did you mean spark?"),
        ('\nmaster = "x"\n', 2, "master", "spark.master"),
        ('[ui]\n\nmaster = "x"\n', 3, "ui.master", "did you mean spark.master?"),
        ("spark = 3\n", 1, "spark must be a section", "[spark]"),
        ("[refresh]\nmax_change_ratio = 1.5\n", 2, "refresh.max_change_ratio", "default is 0.5"),
        ('[refresh]\n\n\nmax_change_ratio = "much"\n', 4, "refresh.max_change_ratio", "default is 0.5"),
        ("[scheduler]\ntick_ms = 0\n", 2, "scheduler.tick_ms", "default is 250"),
        ("[scheduler]\ntick_ms = 1.5\n", 2, "scheduler.tick_ms", "default is 250"),
        ("[scheduler]\ntick_ms = true\n", 2, "scheduler.tick_ms", "default is 250"),
        ("[scheduler]\nheartbeat_s = nan\n", 2, "scheduler.heartbeat_s", "default is 2.0"),
        ('[sources]\nenable_cdf = "allways"\n', 2, "sources.enable_cdf", "did you mean always?"),
        ("[sources]\nenable_cdf = true\n", 2, "sources.enable_cdf", "ask, never, always"),
        ('[refresh]\ndefault_schedule = "soon"\n', 2, "refresh.default_schedule", "'30s'"),
        ("[refresh]\ndefault_schedule = 30\n", 2, "refresh.default_schedule", "'30s'"),
        ("[sources]\nblock_source_ddl = 'yes'\n", 2, "sources.block_source_ddl", "default is True"),
        ("[sources]\nblock_source_ddl = 0\n", 2, "sources.block_source_ddl", "default is True"),
        ("[ui]\ntheme = 3\n", 2, "ui.theme", "default is 'night'"),
        ('[compile]\nimmutable_functions = "f"\n', 2, "compile.immutable_functions", "write ['one', 'another']"),
        ('[compile]\nimmutable_functions = ["f", 3]\n', 2, "compile.immutable_functions", "write ['one'"),
        ('[compile]\nvolatile_function_policy = "deny"\n', 2, "compile.volatile_function_policy", "warn, reject"),
        ("[spark]\nconf = 3\n", 2, "spark.conf", "Spark"),
        ("[spark]\n[spark.conf]\na = [1,\n2]\n", 2, "spark.conf", "Spark"),
        ("[ui]\ntheme = 'a'\ntheme = 'b'\n", 3, "not valid TOML", "mend"),
        ("[ui]\ntheme = \n[spark]\n", 2, "not valid TOML", "mend"),
        ("[ui]\n# fine\ntheme = 'open\n[spark]\n", 3, "not valid TOML", "mend"),
        ("\x00", 1, "not valid TOML", "mend"),
    ],
)
def test_a_bad_file_names_file_line_and_way_out(folder: Path, text: str, line: int, message: str, hint: str) -> None:
    error = refused(folder, text)
    assert message in error.message
    assert error.hint is not None
    assert hint in error.hint
    assert error.detail is not None
    assert f"{folder / 'trickle.toml'}, line {line}" in error.detail
    assert error.position is not None
    assert error.position.line == line
    assert error.exit_code == 2


def test_a_key_after_a_long_text_is_placed_rightly(folder: Path) -> None:
    text = '[workspace]\nname = """\n[ui]\nthem = 3\n"""\n\n[ui]\nthem = "x"\n'
    assert refused(folder, text).position.line == 8


def test_files_that_cannot_be_read(folder: Path) -> None:
    (folder / "trickle.toml").write_bytes(b"[ui]\ntheme = 'n\xff'\n")
    with pytest.raises(ConfigError) as caught:
        load(folder, env={}, user_file=NOWHERE)
    assert "line 2" in (caught.value.detail or "")
    (folder / "trickle.toml").unlink()
    (folder / "trickle.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot read"):
        load(folder, env={}, user_file=NOWHERE)


def test_a_file_from_windows(folder: Path) -> None:
    (folder / "trickle.toml").write_bytes(b"\xef\xbb\xbf[ui]\r\ntheme = 'day'\r\n")
    assert load(folder, env={}, user_file=NOWHERE).ui.theme == "day"


def test_yes_and_no(folder: Path) -> None:
    for text, value in (("true", True), (" False", False)):
        env = {"TRICKLE_SOURCES_BLOCK_SOURCE_DDL": text}
        assert load(folder, env=env, user_file=NOWHERE).sources.block_source_ddl is value
    (folder / "trickle.toml").write_text("[sources]\nblock_source_ddl = false\n")
    assert load(folder, env={}, user_file=NOWHERE).sources.block_source_ddl is False


@pytest.mark.parametrize(
    ("overrides", "env", "message", "hint"),
    [
        ({"spark.mastr": "x"}, {}, "spark.mastr", "spark.master"),
        ({"spark.conf": "x"}, {}, "spark.conf", "spark"),
        ({"sources.block_source_ddl": "maybe"}, {}, "--set sources.block_source_ddl", "default is True"),
        ({"scheduler.tick_ms": "soon"}, {}, "--set scheduler.tick_ms", "250"),
        ({}, {"TRICKLE_SPARK_MASTR": "x"}, "TRICKLE_SPARK_MASTR", "TRICKLE_SPARK_MASTER"),
        ({}, {"TRICKLE_SCHEDULER_TICK_MS": "x"}, "TRICKLE_SCHEDULER_TICK_MS", "250"),
        ({"scheduler.lease_timeout_s": "3"}, {}, "lease_timeout_s", "twice"),
        ({"refresh.min_schedule": "2h"}, {}, "default_schedule", "shorten"),
    ],
)
def test_bad_flags_and_environment(
    folder: Path, overrides: dict[str, str], env: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(folder, overrides, env=env, user_file=NOWHERE)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_other_variables_of_ours_are_no_settings(folder: Path) -> None:
    load(folder, env={"TRICKLE_IVY_SETTINGS": "x", "TRICKLE_VENV": "y", "SPARK_HOME": "z"}, user_file=NOWHERE)


def test_unknown_settings_cannot_be_asked_for(folder: Path) -> None:
    settings = load(folder, env={}, user_file=NOWHERE)
    with pytest.raises(ConfigError, match=r"ui\.them"):
        settings.value("ui.them")


def test_the_file_of_a_new_workspace_is_valid_and_names_everything(folder: Path) -> None:
    text = render_default_toml()
    write(folder, text)
    assert load(folder, env={}, user_file=NOWHERE).origins == {}
    uncommented = "\n".join(
        line[1:] if line.startswith("#") and not line.startswith("# ") else line for line in text.splitlines()
    )
    write(folder, uncommented)
    settings = load(folder, env={}, user_file=NOWHERE)
    assert {key for key, origin in settings.origins.items() if origin == "workspace"} == {
        setting.key for setting in SETTINGS if setting.type != "table"
    }
    document = tomllib.loads(uncommented)
    for setting in SETTINGS:
        written = document[setting.section][setting.key.partition(".")[2]]
        assert (tuple(written) if setting.type == "names" else written) == setting.default
        assert setting.meaning in text


def test_every_setting_is_described() -> None:
    assert len({setting.key for setting in SETTINGS}) == len(SETTINGS)
    assert len({setting.env for setting in SETTINGS}) == len(SETTINGS)
    for setting in SETTINGS:
        assert setting.meaning.endswith((".", "?"))
        assert setting.type in {"text", "choice", "integer", "number", "boolean", "duration", "names", "table"}
    assert config.CONFIG_NAME == "trickle.toml"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("1.5s", 1.5),
        ("2d", 172_800),
        (" 1H 30M ", 5400),
        ("1d2h3m4s5ms", 93_784.005),
        ("0s", 0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize(
    "text",
    ["", "30", "s", "30x", "30s1h", "1h1h", "-1s", "1.s", ".5s", "1..5s", "1.5h30m", "1e3s", "٣s", "30 s x", "s30"],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_duration(text)
    assert "'30s'" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.5, "500ms"),
        (0.9999, "1s"),
        (1, "1s"),
        (12.34, "12.3s"),
        (59.99, "1m"),
        (192, "3m12s"),
        (5400, "1h30m"),
        (93_784, "1d2h3m4s"),
    ],
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_durations_come_back() -> None:
    for seconds in (0.25, 1, 30, 59, 60, 61, 3599, 3600, 86_400, 90_061):
        assert parse_duration(format_duration(seconds)) == seconds
    with pytest.raises(ValueError, match="no duration"):
        format_duration(float("nan"))
