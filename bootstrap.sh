#!/bin/sh
# Makes .venv from requirements.lock (hashes, no registry addresses) with whatever this machine has.
# It needs one of: Python 3.12 or newer anywhere usual, or uv. Does nothing if .venv is up to date.
set -eu
cd "$(dirname "$0")"

usable() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] < (3, 12))' >/dev/null 2>&1
}

# Candidates are run, never trusted by name: with pyenv, python3.13 on the PATH may be a shim that
# only prints an error, and a python3 may be 3.11. uv's own search gives up at such a shim.
find_python() {
    for name in ${PYTHON:-} python3.14 python3.13 python3.12 python3 python; do
        found=$(command -v "$name" 2>/dev/null) || continue
        if usable "$found"; then
            "$found" -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))'
            return
        fi
    done
    for found in \
        $(ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python3 2>/dev/null | sort -rV) \
        /opt/homebrew/bin/python3.1[2-9] /usr/local/bin/python3.1[2-9] /usr/bin/python3.1[2-9]; do
        if [ -x "$found" ] && usable "$found"; then
            echo "$found"
            return
        fi
    done
    return 1
}

stamp=.venv/.made-from
wanted=$(cksum <requirements.lock)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi

# Replacing packages under a running server would pull its files away from it.
if [ -f .venv/.made-from ] && [ -f var/up.lock ] && command -v flock >/dev/null 2>&1 &&
    ! flock -n var/up.lock true; then
    echo "requirements.lock has changed, but Counterfoil is running from here: stop it first." >&2
    exit 1
fi

echo "Setting up .venv from requirements.lock ..." >&2
uv=$(command -v uv || true)
if python=$(find_python); then
    [ -x .venv/bin/python ] || "$python" -m venv .venv
    if [ -z "$uv" ]; then
        # Installing uv first takes a third of the time that pip alone needs for the rest.
        [ -x .uv/bin/uv ] || {
            "$python" -m venv .uv &&
                .uv/bin/python -m pip install -q --disable-pip-version-check "uv>=0.8,<1"
        } || echo "uv could not be installed; pip will do, slower." >&2
        uv=.uv/bin/uv
    fi
elif [ -n "$uv" ]; then
    "$uv" venv -q --python '>=3.12' .venv
else
    echo "Counterfoil needs Python 3.12 or newer, or uv. Set PYTHON=/path/to/python if you have one." >&2
    exit 1
fi

if [ -x "$uv" ]; then
    "$uv" pip sync -q --python .venv/bin/python --require-hashes requirements.lock
else
    .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes \
        -r requirements.lock
fi
echo "$wanted" >"$stamp"
