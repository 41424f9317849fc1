# Finds or makes the environment of a lock file. Sourced with `root` set; sets `env` and, where the checkout cannot be
# written, `pycache`. Everything slow or careful is in environment.py; this half runs at each start and must cost nothing.

environment() { # NAME LOCK
    env=$root/$1 lock=$root/$2 pycache=
    made && return
    if ! [ -w "$root" ]; then
        cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}/hermes-runtime/$(printf %s "$root" | cksum | tr ' ' -)
        env=$cache/$1 pycache=$cache/pycache
        made && return
    fi
    find_python && "$python" -I "$root/.ci/environment.py" "$root" "$env" "$lock"
}

made() { # whole, for this folder, from this very lock, and its Python is still there
    [ -x "$env/bin/python" ] && [ -r "$env/made-for" ] && IFS= read -r made_for <"$env/made-for" &&
        [ "$made_for" = "$root" ] && cmp -s "$lock" "$env/made-from"
}

find_python() { # trying each, since a version manager's stand-in may be on the PATH and lead nowhere
    for python in python3 python3.13 python3.12 python3.11; do
        suits "$python" && return
    done
    python=$(uv python find --no-python-downloads '>=3.11,<3.14' 2>/dev/null) && suits "$python" && return
    cat >&2 <<EOF
hermes: Python 3.11, 3.12 or 3.13 is needed, and there is none on the PATH (python3 is $( (python3 -V) 2>/dev/null || echo missing)).
        Debian, Ubuntu: apt install python3 python3-venv    Fedora: dnf install python3.13    macOS: brew install python@3.13
EOF
    return 1
}

suits() {
    "$1" -I -c 'import fcntl, ssl, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}
