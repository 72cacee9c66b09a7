package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"
)

// Example is an example of a call of an operation: a file of Document.Examples.
type Example struct {
	// Path and Query are the parameters' texts by their names.
	Path  map[string]string `json:"path,omitzero"`
	Query map[string]string `json:"query,omitzero"`
	// Body is the request's; empty for none.
	Body jsontext.Value `json:"body,omitzero"`
	// Status is the status of success.
	Status int `json:"status"`
	// Response is the body of success; empty for none.
	Response jsontext.Value `json:"response,omitzero"`
}

// readExample reads the example of an operation; empty if it has none.
func (b *builder) readExample(id string) (out Example, err error) {
	if b.source.Examples == nil {
		return out, nil
	}
	text, err := fs.ReadFile(b.source.Examples, id+".json")
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, fmt.Errorf("the example: %w", err)
	}
	return out, nil
}

// parameter returns the example's value of a parameter: a number if it is an integer, else a text; nil if it has none.
func (e *Example) parameter(in, name string, schema *openapi3.Schema) any {
	text, ok := e.Path[name]
	if in == openapi3.ParameterInQuery {
		text, ok = e.Query[name]
	}
	if !ok {
		return nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && schema.Type.Is(openapi3.TypeInteger) {
		return n
	}
	return text
}
