#!/usr/bin/env bash
# Runs every fuzz target of the packages for TIME, and continues with the next one after a
# failure. Go stores inputs that fail in testdata/fuzz of their package.
#
#   fuzz.sh TIME PACKAGE…
set -uo pipefail
GO=${GO:-go}
time=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=

for package in "$@"; do
	for target in $($GO test -list '^Fuzz' "$package" | grep '^Fuzz'); do
		echo "$package $target"
		$GO test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" 2>&1 | tee "$log" && continue
		# Go also fails where the time is up while an input runs, which is no finding.
		if grep -q '^ *context deadline exceeded$' "$log" && ! grep -q 'Failing input written' "$log"; then
			continue
		fi
		failed="$failed $target"
	done
done

if [ -n "$failed" ]; then
	echo "failed:$failed" >&2
	exit 1
fi
