package site

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// referencePath is the path prefix of references.
const referencePath = "/docs/reference/"

// reference is a Reference with its page, in which Scalar shows the document.
type reference struct {
	Reference
	Path string
	// Operations are in the order of the document's tags, then of their paths.
	Operations []*operation
}

// operation is an operation and its place in the reference.
type operation struct {
	Operation
	Link string
	// parameters are the parameters of its path and its own.
	parameters openapi3.Parameters
	source     *openapi3.Operation
}

// methods is the order in which a path's operations are listed.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// newReference returns the reference of a document. An operation without a tag of the document is an error.
func newReference(r Reference) (*reference, error) {
	made := &reference{Reference: r, Path: referencePath + r.Name}
	for _, path := range slices.Sorted(maps.Keys(r.Document.Paths.Map())) {
		item := r.Document.Paths.Value(path)
		for _, method := range methods {
			source := item.GetOperation(method)
			if source == nil {
				continue
			}
			if len(source.Tags) == 0 || r.Document.Tags.Get(source.Tags[0]) == nil {
				return nil, fmt.Errorf("operation %s: it has no tag that the document lists", source.OperationID)
			}
			made.Operations = append(made.Operations, &operation{
				Operation:  Operation{method, r.Prefix + path, strings.TrimSuffix(source.Summary, ".")},
				Link:       made.Path + "#tag/" + source.Tags[0] + "/" + anchor.Replace(source.OperationID),
				parameters: slices.Concat(item.Parameters, source.Parameters), source: source,
			})
		}
	}

	tagIndex := func(o *operation) int {
		return slices.IndexFunc(r.Document.Tags, func(t *openapi3.Tag) bool { return t.Name == o.source.Tags[0] })
	}
	slices.SortStableFunc(made.Operations, func(a, b *operation) int { return cmp.Compare(tagIndex(a), tagIndex(b)) })
	return made, nil
}

// anchor converts an operation's id for the fragment of its link, as assets/reference.js does.
var anchor = strings.NewReplacer(".", "-", "_", "-")

// Source returns the path of the document that the page loads: the last of Files.
func (r *reference) Source() string { return r.Files[len(r.Files)-1] }

// addReferencePages adds the pages of all references.
func (b *builder) addReferencePages() error {
	for _, r := range b.References {
		p := page{Path: r.Path, Title: r.Title, Section: r.Name, About: "Every operation of " + r.Title + ".", Reference: r}
		if err := b.add("reference", p, nil); err != nil {
			return err
		}
	}
	return nil
}
