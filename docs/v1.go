package docs

import "embed"

// This file is the guide that leads from version 1 to version 2, and is deleted with
// version 1.

//go:embed migrating.md
var migrating embed.FS

func init() { more = append(more, migrating) }
