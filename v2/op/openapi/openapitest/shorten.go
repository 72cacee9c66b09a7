package openapitest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
)

// shorten returns an error whose text names each wrong member and the rule of the schema that it breaks, once, without
// the schemas and values that the library's text has. It returns nil for nil.
func shorten(err error) error {
	if err == nil {
		return nil
	}
	var lines []string
	for _, line := range differences(err) {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return errors.New(strings.Join(lines, "; "))
}

// differences returns the text of each error within an error of the library. Places in arrays are written as *.
func differences(err error) (lines []string) {
	var response *openapi3filter.ResponseError
	var schema *openapi3.SchemaError
	several, isSeveral := err.(openapi3.MultiError) // errors.As looks into the list
	switch {
	case isSeveral:
		for _, one := range several {
			lines = append(lines, differences(one)...)
		}
		return lines
	case errors.As(err, &response) && response.Err != nil:
		lines = differences(response.Err)
		if strings.Contains(response.Reason, "header") { // which names the header; of the body the member is enough
			for i := range lines {
				lines[i] = firstLine(response.Reason) + ": " + lines[i]
			}
		}
		return lines
	case errors.As(err, &schema):
		return []string{differenceOf(schema)}
	}
	return []string{firstLine(err.Error())}
}

var places = regexp.MustCompile(`(^|\.)\d+(\.|$)`)

// differenceOf returns the path of the wrong member, what is wrong, and the rule.
func differenceOf(err *openapi3.SchemaError) string {
	path := places.ReplaceAllString(strings.Join(err.JSONPointer(), "."), "$1*$2")
	if path == "" {
		path = "the body"
	}
	text := fmt.Sprintf("%s: %s (rule %s)", path, firstLine(err.Reason), err.SchemaField)
	if err.SchemaField != "anyOf" && err.SchemaField != "oneOf" {
		return text
	}
	var reasons []string // for each of the schemas
	for _, option := range slices.Concat(err.Schema.AnyOf, err.Schema.OneOf) {
		if reason := option.Value.VisitJSON(err.Value, openapi3.MultiErrors()); reason != nil {
			reasons = append(reasons, strings.Join(differences(reason), " and "))
		}
	}
	return text + ", as " + firstLine(strings.Join(reasons, "; or "))
}

// firstLine returns the first line of a text, at most 300 bytes.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line[:min(len(line), 300)]
}
