// Package docs holds the guides that the service serves under /docs, for partners and for operators, in Markdown.
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

// moreGuides are file systems with further guides for partners.
var moreGuides = []fs.FS{
	migrating, // v1-line
}

// Guides returns the files of the guides for partners, NAME.md: those in the folder guide, and moreGuides.
func Guides() fs.FS { return union(append([]fs.FS{folder(files, "guide")}, moreGuides...)) }

// Operate returns the files of the guides for operators, NAME.md: those in operate/, and those in docs/ itself.
func Operate() fs.FS { return union{folder(operate, "operate"), operate} }

// folder returns the files of a folder.
func folder(system fs.FS, name string) fs.FS {
	files, err := fs.Sub(system, name)
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

// union holds the files of several file systems. Of files with the same name, the first is read.
type union []fs.FS

// Open opens a file in the first file system that has it.
func (u union) Open(name string) (file fs.File, err error) {
	for _, system := range u {
		if file, err = system.Open(name); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return file, err
}

// ReadDir lists the files of a folder of all file systems, sorted by name. It fails if one of them lacks the folder.
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
