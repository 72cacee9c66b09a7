package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// fitting are the licenses, by their names of SPDX, under which code can be part of a program that is given out
// under Apache-2.0. Modules under MPL-2.0 are used as they are, and name the place of their sources by their path.
var fitting = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "Zlib"}

// excused are further licenses of modules, each with its reason.
var excused = map[[2]string]string{
	{"github.com/alecthomas/chroma/v2", "OFL-1.1"}:          "of a font, which programs may be bundled with",
	{"github.com/modelcontextprotocol/go-sdk", "CC-BY-4.0"}: "of documents, none of which is in the program",
}

// clear is how much of a license's file, in percent, has to be text of licenses that are known.
const clear = 75

// ids are the licenses of a part, by their names of SPDX.
func (p part) ids() (ids []string, err error) {
	for _, t := range p.licenses {
		name := strings.ToLower(path.Base(t.name))
		if strings.HasPrefix(name, "notice") || strings.HasPrefix(name, "patents") {
			continue
		}
		coverage := licensecheck.Scan(t.data)
		if coverage.Percent < clear {
			return nil, fmt.Errorf("%.0f %% of %s is text of a licence that is known", coverage.Percent, t.name)
		}
		for _, match := range coverage.Match {
			ids = append(ids, match.ID)
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("there is no licence")
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// assess refuses parts without a license, or with one that does not fit.
func assess(parts []part) error {
	var faults []error
	for _, p := range parts {
		ids, err := p.ids()
		if err != nil {
			faults = append(faults, fmt.Errorf("%s %s: %w", p.name, p.version, err))
		}
		for _, id := range ids {
			if excused[[2]string{p.name, id}] == "" && !slices.Contains(fitting, id) {
				faults = append(faults, fmt.Errorf("%s %s is under %s, which does not fit: %s do",
					p.name, p.version, id, strings.Join(fitting, ", ")))
			}
		}
	}
	return errors.Join(faults...)
}

// checkLicenses is what make licenses does.
func (r *release) checkLicenses(ctx context.Context) error {
	parts, err := r.readParts(ctx)
	if err != nil {
		return err
	}
	if err := assess(parts); err != nil {
		return err
	}
	count := map[string]int{}
	for _, p := range parts {
		ids, _ := p.ids() // which assess has found
		count[strings.Join(ids, ", ")]++
	}
	fmt.Fprintf(r.progress, "the licenses of %d modules and scripts fit: %v\n", len(parts), count)
	return nil
}

// licenseTexts are the licenses of all parts, one after the other.
func licenseTexts(parts []part) []byte {
	var all bytes.Buffer
	fmt.Fprintln(&all, "The program has code of others. What follows are their licenses.")
	for _, p := range parts {
		fmt.Fprintf(&all, "\n%s\n%s %s\n", strings.Repeat("=", 80), p.name, p.version)
		for _, t := range p.licenses {
			fmt.Fprintf(&all, "\n--- %s\n\n%s\n", t.name, bytes.TrimSpace(t.data))
		}
	}
	return all.Bytes()
}
