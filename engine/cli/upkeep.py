"""reinitialize, rename, maintain, export, bulk-create."""

from __future__ import annotations

from argparse import Namespace, _SubParsersAction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.output import Output
from engine.cli.session import open_engine
from engine.cli.stream_tables import FAILED, each_name
from engine.cli.wording import refresh_line
from engine.errors import InvalidArgument
from engine.records import Outcome

if TYPE_CHECKING:
    from engine.results import Maintenance


def add_commands(commands: _SubParsersAction[Any]) -> None:
    reinitialize = commands.add_parser(
        "reinitialize",
        help="compute a stream table anew, whatever is known of it",
        description="Computes all rows anew and believes nothing that is known of what is stored.",
    )
    reinitialize.add_argument("names", nargs="+", metavar="NAME")
    reinitialize.set_defaults(run=run_reinitialize)

    rename = commands.add_parser(
        "rename",
        help="give a stream table another name",
        description="Gives a stream table another name. Its folder stays; its history follows.",
    )
    rename.add_argument("name")
    rename.add_argument("new_name", metavar="NEW")
    rename.set_defaults(run=run_rename)

    maintain = commands.add_parser(
        "maintain",
        help="put the files of a stream table in order now",
        description="Puts small files together, writes a checkpoint of the log, and removes what is long gone.",
    )
    maintain.add_argument("names", nargs="+", metavar="NAME")
    maintain.set_defaults(run=run_maintain)

    export = commands.add_parser(
        "export",
        help="the SQL that makes a stream table again",
        description="Prints the statements that make stream tables again.",
    )
    export.add_argument("names", nargs="+", metavar="NAME")
    export.set_defaults(run=run_export)

    bulk = commands.add_parser(
        "bulk-create",
        help="create many stream tables, or none",
        description="Creates the stream tables of a file of CREATE STREAM TABLE statements, in the order of their "
        "dependencies: all of them, or none.",
    )
    bulk.add_argument("file", metavar="FILE")
    bulk.set_defaults(run=run_bulk_create)


def run_reinitialize(args: Namespace, out: Output) -> int:
    with open_engine(args, out, spark=True) as engine:

        def one(name: str) -> tuple[Any, int]:
            record = engine.reinitialize_stream_table(name)
            if not out.as_json:
                out.line(refresh_line(record))
            return record, FAILED if record.outcome is Outcome.FAILED else 0

        records, code = each_name(args.names, one, out)
    if out.as_json:
        out.json(records)
    return code


def run_rename(args: Namespace, out: Output) -> int:
    with open_engine(args, out) as engine:
        table = engine.rename_stream_table(args.name, args.new_name)
    if out.as_json:
        out.json(table)
    else:
        out.line(f"{args.name} is named {table.name} from now on; its rows stay at {table.path}")
    return 0


def run_maintain(args: Namespace, out: Output) -> int:
    with open_engine(args, out, spark=True) as engine:

        def one(name: str) -> tuple[Any, int]:
            done = engine.maintain_stream_table(name)
            if not out.as_json:
                print_maintained(done, out)
            return done, 0

        results, code = each_name(args.names, one, out)
    if out.as_json:
        out.json(results)
    return code


def print_maintained(done: Maintenance, out: Output) -> None:
    removed = "nothing removed: the log does not tell how far back it is read"
    if done.kept_hours is not None:
        removed = f"what no version of the last {done.kept_hours:,} hours consists of is removed"
    out.line(
        f"{done.name}: {done.files_before} files became {done.files_after}, checkpoint at version {done.checkpoint}, "
        f"{removed}"
    )


def run_export(args: Namespace, out: Output) -> int:
    with open_engine(args, out, read_only=True) as engine:
        texts = {name: engine.export_definition(name) for name in args.names}
    if out.as_json:
        out.json([{"name": name, "sql": text} for name, text in texts.items()])
    else:
        # a comment at the end would take a semicolon behind it along
        out.line("\n\n".join(f"{text}\n;" for text in texts.values()))
    return 0


def run_bulk_create(args: Namespace, out: Output) -> int:
    from engine.compile.statements import CreateStreamTable, parse_statement, split_script

    text = _content(args.file)
    args.sql_text = text
    statements = [parse_statement(part, place) for part, place in split_script(text)]
    asked = []
    for statement in statements:
        if not isinstance(statement, CreateStreamTable) or statement.if_not_exists or statement.or_replace:
            raise InvalidArgument(
                "only plain CREATE STREAM TABLE statements can be made all or none",
                detail=f"{args.file} has another one",
                hint="run other statements with `trickle sql -f`",
            )
        asked.append({"name": statement.name, "query": statement.query, **statement.options})
    with open_engine(args, out, spark=True) as engine:
        results = engine.bulk_create(asked)
    for result in results:
        for notice in result.notices:
            out.notice(notice)
    if out.as_json:
        out.json(results)
    else:
        names = ", ".join(result.table.name for result in results)
        out.line(f"created {names}" if results else f"{args.file} has no statement")
    return 0


def _content(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{file} cannot be read", detail=str(error)) from error
