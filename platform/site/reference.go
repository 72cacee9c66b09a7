package site

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// reference is the documentation of a version, ready for its templates.
type reference struct {
	Reference
	Path  string
	About template.HTML
	Tags  []*tag
}

// tag is the operations of a resource.
type tag struct {
	Name, Title, Path string
	About             template.HTML
	Operations        []*operation
}

// operation is an operation, ready for its template.
type operation struct {
	// Anchor is its id on the page.
	Anchor string
	// Path begins with that of the version.
	Method, Path, Summary string
	ID                    string
	About                 template.HTML
	Deprecated            bool
	// Facts are what is said in a line: scope, release, budget.
	Facts      []string
	Parameters []parameter
	Body       *body
	Answers    []answer
	// Failures are the statuses of errors with what they mean.
	Failures []failure
	// Example is a request as a command.
	Example string
}

// Tries reports whether readers can try the operation: it changes nothing.
func (o *operation) Tries() bool { return o.Method == http.MethodGet }

// parameter is what a request carries outside its body.
type parameter struct {
	row
	// In is path, query or header.
	In       string
	Required bool
	// Example is a value; it may be empty.
	Example string
}

// body is that of a request or an answer.
type body struct {
	Rows []row
	// Example is JSON; it may be empty.
	Example string
}

// answer is a success.
type answer struct {
	Status, Text string
	Headers      []row
	Body         *body
}

// failure is an error.
type failure struct {
	Status string
	About  template.HTML
	// Example is JSON; it may be empty.
	Example string
}

// newReference reads a document. Its texts are rendered without links to
// operations.
func newReference(r Reference) (*reference, error) {
	m := newMarkdown(nil, nil)
	doc := r.Document
	made := &reference{Reference: r, Path: "/docs/reference/" + r.Name}
	var err error
	if made.About, err = m.text(doc.Info.Description); err != nil {
		return nil, err
	}

	byTag := map[string]*tag{}
	for _, t := range doc.Tags {
		about, err := m.text(t.Description)
		if err != nil {
			return nil, err
		}
		byTag[t.Name] = &tag{Name: t.Name, Title: titleOf(t.Name), Path: made.Path + "/" + slug(t.Name), About: about}
		made.Tags = append(made.Tags, byTag[t.Name])
	}

	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		item := doc.Paths.Value(path)
		for _, method := range methods {
			source := item.GetOperation(method)
			if source == nil {
				continue
			}
			if len(source.Tags) == 0 || byTag[source.Tags[0]] == nil {
				return nil, fmt.Errorf("operation %s: it has no tag that the document lists", source.OperationID)
			}
			o, err := (&reader{m, r}).operation(method, path, item, source)
			if err != nil {
				return nil, fmt.Errorf("operation %s: %w", source.OperationID, err)
			}
			t := byTag[source.Tags[0]]
			t.Operations = append(t.Operations, o)
		}
	}
	made.Tags = slices.DeleteFunc(made.Tags, func(t *tag) bool { return len(t.Operations) == 0 })
	return made, nil
}

// methods are in the order in which a path's operations are shown.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// slug is a tag in a path.
func slug(name string) string {
	return url.PathEscape(strings.ToLower(strings.ReplaceAll(name, " ", "-")))
}

