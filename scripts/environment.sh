#!/bin/sh
# Makes the virtual environment that everything else runs in: once, and again when what it is made from changes.
#   environment.sh VENV [PYTHON]
# When nothing changed it costs a checksum and says nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
venv=$1
python=${2:-}

stop() {
    for line in "$@"; do printf '%s\n' "$line" >&2; done
    exit 1
}

say() { printf '  %s\n' "$*"; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

if [ -z "$python" ]; then
    for candidate in python3 python3.11 python3.12 python3.13 python3.14; do
        if command -v "$candidate" >/dev/null 2>&1 && new_enough "$candidate"; then
            python=$candidate
            break
        fi
    done
fi
if [ -z "$python" ]; then
    found=$(python3 --version 2>/dev/null || echo "no python3")
    stop "error: Trickle needs Python 3.11 or newer; this machine has $found." \
        "hint: install it (Debian, Ubuntu: python3), or name one: make PYTHON=/path/to/python3.11 …"
fi
new_enough "$python" || stop "error: Trickle needs Python 3.11 or newer; $python is $("$python" --version 2>&1)."

# An environment does not survive being moved, copied elsewhere or given another Python: then it is made anew.
place="$(pwd) $venv $("$python" --version 2>&1)"
content=$(cat pyproject.toml constraints.txt scripts/environment.sh | cksum)
stamp="$venv/.trickle-stamp"
old_place=$(sed -n 1p "$stamp" 2>/dev/null)
old_content=$(sed -n 2p "$stamp" 2>/dev/null)
if [ -x "$venv/bin/trickle" ] && [ "$old_place" = "$place" ] && [ "$old_content" = "$content" ]; then
    exit 0
fi

# Debian ships Python without the parts that make environments.
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    minor=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    stop "error: this Python cannot make virtual environments: install the package $minor-venv (Debian, Ubuntu: apt install $minor-venv)."
fi

echo "environment: $venv (once; a few minutes, Spark is large)"
if [ -n "$old_place" ] && [ "$old_place" != "$place" ]; then
    rm -rf "$venv"
fi
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --clear "$venv" || stop "error: $python could not make $venv."
fi

log="$venv/install.log"
status="$venv/install.status"
# pip's own progress wants a terminal: its log, cut to a line a package, reads the same everywhere
{
    # the tools that build packages are pinned as well; older pips read the first variable, newer ones the second
    PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
        "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off \
        -e '.[dev]' 2>&1
    echo $? >"$status"
} | tee "$log" | sed -n -u \
    -e 's/^Collecting \([A-Za-z0-9_.-]*\).*/  · \1/p' \
    -e 's/^Building wheels for collected packages: \(.*\)/  · building \1/p' \
    -e 's/^Installing collected packages.*/  · installing/p'
if [ "$(cat "$status")" != 0 ]; then
    tail -n 15 "$log" >&2
    stop "error: installing the pinned packages failed; the whole log is $log." \
        "hint: a network or a package mirror is needed once; afterwards everything works offline."
fi

say "· Spark's jars"
"$venv/bin/python" -m engine.lake.jars || stop "error: Spark's jars could not be fetched." \
    "hint: run it again with a network; they are kept in the user's cache."

printf '%s\n' "$place" "$content" >"$stamp"
say "· ready"
