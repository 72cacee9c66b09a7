package docs

import "embed"

// This file is the guides that lead from version 1 to version 2, and is deleted with version 1.

//go:embed migrating.md migrating/*.md
var migrating embed.FS