// titleOf makes a title of a tag: dark_web is Dark web.
func titleOf(name string) string {
	if len(name) <= 2 {
		return name // v1
	}
	words := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// reader reads the operations of a document.
type reader struct {
	markdown *markdown
	Reference
}

func (r *reader) operation(
	method, path string, item *openapi3.PathItem, source *openapi3.Operation,
) (o *operation, err error) {
	o = &operation{
		Anchor: strings.NewReplacer(".", "-", "_", "-").Replace(source.OperationID),
		Method: method, Path: r.Prefix + path, Summary: strings.TrimSuffix(source.Summary, "."),
		ID: source.OperationID, Deprecated: source.Deprecated, Facts: facts(source.Extensions),
	}
	if o.About, err = r.markdown.text(source.Description); err != nil {
		return nil, err
	}

	for _, p := range slices.Concat(item.Parameters, source.Parameters) {
		made, err := r.parameter(p.Value)
		if err != nil {
			return nil, err
		}
		o.Parameters = append(o.Parameters, made)
	}
	if source.RequestBody != nil {
		if o.Body, err = r.body(source.RequestBody.Value.Content); err != nil {
			return nil, err
		}
	}

	for _, status := range slices.Sorted(maps.Keys(source.Responses.Map())) {
		if err := r.response(o, status, source.Responses.Value(status).Value); err != nil {
			return nil, err
		}
	}
	o.Example = o.command()
	return o, nil
}

// facts are what the documents' extensions say of an operation.
func facts(extensions map[string]any) []string {
	var list []string
	if scope, ok := extensions["x-scope"].(string); ok {
		list = append(list, "Scope "+scope)
	}
	if since, ok := extensions["x-since"].(string); ok {
		list = append(list, "Since release "+since)
	}
	if budget, ok := extensions["x-per-client-per-minute"]; ok {
		list = append(list, fmt.Sprintf("%v calls a minute for each client", budget))
	}
	return list
}

func (r *reader) parameter(source *openapi3.Parameter) (p parameter, err error) {
	p = parameter{In: source.In, Required: source.Required}
	if p.row, err = r.row(source.Name, source.Schema, source.Required); err != nil {
		return p, err
	}
	if source.Description != "" {
		if p.About, err = r.markdown.text(source.Description); err != nil {
			return p, err
		}
	}
	example := source.Example
	if example == nil {
		example = firstExample(source.Examples)
	}
	if example == nil && source.Schema != nil {
		example = source.Schema.Value.Example
	}
	if example != nil {
		p.Example = fmt.Sprint(example)
	}
	return p, nil
}

func (r *reader) body(content openapi3.Content) (*body, error) {
	media := content.Get("application/json")
	if media == nil {
		return nil, nil
	}
	rows, err := r.rows(media.Schema)
	if err != nil {
		return nil, err
	}
	example := media.Example
	if example == nil {
		example = firstExample(media.Examples)
	}
	text, err := exampleText(example)
	if err != nil {
		return nil, err
	}
	return &body{Rows: rows, Example: text}, nil
}

func firstExample(examples openapi3.Examples) any {
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		if e := examples[name].Value; e != nil && e.Value != nil {
			return e.Value
		}
	}
	return nil
}

// response adds an answer to the operation: a success or a failure.
func (r *reader) response(o *operation, status string, source *openapi3.Response) error {
	about := ""
	if source.Description != nil {
		about = *source.Description
	}
	made, err := r.body(source.Content)
	if err != nil {
		return err
	}
	if code, err := strconv.Atoi(status); err != nil || code >= 400 {
		f := failure{Status: status}
		if f.About, err = r.markdown.text(about); err != nil {
			return err
		}
		if made != nil {
			f.Example = made.Example
		}
		o.Failures = append(o.Failures, f)
		return nil
	}

	a := answer{Status: status, Text: about, Body: made}
	for _, name := range slices.Sorted(maps.Keys(source.Headers)) {
		if general(name) {
			continue
		}
		h := source.Headers[name].Value
		line, err := r.row(name, h.Schema, h.Required)
		if err != nil {
			return err
		}
		if line.About, err = r.markdown.text(h.Description); err != nil {
			return err
		}
		a.Headers = append(a.Headers, line)
	}
	o.Answers = append(o.Answers, a)
	return nil
}

// general reports whether every answer has a header.
func general(name string) bool {
	return name == "X-Request-Id" || strings.HasPrefix(name, "X-RateLimit-")
}

// command is the operation as a command that can be pasted into a shell.
func (o *operation) command() string {
	path, separator := o.Path, "?"
	for _, p := range o.Parameters {
		switch {
		case p.In == openapi3.ParameterInPath && p.Example != "":
			path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(p.Example), 1)
		case p.In == openapi3.ParameterInQuery && p.Required:
			path += separator + p.Name + "=" + url.QueryEscape(p.Example)
			separator = "&"
		}
	}
	var out strings.Builder
	out.WriteString(`curl -s -H "X-API-Key: $KEY"`)
	if o.Method != http.MethodGet && (o.Method != http.MethodPost || o.Body == nil) {
		out.WriteString(" -X " + o.Method)
	}
	fmt.Fprintf(&out, ` "$BASE%s"`, path)
	if o.Body != nil {
		out.WriteString(" \\\n  -d '" + strings.ReplaceAll(cmp.Or(o.Body.Example, "{…}"), "'", `'\''`) + "'")
	}
	return out.String()
}
