package mcp

import (
	"github.com/go-json-experiment/json"
)

// Table is the text of the rows of an array with some columns.
func Table(rows string, columns ...string) (string, error) {
	t := newTable(columns)
	err := json.Unmarshal([]byte(rows), &t)
	return string(t.text), err
}
