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

// example reads the example of an operation; nil if it has none.
func (b *builder) example(id string) (*Example, error) {
	if b.of.Examples == nil {
		return nil, nil
	}
	text, err := fs.ReadFile(b.of.Examples, id+".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the example: %w", err)
	}
	out := &Example{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("the example: %w", err)
	}
	return out, nil
}

// parameter returns the example's value of a parameter, a number if the schema is that of an integer; nil if there is
// none. e may be nil.
func (e *Example) parameter(in, name string, schema *openapi3.Schema) any {
	if e == nil {
		return nil
	}
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

// body returns the example's request body; empty if there is none. e may be nil.
func (e *Example) body() jsontext.Value {
	if e == nil {
		return nil
	}
	return e.Body
}

// response returns the example's response body; empty if there is none. e may be nil.
func (e *Example) response() jsontext.Value {
	if e == nil {
		return nil
	}
	return e.Response
}

// orderedExample is the body of an example, and the media type that contains it.
type orderedExample struct {
	content *openapi3.MediaType
	body    json.RawMessage
}

// setExample sets the example of a content to body, decoded, for the validation of the document; orderExamples sets it
// to body itself afterwards. An empty body is no example.
func (b *builder) setExample(content openapi3.Content, body jsontext.Value) error {
	if len(body) == 0 {
		return nil
	}
	media := content.Get("application/json")
	if err := json.Unmarshal(body, &media.Example); err != nil {
		return fmt.Errorf("the example: %w", err)
	}
	b.ordered = append(b.ordered, orderedExample{media, json.RawMessage(body)})
	return nil
}

// orderExamples replaces decoded example bodies with the original ones, whose members are in order.
func (b *builder) orderExamples() {
	for _, e := range b.ordered {
		e.content.Example = e.body
	}
}
