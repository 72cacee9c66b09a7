package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// entry is a file, or a folder without data, of an archive, a package or an image.
type entry struct {
	name  string // without a slash at its begin
	mode  fs.FileMode
	data  []byte
	owner int // the number of its user and group
}

// writeTar writes entries in the order of their names, with the folders that they are in, and with
// nothing of the machine that it is done on.
func writeTar(w io.Writer, entries []entry, at time.Time) error {
	out := tar.NewWriter(w)
	for _, e := range withFolders(entries) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode.Perm()), Size: int64(len(e.data)),
			ModTime: at, Uid: e.owner, Gid: e.owner, Format: tar.FormatUSTAR}
		if e.mode.IsDir() {
			header.Typeflag, header.Name = tar.TypeDir, e.name+"/"
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := out.Write(e.data); err != nil {
			return err
		}
	}
	return out.Close()
}

// withFolders sorts entries, and adds the folders that are not among them.
func withFolders(entries []entry) []entry {
	all := map[string]entry{}
	for _, e := range entries {
		all[e.name] = e
		for folder := path.Dir(e.name); folder != "."; folder = path.Dir(folder) {
			if _, ok := all[folder]; !ok {
				all[folder] = entry{name: folder, mode: fs.ModeDir | 0o755}
			}
		}
	}
	sorted := make([]entry, 0, len(all))
	for _, e := range all {
		sorted = append(sorted, e)
	}
	slices.SortFunc(sorted, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return sorted
}

// writeArchive writes the archive of a target: a folder with the archive's name.
func (r *release) writeArchive(w io.Writer, t target) error {
	files, err := r.documents()
	if err != nil {
		return err
	}
	completions, err := r.completions("completions/partnerapi.bash", "completions/_partnerapi", "completions/partnerapi.fish")
	if err != nil {
		return err
	}
	files = append(append(files, completions...), entry{name: "partnerapi", mode: 0o755, data: r.binaries[t]})
	top := r.name(t.os + "_" + t.arch)
	for i := range files {
		files[i].name = top + "/" + files[i].name
	}
	zipped := gzip.NewWriter(w)
	if err := writeTar(zipped, files, r.time); err != nil {
		return err
	}
	return zipped.Close()
}

// licensesFile has the licenses of others' code.
const licensesFile = "THIRD-PARTY-LICENSES.txt"

// readme is the README of what is given out. The one of the sources is about building and testing them.
const readme = "tools/release/README.md"

// documents returns what is given out beside the program: what one reads, the files of deploy, and the licenses.
func (r *release) documents() ([]entry, error) {
	files, err := r.entries(func(name string) string {
		switch {
		case name == readme:
			return "README.md"
		case slices.Contains([]string{"CHANGELOG.md", "LICENSE", "SECURITY.md", "CONTRIBUTING.md", ".env.example", "compose.yaml", "Dockerfile"}, name),
			strings.HasPrefix(name, "deploy/"), strings.HasPrefix(name, "docs/") && path.Ext(name) != ".go":
			return name
		}
		return ""
	})
	return append(files, entry{name: licensesFile, mode: 0o644, data: licenseTexts(r.parts)}), err
}

// completions returns the scripts that complete command lines, as the command completion prints them.
func (r *release) completions(bash, zsh, fish string) ([]entry, error) {
	const folder = "cmd/partnerapi/completion/"
	places := map[string]string{folder + "bash": bash, folder + "zsh": zsh, folder + "fish": fish}
	return r.entries(func(name string) string { return places[name] })
}
