"""run: the scheduler without a dashboard."""

from __future__ import annotations

import signal
import threading
from argparse import Namespace, _SubParsersAction
from typing import Any

from engine.cli.output import Output
from engine.cli.session import await_spark, open_engine
from engine.cli.wording import clock_text
from engine.errors import LeaseHeld
from engine.event_records import Event, Severity
from engine.records import SchedulerPlace

LOST = 4
_COLOURS = {Severity.OK: "", Severity.WARN: "yellow", Severity.ERROR: "red"}


def add_commands(commands: _SubParsersAction[Any]) -> None:
    run = commands.add_parser(
        "run",
        help="keep the stream tables fresh, without a dashboard",
        description="Runs the scheduler until it is told to stop. SIGTERM and Ctrl-C let running refreshes "
        "finish (scheduler.drain_timeout_s); a second one does not wait. With --json each event is a line.",
    )
    run.set_defaults(run=run_scheduler)


def run_scheduler(args: Namespace, out: Output) -> int:
    stop, hurry = threading.Event(), threading.Event()

    def asked_to_stop(*_: object) -> None:
        (hurry if stop.is_set() else stop).set()

    previous = {each: signal.signal(each, asked_to_stop) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        with open_engine(args, out) as engine:
            unsubscribe = engine.subscribe(lambda event: _print_event(event, out))
            engine.start_spark()
            status = engine.start_scheduler()
            if status.place is not SchedulerPlace.HERE:
                raise LeaseHeld(
                    "the scheduler of this workspace runs elsewhere",
                    detail=f"process {status.holder_pid} holds it" if status.holder_pid else None,
                    hint="stop that one first, or leave the refreshing to it",
                )
            if not stop.is_set():
                await_spark_or_stop(engine, out, stop)
            if _wait(engine, stop):
                out.line("the scheduler's lease was lost to another process")
                return LOST
            code = _drain(engine, out, hurry)
            unsubscribe()
            return code
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


def await_spark_or_stop(engine: Any, out: Output, stop: threading.Event) -> None:
    """Waiting for Spark must not keep anybody from stopping."""
    waiter = _Waiter(engine, out)
    waiter.start()
    while waiter.is_alive() and not stop.is_set():
        waiter.join(0.1)
    if waiter.error is not None:
        raise waiter.error


class _Waiter(threading.Thread):
    def __init__(self, engine: Any, out: Output) -> None:
        super().__init__(name="wait-for-spark", daemon=True)
        self._engine = engine
        self._out = out
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            await_spark(self._engine, self._out)
        except BaseException as error:
            self.error = error


def _wait(engine: Any, stop: threading.Event) -> bool:
    """Waits for the word to stop; True when the lease went to somebody else meanwhile."""
    while not stop.wait(0.5):
        if engine.scheduler_status().place is SchedulerPlace.ELSEWHERE:
            return True
    return False


def _drain(engine: Any, out: Output, hurry: threading.Event) -> int:
    timeout_s = engine.settings.scheduler.drain_timeout_s
    running = engine.scheduler_status().running
    if running and not out.as_json:
        names = ", ".join(each.st for each in running)
        out.line(f"stopping: waiting up to {timeout_s:g}s for {names}")
    drained = threading.Thread(target=engine.stop_scheduler, args=(0.0 if hurry.is_set() else timeout_s,), daemon=True)
    drained.start()
    while drained.is_alive() and not hurry.is_set():
        drained.join(0.1)
    if not out.as_json:
        out.line("stopped")
    return 0


def _print_event(event: Event, out: Output) -> None:
    if out.as_json:
        from engine.codec import dumps

        out.line(dumps(event))
        return
    subject = f"{event.subject} " if event.subject and event.subject not in event.text else ""
    out.line(f"{clock_text(event.at)} {out.painted(subject + event.text, _COLOURS[event.severity])}")
