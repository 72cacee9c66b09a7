package mcp

import (
	encoding "encoding/json"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Table is the text of the rows of an array with some columns.
func Table(rows string, columns ...string) (string, error) {
	t := newTable(columns)
	err := json.Unmarshal([]byte(rows), &t)
	return string(t.text), err
}

// Present is a value, of which a schema is known, without what counts as absent.
func Present(schema, value string) (string, error) {
	s := &shape{}
	err := encoding.Unmarshal([]byte(schema), s)
	return string(s.appendPresent(nil, jsontext.NewDecoder(strings.NewReader(value), jsontext.AllowDuplicateNames(true)))), err
}
