#!/usr/bin/env bash
# Checks the OpenAPI documents: with linters, with generated clients and programs that use
# them, and for changes that break callers of the documents that were served before.
#
#   contract.sh                    check
#   contract.sh baseline [R…]      store the current documents as the baseline, and those of
#                                  the releases R too; fails if one breaks the baseline
set -euo pipefail
cd "$(dirname "$0")"
GO=${GO:-go}
out=$PWD/out
documents=$out/documents
mkdir -p "$documents" "$out/v1" "$out/v2"
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true SCARF_ANALYTICS=false NO_UPDATE_NOTIFIER=1

# quietly runs a command and shows what it said only where it fails.
quietly() {
	local said
	said=$("$@" 2>&1) || { echo "$said" >&2; echo "failed: $*" >&2; exit 1; }
}

releases=(2.0 2.1 2.2 2.3 2.4 2.5)
latest=${releases[-1]}
$GO -C .. build -o "$out/partnerapi" ./cmd/partnerapi
for release in "${releases[@]}"; do
	"$out/partnerapi" openapi v2 --release="$release" >"$documents/v2-$release.yaml"
done
"$out/partnerapi" openapi v1 >"$documents/v1.yaml"
quietly $GO build -o "$out/bin/" tool

# without_webhooks writes a document's other parts to a file. webhooks prints the names of its webhooks.
without_webhooks() {
	awk '/^[^ ]/ { skip = /^webhooks:/ } !skip' "$1" >"$2"
}
webhooks() {
	awk '/^[^ ]/ { inside = /^webhooks:/ } inside && /^  [^ ]/ { print $1 }' "$1" | sort
}
# compatible refuses a document that breaks callers of an earlier one, but for the
# changes of openapi/accepted.txt, each of which has its reason there. The bodies of
# webhooks are sent by the service: they are compared the other way round, so that a
# further field breaks nobody, and one that is missing does.
compatible() {
	without_webhooks "$1" "$out/before.yaml"
	without_webhooks "$2" "$out/after.yaml"
	quietly "$out/bin/oasdiff" breaking --flatten-allof --fail-on ERR --err-ignore openapi/accepted.txt "$out/before.yaml" "$out/after.yaml"
	quietly "$out/bin/oasdiff" breaking --flatten-allof --fail-on ERR --severity-levels openapi/webhooks.severity --match-path '^webhook' "$2" "$1"
	quietly test -z "$(comm -23 <(webhooks "$1") <(webhooks "$2"))"
}
for baseline in openapi/baseline/*.yaml; do
	compatible "$baseline" "$documents/${baseline##*/}"
done
for ((i = 1; i < ${#releases[@]}; i++)); do
	compatible "$documents/v2-${releases[i - 1]}.yaml" "$documents/v2-${releases[i]}.yaml"
done
echo "nothing that a release has served breaks"

if [ "${1:-}" = baseline ]; then
	shift
	for baseline in openapi/baseline/*.yaml; do
		cp "$documents/${baseline##*/}" "$baseline"
	done
	for release in "$@"; do
		cp "$documents/v2-$release.yaml" openapi/baseline/
	done
	exit
fi

quietly make -C .. scripts
cd npm
lint() {
	quietly npx redocly lint --config redocly.yaml "$documents"/*.yaml
	quietly npx spectral lint --ruleset spectral.yaml --fail-severity=warn "$documents"/*.yaml
	echo "the linters of Redocly and Spectral have no warning"
}
lint & # These take one core, as what follows does.
linting=$!

quietly node typescript/check.mjs "$documents/v2-$latest.yaml" ../../v2/api/examples "$out/ts/v2"
quietly node typescript/check.mjs "$documents/v1.yaml" ../../v1compat/examples "$out/ts/v1"
quietly npx tsc -p typescript
echo "the generated TypeScript types fit all examples"

vectors=../../platform/webhook/testdata/signatures.json
if [ -f $vectors ]; then
	node webhooks/verify.mjs $vectors
fi
quietly node programs/generate.mjs "$documents/v2-$latest.yaml" "$documents/v1.yaml" "$out/programs"
quietly npx tsc -p programs
quietly node programs/guide.mjs ../../docs/guide/generate-client.md "$documents/v2-$latest.yaml" "$out/guide"
quietly npx tsc -p "$out/guide/ts"
cd ..
"$out/bin/oapi-codegen" -config client/oapi-codegen.yaml -package v2 -o out/v2/client.gen.go "$documents/v2-$latest.yaml"
"$out/bin/oapi-codegen" -config client/oapi-codegen.yaml -package v1 -o out/v1/client.gen.go "$documents/v1.yaml"
(cd out/guide/go && quietly "$out/bin/oapi-codegen" -config oapi-codegen.yaml "$documents/v2-$latest.yaml")
mkdir -p out/defaults
"$out/bin/oapi-codegen" -generate types,client -package defaults -o out/defaults/client.gen.go "$documents/v2-$latest.yaml"
quietly $GO vet ./out/guide/go ./out/defaults
$GO -C ogen build -o "$out/bin/" github.com/ogen-go/ogen/cmd/ogen
for version in v1 v2; do
	document=$documents/v1.yaml
	[ $version = v1 ] || document=$documents/v2-$latest.yaml
	quietly "$out/bin/ogen" --target "ogen/out/$version" --package "$version" --clean "$document"
done
$GO -C ogen build -o "$out/bin/ogen-program" .
echo "the programs of the guide to generated clients compile, as does a Go client with the defaults"
$GO build -o "$out/bin/" ./client ./program ./demonstration
$GO -C mcpgo build -o "$out/bin/mcpgo" .
$GO -C connect build -o "$out/bin/" tool ./telegraf
"$out/bin/client" "$documents/v2-$latest.yaml" ../v2/api/examples "$documents/v1.yaml" ../v1compat/examples
programs=("$out/bin/program" "$out/bin/ogen-program")
for name in openapi-typescript hey-api orval orval-zod orval-v1; do
	programs+=("node out/programs/js/npm/programs/$name.js")
done
programs+=("$out/bin/mcpgo $out/partnerapi")
# Others hook in with a folder that has a check.mjs, which is given the program. The one of tools comes last: it uses up
# the minute of its key, and waits where it has to.
for check in npm/*/check.mjs; do
	case $check in
	npm/typescript/* | npm/connect/*) ;;
	*) programs+=("node $check $out/partnerapi") ;;
	esac
done
programs+=("node npm/connect/check.mjs $out/partnerapi")
wait $linting
NODE_PATH=$PWD/npm/node_modules "$out/bin/demonstration" "$out/partnerapi" "${programs[@]}"
