#!/bin/sh
# Renames the module. Run it once the module has a host from which Go can fetch it:
#
#   tools/module.sh git.example.com/acme/partnerapi
set -eu
cd "$(dirname "$0")/.."
old=$(go list -m) new=$1

git ls-files '*.go' | xargs sed -Ei "s#^(import |	)([A-Za-z0-9_]+ )?\"$old/#\1\2\"$new/#; s#const module = \"$old#const module = \"$new#"
sed -Ei "s#^(module|require|replace) $old( |/|\$)#\1 $new\2#; s#^\t$old/#\t$new/#" go.mod tools/go.mod tools/*/go.mod
sed -i "s#\"$old/#\"$new/#" docs/guide/*.md tools/npm/programs/guide.mjs
gofmt -w $(git ls-files '*.go')
