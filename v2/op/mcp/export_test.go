package mcp

import (
	"maps"

	"github.com/go-json-experiment/json"
)

// WithoutTool is a copy of the reasons for operations without a tool.
func WithoutTool() map[string]string { return maps.Clone(withoutTool) }

// Table is the text of the rows of an array with some columns.
func Table(rows string, columns ...string) (string, error) {
	t := newTable(columns)
	err := json.Unmarshal([]byte(rows), &t)
	return string(t.text), err
}
