#!/bin/sh
# Every check there is, in the order of their price. All of them run, so that one look shows all that is wrong.
#   checks.sh BIN static|all [pytest arguments]
# Tests run in two processes, each with a JVM of its own: that is what two cores are good for.
set -u
cd "$(dirname "$0")/.." || exit 1
bin=$1
which=$2
shift 2
report=""
failed=0

check() {
    name=$1
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    began=$(date +%s)
    if "$bin/$@"; then verdict=ok; else verdict=FAILED failed=1; fi
    report="$report$(printf '  %-7s %-8s %4s s' "$verdict" "$name" "$(($(date +%s) - began))")
"
}

check lint ruff check .
check format ruff format --check .
check types mypy
[ "$which" = static ] || check tests python -m pytest -n "${TEST_PROCESSES:-2}" --dist worksteal "$@"

printf '\n%s' "$report"
[ "$failed" = 0 ] && echo "all checks passed" || echo "checks failed"
exit "$failed"
