// Package docs holds the guides that the service shows under /docs, for partners and
// for operators. They are Markdown that reads well on its own.
package docs

import (
	"embed"
	"errors"
	"io/fs"
	"slices"
	"strings"
)

//go:embed guide/*.md
var files embed.FS

//go:embed operate/*.md operating.md versions.md scale.md breaches.md flags.md metrics.md
var operate embed.FS

// more are guides beside those of the folder.
var more = []fs.FS{
	migrating, // v1-line
}

// Guides returns the files of the partners' guides, NAME.md.
func Guides() fs.FS { return union(append([]fs.FS{folder(files, "guide")}, more...)) }

// Operate returns the files of the operators' guides, NAME.md.
func Operate() fs.FS { return union{folder(operate, "operate"), operate} }

func folder(of fs.FS, name string) fs.FS {
	files, err := fs.Sub(of, name)
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

// union is the files of several systems without folders, the first that has a name
// being the one that is read.
type union []fs.FS

// Open opens a file.
func (u union) Open(name string) (file fs.File, err error) {
	for _, system := range u {
		if file, err = system.Open(name); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return file, err
}

// ReadDir lists the files of the root.
func (u union) ReadDir(name string) (list []fs.DirEntry, err error) {
	for _, system := range u {
		entries, err := fs.ReadDir(system, name)
		if err != nil {
			return nil, err
		}
		list = append(list, entries...)
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}
