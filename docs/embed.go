// Package docs holds the guides that the service shows under /docs. They are
// Markdown that reads well on its own.
package docs

import (
	"embed"
	"io/fs"
)

//go:embed guide/*.md
var files embed.FS

// Guides returns the files of the guides, NAME.md.
func Guides() fs.FS {
	guides, err := fs.Sub(files, "guide")
	if err != nil {
		panic(err) // the name is a constant
	}
	return guides
}
