#!/usr/bin/env bash
# Writes the scripts of others that the pages load, of these versions of npm, each with its
# license at the head: Scalar renders the reference, MiniSearch searches.
# SHA256SUMS has the hashes of what it wrote, which a test holds the files to.
# Scalar's package has no file of its license; scalar.LICENSE is that of its repository.
set -euo pipefail
cd "$(dirname "$0")"
scalar=1.72.1
minisearch=7.2.0

taken=$(mktemp -d)
trap 'rm -r "$taken"' EXIT
# take unpacks a package: NAME VERSION.
take() {
	npm pack --silent --pack-destination "$taken" "$1@$2" >/dev/null
	mkdir "$taken/${1##*/}"
	tar xzf "$taken"/*"${1##*/}-$2.tgz" -C "$taken/${1##*/}" --strip-components 1
}
# write makes a file of a script: TITLE LICENCE SCRIPT FILE.
write() {
	{ echo "/*! $1"; cat "$2"; echo "*/"; grep -v '^//# sourceMappingURL' "$3"; } | gzip -9n >"$4"
}

take @scalar/api-reference $scalar
write "@scalar/api-reference $scalar" scalar.LICENSE "$taken/api-reference/dist/browser/standalone.js" scalar.js.gz
take minisearch $minisearch
cp "$taken/minisearch/LICENSE.txt" minisearch.LICENSE
write "minisearch $minisearch" minisearch.LICENSE "$taken/minisearch/dist/es/index.js" minisearch.js.gz
sha256sum *.js.gz *.LICENSE >SHA256SUMS
