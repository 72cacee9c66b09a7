package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	// debianCopyright is the file about rights in the form of Debian (DEP-5), which refers to licenses that every system has.
	debianCopyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: partnerapi
Comment: The licenses of other code in the program are in ` + licensesFile + `.

Files: *
Copyright: %d The maintainers of partnerapi
License: Apache-2.0
 On Debian systems, the full text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
`
	// debianChangelog is the changelog in Debian's form: of this version alone, and it refers to the project's own.
	debianChangelog = `partnerapi (%s) stable; urgency=medium

  * See /usr/share/doc/partnerapi/CHANGELOG.md.

 -- %s  %s
`
	// lintianOverrides names what lintian calls an error and is meant.
	lintianOverrides = `# Go links programs statically. Each release is built with the current version of Go.
partnerapi: statically-linked-binary [usr/bin/partnerapi]
`
)

// debianFiles returns the files that Debian's policy asks for.
func (r *release) debianFiles() ([]entry, error) {
	version := strings.Replace(strings.TrimPrefix(r.version, "v"), "-", "~", 1) // as nfpm writes it
	changelog, err := compressed(fmt.Appendf(nil, debianChangelog, version, maintainer, r.time.Format(time.RFC1123Z)))
	if err != nil {
		return nil, err
	}
	return []entry{
		{name: "usr/share/doc/partnerapi/changelog.gz", mode: 0o644, data: changelog},
		{name: "usr/share/doc/partnerapi/copyright", mode: 0o644, data: fmt.Appendf(nil, debianCopyright, r.time.Year())},
		{name: "usr/share/lintian/overrides/partnerapi", mode: 0o644, data: []byte(lintianOverrides)},
	}, nil
}
