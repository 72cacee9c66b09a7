package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oasdiff/yaml"
)

// sections are the parts of a document in the order in which people read them.
var sections = []string{"openapi", "info", "servers", "security", "tags", "paths", "components"}

// JSON returns the document as indented JSON, the same bytes for the same
// document.
func JSON(doc *openapi3.T) ([]byte, error) {
	plain, err := doc.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, plain, "", "  "); err != nil {
		return nil, fmt.Errorf("indent the document: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// YAML returns the document as YAML, the same bytes for the same document.
func YAML(doc *openapi3.T) ([]byte, error) {
	plain, err := doc.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(plain, &parts); err != nil {
		return nil, fmt.Errorf("split the document: %w", err)
	}
	var out bytes.Buffer
	for _, name := range sections {
		part, ok := parts[name]
		if !ok {
			continue
		}
		text, err := yaml.Marshal(map[string]json.RawMessage{name: part})
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}
