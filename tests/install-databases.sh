#!/usr/bin/env bash
# Installs what the tests start for themselves: PostgreSQL with pgbouncer, MariaDB, Galera with rsync for the cluster tests,
# libfaketime to step a server's clock, the sqlite3 command-line tool, and openssl for certificates.
# Does nothing where they are there already. Starts no system service: each test starts a private server of its own.
set -eu

missing=()
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || missing+=(postgresql)
PATH=$PATH:/usr/sbin command -v mariadbd >/dev/null || missing+=(mariadb-server)
PATH=$PATH:/usr/sbin command -v pgbouncer >/dev/null || missing+=(pgbouncer)
[ -e /usr/lib/galera/libgalera_smm.so ] || missing+=(galera-4)
command -v sqlite3 >/dev/null || missing+=(sqlite3)
command -v rsync >/dev/null || missing+=(rsync)
compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || missing+=(libfaketime)
command -v openssl >/dev/null || missing+=(openssl)
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "Please install ${missing[*]} (the names are Debian's): the tests start private servers from them." >&2
    exit 1
fi
root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "Please run as root: apt-get install ${missing[*]}" >&2; exit 1; }
    root=(sudo)
fi

# Packages ask this program whether they may start their services. Whatever stood here comes back at the end.
policy=/usr/sbin/policy-rc.d
saved=$policy.before-permitq-tests
restore() {
    "${root[@]}" rm -f $policy
    [ ! -e $saved ] || "${root[@]}" mv $saved $policy
}
[ ! -e $policy ] || [ -e $saved ] || "${root[@]}" mv $policy $saved
trap restore EXIT
printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee $policy >/dev/null
"${root[@]}" chmod 755 $policy

echo "Installing ${missing[*]}"
"${root[@]}" apt-get update -qq
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
