"""init, migrate, repair, config, version, completions."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.cli.output import Column, Output
from engine.cli.session import engine_class, open_engine, overrides_of, workspace_of
from engine.results import Repair


def add_commands(commands: _SubParsersAction[Any]) -> None:
    init = commands.add_parser("init", help="make a workspace", description="Makes a workspace.")
    init.add_argument("directory", nargs="?", default=None, help="where; default: here")
    init.add_argument("--name", help="what it is called on screen; default: the folder's name")
    init.set_defaults(run=run_init)

    migrate = commands.add_parser(
        "migrate",
        help="bring the workspace of an older Trickle up to date",
        description="Brings the catalog of an older Trickle up to date. No other Trickle may use it meanwhile.",
    )
    migrate.add_argument("--dry-run", action="store_true", help="only say what would be done")
    migrate.set_defaults(run=run_migrate)

    repair = commands.add_parser(
        "repair",
        help="bring back what the catalog or a stream table lost",
        description="Brings the catalog back from the stream tables' own tables, and these to what they must be. "
        "Exit code 1 where something is left that only you can decide.",
    )
    repair.add_argument("names", nargs="*", metavar="NAME", help="default: all that the catalog or the warehouse has")
    repair.set_defaults(run=run_repair)

    config = commands.add_parser("config", help="settings: list, get, path", description="Settings.")
    actions = config.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="every setting, its value and where that comes from")
    get = actions.add_parser("get", help="the value of one setting")
    get.add_argument("key")
    actions.add_parser("path", help="the file to edit")
    config.set_defaults(run=run_config)

    version = commands.add_parser("version", help="versions of all parts", description="Versions of all parts.")
    version.set_defaults(run=run_version)

    completions = commands.add_parser(
        "completions",
        help="completions for a shell",
        description="Prints a script: source it from your shell's start-up file.",
    )
    completions.add_argument("shell", choices=("bash", "zsh", "fish"))
    completions.set_defaults(run=run_completions)


def run_init(args: Namespace, out: Output) -> int:
    root = engine_class().init(Path(args.directory or args.workspace or "."), name=args.name)
    if out.as_json:
        out.json({"workspace": str(root)})
        return 0
    out.line(f"made the workspace {root}")
    out.line("next: trickle source add NAME --path PATH, then trickle create NAME 'SELECT …'")
    return 0


def run_migrate(args: Namespace, out: Output) -> int:
    from engine.catalog.database import migrate

    steps = migrate(workspace_of(args).catalog_file, dry_run=args.dry_run)
    if out.as_json:
        out.json({"steps": steps, "dry_run": args.dry_run})
    elif not steps:
        out.line("nothing to do")
    else:
        out.line(f"{steps} step{'s' if steps > 1 else ''} {'would be' if args.dry_run else 'were'} taken")
    return 0


def run_repair(args: Namespace, out: Output) -> int:
    with open_engine(args, out) as engine:
        results = [engine.repair_stream_table(name) for name in args.names] if args.names else [engine.repair()]
    repairs = [repair for result in results for repair in result.repairs]
    if out.as_json:
        out.json(repairs)
    else:
        print_repairs(repairs, out)
    return 0 if all(result.complete for result in results) else 1


def print_repairs(repairs: Sequence[Repair], out: Output) -> None:
    if not repairs:
        out.line("nothing to repair")
    for each in repairs:
        mark = out.painted("✓", "green") if each.mended else out.painted("!", "yellow")
        out.line(f"{mark} {each.name}: {each.text}")


def run_config(args: Namespace, out: Output) -> int:
    from engine import config

    workspace = workspace_of(args)
    if args.action == "path":
        out.json({"path": str(workspace.config_file)}) if out.as_json else out.line(str(workspace.config_file))
        return 0
    settings = config.load(workspace.root, overrides_of(args))
    if args.action == "get":
        value, origin = settings.value(args.key), settings.origin(args.key)
        if out.as_json:
            out.json({"key": args.key, "value": value, "origin": origin})
        else:
            out.line(_shown(value))
        return 0
    if out.as_json:
        out.json([_setting(settings, setting) for setting in config.SETTINGS])
        return 0
    out.table(
        (Column("SETTING"), Column("VALUE"), Column("FROM"), Column("MEANING")),
        [
            (
                setting.key,
                _shown(settings.value(setting.key)),
                (settings.origin(setting.key), "dim" if settings.origin(setting.key) == "default" else "bold"),
                setting.meaning,
            )
            for setting in config.SETTINGS
        ],
    )
    return 0


def _setting(settings: Any, setting: Any) -> dict[str, Any]:
    return {
        "key": setting.key,
        "value": settings.value(setting.key),
        "origin": settings.origin(setting.key),
        "default": setting.default,
        "type": setting.type,
        "unit": setting.unit,
        "choices": list(setting.choices),
        "meaning": setting.meaning,
        "env": setting.env,
    }


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={each}" for name, each in value.items()) or "-"
    if isinstance(value, tuple):
        return ", ".join(value) or "-"
    return str(value) if value != "" else "-"


def run_version(args: Namespace, out: Output) -> int:
    with open_engine(args, out, read_only=True) as engine:
        version = engine.version()
    if out.as_json:
        out.json(version)
        return 0
    out.facts(
        [
            ("trickle", version.engine),
            ("schema", str(version.schema)),
            ("spark", version.spark),
            ("delta", version.delta),
            ("deltalake", version.deltalake),
            ("java", version.java),
            ("duckdb", version.duckdb),
            ("python", version.python),
        ]
    )
    return 0


def run_completions(args: Namespace, out: Output) -> int:
    from engine.cli.completions import script
    from engine.cli.main import build_parser

    parser: ArgumentParser = build_parser()
    out.line(script(args.shell, parser).rstrip("\n"))
    return 0
