#!/usr/bin/env bash
# Removes version 1 as docs/operating.md describes, from a copy of the sources and from a
# database on which it was used. Then it tests the remaining service:
#
#   without_v1.sh PACKAGE…
set -euo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
copy=$(mktemp -d)
server=

# stop ends the server that this script has started, and waits for its end.
stop() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" || true
		server=
	fi
}
trap 'stop; rm -rf "$copy"' EXIT

fail() {
	echo "without-v1: $*" >&2
	cat "$copy/log" >&2 || true
	exit 1
}

# serve starts the program on the database, and sets url once it is ready.
serve() {
	: >"$copy/said"
	"$1" serve --demo --release latest --listen 127.0.0.1:0 --data-dir "$copy/data" >"$copy/said" 2>"$copy/log" &
	server=$!
	for ((tries = 0; tries < 600; tries++)); do
		url=$(sed -n 's/.* serves v2 release .* at \(http:.*\)/\1/p' "$copy/said")
		if [ -n "$url" ] && curl -fsS -o /dev/null "$url/readyz" 2>/dev/null; then
			return
		fi
		kill -0 "$server" 2>/dev/null || fail "$1 does not start"
		sleep 0.2
	done
	fail "$1 is not ready after two minutes"
}

# ask METHOD PATH [BODY] prints the answer, and fails unless it is a success.
ask() {
	curl -fsS -X "$1" -H 'X-API-Key: pk_demo_all' ${3:+-d "$3"} "$url$2"
}

# says TEXT PART fails unless the text holds the part.
says() {
	case $1 in *"$2"*) ;; *) fail "answered $1 in place of $2" ;; esac
}

# clients prints the ids and names of a list, which no refresh changes.
clients() {
	ask GET '/v2/clients?limit=500&sort=name' | grep -o '"id":"cli_[^"]*","name":"[^"]*"'
}

git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - | tar -x -C "$copy"
mkdir "$copy/bin"
if [ -d .postgres ]; then
	ln -s "$PWD/.postgres" "$copy/.postgres"
fi
unset PARTNERAPI_DATABASE_URL

echo "using a database with version 1"
$GO build -o "$copy/bin/before" ./cmd/partnerapi
serve "$copy/bin/before"
says "$(ask POST /v1/clients '{"company_name":"Made by v1"}')" '"client_name":"Made by v1"'
ask GET '/v1/clients?limit=100' >/dev/null
before=$(clients)
stop

echo "removing version 1, from the sources and with the next migration from the database"
make -s -C "$copy" remove-v1
words='v1compat|idmap|parity|moving-from-v1|docs/migrating|/v1/|\bv1\b(\.?[^.0-9]|\.?$)|[Vv]ersion 1\b'
# The header of webhooks names its scheme v1, and what was said of decisions and speed stays.
left=$(cd "$copy" && grep -nE "$words" README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/versions.md docs/operating.md docs/breaches.md docs/operate/*.md docs/guide/*.md |
	grep -vE '^docs/guide/(webhooks|listen|click-tickets).md:' || true)
[ -z "$left" ] || fail "documents still speak of version 1: $left"
$GO -C "$copy" build -o bin/after ./cmd/partnerapi
serve "$copy/bin/after"
after=$(clients)
[ "$after" = "$before" ] || fail "v2 lists other clients than before: $after"
made=$(ask POST /v2/clients '{"name":"Made by v2"}')
id=$(sed -n 's/.*"id":"\(cli_[^"]*\)".*/\1/p' <<<"$made")
says "$(ask PATCH "/v2/clients/$id" '{"industry":"Retail"}')" '"industry":"Retail"'
says "$(ask GET "/v2/clients/$id")" '"name":"Made by v2"'
status=$(curl -sS -o /dev/null -w '%{http_code}' -H 'X-API-Key: pk_demo_all' "$url/v1/clients")
[ "$status" = 404 ] || fail "/v1/clients answers $status"
stop
echo "the rest serves the database, reads and writes it"

cd "$copy"
$GO vet -tags 'nomsgpack slow' ./...
$GO -C tools/bench vet .
$GO test ./v2 -run "$DECLARED"
$GO test "$@"
