#!/usr/bin/env bash
# Runs make targets that generate files, in the given order, in a copy of the sources. If all
# targets succeed, it copies the changed files back.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - | tar -x -C "$copy"
if [ -d .postgres ]; then
	ln -s "$PWD/.postgres" "$copy/.postgres"
fi

${MAKE:-make} -C "$copy" -j1 --no-print-directory "$@" GO="${GO:-go}" || {
	echo "generate: no file was changed" >&2
	exit 1
}

changed=0
while IFS= read -r -d '' file; do
	if [ ! -e "$copy/$file" ]; then
		rm "$file"
	elif cmp -s "$file" "$copy/$file"; then
		continue
	else
		mkdir -p "$(dirname "$file")" && cp "$copy/$file" "$file"
	fi
	echo "generate: $file"
	changed=$((changed + 1))
done < <({
	git ls-files -z --cached --others --exclude-standard
	cd "$copy" && find docs v2 v1compat platform -type f -print0 2>/dev/null
} | sort -zu)
echo "generate: $changed files changed"
