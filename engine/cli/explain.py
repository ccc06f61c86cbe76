"""validate, preview, explain: looking into the compiler, before and after a stream table is created."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from typing import TYPE_CHECKING, Any

from engine.cli.output import Output
from engine.cli.session import add_query, open_engine, text_of
from engine.errors import InvalidArgument, QueryError, RequestError, TrickleError
from engine.records import SqlDialect
from engine.results import RefreshModeExplanation, Validation

if TYPE_CHECKING:
    from engine.engine import Engine

FORMATS = ("text", "json", "tree")


def add_commands(commands: _SubParsersAction[Any]) -> None:
    validate = commands.add_parser(
        "validate",
        help="could this query be a stream table, and how would it be maintained",
        description="Tells how a query would be maintained. Exit code 0 if it could be a stream table, "
        "2 or 3 if not. Creates nothing.",
    )
    _add_query(validate)
    _add_format(validate)
    validate.set_defaults(run=run_validate)

    preview = commands.add_parser(
        "preview",
        help="what a creation would make, with some rows",
        description="Shows what a stream table of this query would be, and its first rows. Creates nothing.",
    )
    _add_query(preview)
    preview.add_argument("--mode", default="AUTO", help="AUTO (the default), DIFFERENTIAL, FULL or IMMEDIATE")
    preview.add_argument("--limit", default="10", help="how many rows; default: 10")
    _add_format(preview)
    preview.set_defaults(run=run_preview)

    explain = commands.add_parser(
        "explain",
        help="how a stream table or a query is maintained",
        description="All about a stream table: definition, plan, reasons, last refresh, sources. "
        "Or the way of a query through the compiler, or its maintenance statements, or what its next refresh would do: "
        "exit code 1 if that would fail.",
    )
    explain.add_argument("name", nargs="?")
    explain.add_argument("--query", help="a SELECT that is no stream table yet")
    add_dialect(explain)
    what = explain.add_mutually_exclusive_group()
    what.add_argument("--delta", action="store_true", help="the maintenance statements, for each kind of change")
    what.add_argument("--rewrite", action="store_true", help="each step of the compiler that changed something")
    what.add_argument("--mode", action="store_true", help="what the next refresh would do, and what each way costs")
    explain.add_argument("--all", action="store_true", help="with --rewrite: also steps that changed nothing")
    _add_format(explain)
    explain.set_defaults(run=run_explain)


def _add_query(command: ArgumentParser) -> None:
    add_query(command)
    add_dialect(command)


def add_dialect(command: ArgumentParser) -> None:
    command.add_argument(
        "--dialect",
        choices=[each.value for each in SqlDialect],
        help="whose SQL the query is written in; default: compile.dialect",
    )


def _add_format(command: ArgumentParser) -> None:
    command.add_argument("--format", choices=FORMATS, help="text (the default), json, or the tree alone")


def run_validate(args: Namespace, out: Output) -> int:
    args.sql_text = query = text_of(args, args.query)
    with open_engine(args, out, read_only=True, spark=True) as engine:
        found = engine.validate_query(query, dialect=args.dialect)
    print_explained(found, out, args.format)
    return exit_code(found)


def exit_code(found: Validation) -> int:
    """That of the error that a creation would end with."""
    return 0 if found.problem is None else _exit_codes()[found.problem.code]


def _exit_codes() -> dict[str, int]:
    def below(kind: type[TrickleError]) -> dict[str, int]:
        found = {kind.__name__: kind.exit_code}
        for each in kind.__subclasses__():
            found |= below(each)
        return found

    return below(QueryError) | below(RequestError)


def run_preview(args: Namespace, out: Output) -> int:
    args.sql_text = query = text_of(args, args.query)
    if not args.limit.isdigit():
        raise InvalidArgument(f"--limit {args.limit} is not a number of rows", hint="write --limit 20")
    with open_engine(args, out, read_only=True, spark=True) as engine:
        found = engine.preview_stream_table(
            query, refresh_mode=args.mode.upper(), limit=int(args.limit), dialect=args.dialect
        )
    print_explained(found, out, args.format)
    return 0


def run_explain(args: Namespace, out: Output) -> int:
    if (args.name is None) == (args.query is None):
        raise InvalidArgument(
            "trickle explain needs a name or a query", hint="trickle explain NAME, or --query 'SELECT …'"
        )
    if args.dialect and args.name:
        raise InvalidArgument("--dialect tells how --query is written", hint="leave it out")
    if args.all and not args.rewrite:
        raise InvalidArgument("--all says which steps --rewrite shows", hint="add --rewrite")
    if args.mode and args.name is None:
        raise InvalidArgument("--mode tells of a stream table's next refresh", hint="trickle explain NAME --mode")
    args.sql_text = args.query
    with open_engine(args, out, read_only=True, spark=not args.mode) as engine:
        found = _explained(engine, args)
    print_explained(found, out, args.format)
    if isinstance(found, RefreshModeExplanation) and found.problem is not None:
        return 1
    return exit_code(found) if isinstance(found, Validation) else 0


def _explained(engine: Engine, args: Namespace) -> Any:
    if args.rewrite:
        # what is stored is in Spark's words
        query, dialect = (engine.stream_table(args.name).query, "spark") if args.name else (args.query, args.dialect)
        return engine.explain_query_rewrite(query, every_step=args.all, dialect=dialect)
    if args.mode:
        return engine.explain_refresh_mode(args.name)
    if args.delta:
        return engine.explain_delta(args.name, query=args.query, dialect=args.dialect)
    return engine.explain_st(args.name) if args.name else engine.validate_query(args.query, dialect=args.dialect)


def print_explained(found: Any, out: Output, format: str | None = None) -> None:
    from engine.explain_text import text_of as words_of
    from engine.explain_text import tree_of

    if format == "json" or (format is None and out.as_json):
        out.json(found)
    elif format == "tree":
        out.line(tree_of(found))
    else:
        out.line(words_of(found, out.painted))
