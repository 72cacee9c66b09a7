package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// part is code of others in the program: a Go module, Go's own library, or a script of the pages.
type part struct {
	name, version string
	purl          string
	sum           string // of go.sum
	licenses      []text
	needs         []string // the purls of the parts that it imports
}

// text is a file about rights: a license, or what one asks to pass on.
type text struct {
	name string
	data []byte
}

// listed is what is read of a package that go list prints.
type listed struct {
	ImportPath, Dir string
	Standard        bool
	Imports         []string
	Module          *struct {
		Path, Version, Dir, Sum string
		Main                    bool
		Replace                 *struct{ Path, Version string }
	}
}

// readParts returns the parts of the program on all targets, by name.
func (r *release) readParts(ctx context.Context) ([]part, error) {
	packages := map[string]listed{}
	for _, t := range allTargets {
		if err := r.listPackages(ctx, t, packages); err != nil {
			return nil, err
		}
	}
	modules, err := modulesOf(packages)
	if err != nil {
		return nil, err
	}
	others, err := r.otherParts(ctx)
	if err != nil {
		return nil, err
	}
	return append(modules, others...), nil
}

// listPackages adds the packages that the program is compiled from, for a target.
func (r *release) listPackages(ctx context.Context, t target, to map[string]listed) error {
	out, err := output(r.goTool(ctx, t, "list", "-deps", "-json=ImportPath,Dir,Standard,Imports,Module", program))
	if err != nil {
		return err
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		p.Imports = append(p.Imports, to[p.ImportPath].Imports...)
		to[p.ImportPath] = p
	}
}

// modulesOf returns the modules of packages, with the licenses that stand in the packages' folders and above.
func modulesOf(packages map[string]listed) ([]part, error) {
	found := map[string]*part{}
	for _, p := range packages {
		m := p.Module
		if p.Standard || m == nil || m.Main {
			continue
		}
		if m.Replace != nil {
			return nil, fmt.Errorf("go.mod replaces %s, which a release cannot name", m.Path)
		}
		mod := found[m.Path]
		if mod == nil {
			mod = &part{name: m.Path, version: m.Version, purl: goPURL(m.Path, m.Version), sum: m.Sum}
			found[m.Path] = mod
		}
		for dir := p.Dir; strings.HasPrefix(dir, m.Dir); dir = filepath.Dir(dir) {
			if err := mod.addLicenses(m.Dir, dir); err != nil {
				return nil, err
			}
		}
		for _, name := range p.Imports {
			if to := packages[name].Module; to != nil && to.Path != m.Path {
				mod.needs = append(mod.needs, goPURL(to.Path, to.Version))
			}
		}
	}
	var parts []part
	for _, name := range slices.Sorted(maps.Keys(found)) {
		p := *found[name]
		slices.Sort(p.needs)
		p.needs = slices.Compact(p.needs)
		slices.SortFunc(p.licenses, func(a, b text) int { return strings.Compare(a.name, b.name) })
		parts = append(parts, p)
	}
	return parts, nil
}

// goPURL is the package URL of a module.
func goPURL(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// aboutRights matches the names of licenses, and of what goes with them.
var aboutRights = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying|notice|patents)([-._](md|txt|[a-z0-9]+))?$`)

// addLicenses adds the texts of a folder of a module, once.
func (p *part) addLicenses(top, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		name, err := filepath.Rel(top, filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		known := slices.ContainsFunc(p.licenses, func(t text) bool { return t.name == name })
		if known || f.IsDir() || filepath.Ext(name) == ".go" || !aboutRights.MatchString(f.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		p.licenses = append(p.licenses, text{name, data})
	}
	return nil
}

// otherParts are Go's own library, and the scripts of the pages, whose versions stand in the script that renews them.
func (r *release) otherParts(ctx context.Context) ([]part, error) {
	out, err := output(r.goTool(ctx, r.targets[0], "env", "GOROOT", "GOVERSION"))
	if err != nil {
		return nil, err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	version = strings.TrimPrefix(version, "go")
	std := part{name: "std", version: version, purl: goPURL("std", version)}
	for _, dir := range []string{root, filepath.Join(root, "..")} { // Debian's package has it beside
		if len(std.licenses) == 0 {
			err = std.addLicenses(dir, dir)
		}
	}
	if err != nil {
		return nil, err
	}
	const vendor = "platform/site/assets/vendor/"
	renew, err := r.read(vendor + "renew.sh")
	if err != nil {
		return nil, err
	}
	parts := []part{std}
	for _, script := range []struct{ variable, name string }{{"minisearch", "minisearch"}, {"scalar", "@scalar/api-reference"}} {
		m := regexp.MustCompile(`(?m)^` + script.variable + `=(\S+)$`).FindSubmatch(renew)
		if m == nil {
			return nil, fmt.Errorf("%srenew.sh has no version of %s", vendor, script.variable)
		}
		license, err := r.read(vendor + script.variable + ".LICENSE")
		if err != nil {
			return nil, err
		}
		purl := "pkg:npm/" + strings.ReplaceAll(script.name, "@", "%40") + "@" + string(m[1])
		parts = append(parts, part{name: script.name, version: string(m[1]), purl: purl,
			licenses: []text{{script.variable + ".LICENSE", license}}})
	}
	return parts, nil
}
