package site

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
)

// entry is a result of the search: a section of a guide, a change, an operation, a parameter or a field.
type entry struct {
	Title string `json:"title"`
	// Place is what contains it: the guide, the changelog or the operation.
	Place string `json:"place"`
	Path  string `json:"path"`
	Text  string `json:"text"`
	// Words are further search words.
	Words string `json:"words,omitempty"`
	// Weight ranks it among entries that match equally well, the greatest first.
	Weight float64 `json:"weight"`
	more   int     // the number of other operations with the parameter or field
	source string  // the text of a section of a guide as it is in its source, with all lines
}

// guideEntries returns the entries of the sections of guides. A section is omitted if a part of the guide has one with its
// id. Sections weigh less than guides; a guide with parts, and its parts, less than both.
func (b *builder) guideEntries() (list []*entry) {
	inParts := map[string]bool{} // the names of guides with parts, and name#id of the parts' sections
	for _, g := range b.Guides {
		if whole, _, part := strings.Cut(g.Name, "/"); part {
			inParts[whole] = true
			for _, s := range g.Sections {
				inParts[whole+"#"+s.ID] = true
			}
		}
	}
	for _, g := range b.Guides {
		weight := 2.0
		if g.Part() || inParts[g.Name] {
			weight = 0.2 // lists of details, such as fields
		}
		for _, s := range g.Sections {
			if s.ID != "" && inParts[g.Name+"#"+s.ID] {
				continue
			}
			path, weight := g.Path, weight
			if s.ID != "" {
				path += "#" + s.ID
				weight = min(weight, 1.5)
			}
			list = append(list, &entry{
				Title: s.Title, Place: g.Title, Path: path, Text: indexText(s.Text), Words: s.Words, Weight: weight, source: s.Text,
			})
		}
	}
	return list
}

// addSearchIndex adds the index of the search, all entries as JSON, and sets b.Assets.Index to its path. It contains
// the sections of guides, the changes, and the operations with their parameters and fields.
func (b *builder) addSearchIndex() error {
	list := b.guideEntries()
	for _, c := range b.Config.Changes {
		list = append(list, c.entry())
	}
	for i, r := range b.References {
		list = append(list, b.entriesOf(r, 1/float64(i+1))...) // the preferred version weighs most
	}

	for _, e := range list {
		e.Path = b.Config.Root() + e.Path
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	b.Assets.Index = "/docs/search-" + hashOf(text) + ".json"
	b.pages[b.Assets.Index] = newContent("application/json", immutable, text)
	return nil
}

// entry returns the entry of a change, which lists the operations that it added.
func (c Change) entry() *entry {
	text := []string{c.Text}
	for _, o := range c.Operations {
		text = append(text, o.Summary)
	}
	return &entry{
		Title: c.Title, Place: "Changelog", Path: changelogPath + "#" + c.ID, Text: indexText(strings.Join(text, "\n")),
		Words: "what is new, changes, added", Weight: 2,
	}
}

// indexText returns a text on one line, with BASE for the address of samples and stand-ins for their keys, because the
// index is the same for all callers.
func indexText(text string) string {
	return strings.Join(strings.Fields(string(servedState{}.fill([]byte(text), "BASE"))), " ")
}

// entriesOf returns entries of the operations of a reference, and of their parameters and fields. Parameters or fields
// of several operations with the same name and description are one entry, at the first of them.
func (b *builder) entriesOf(r *reference, weight float64) []*entry {
	var list []*entry
	shared := map[entry]*entry{}
	for _, o := range r.Operations {
		list = append(list, &entry{
			Title: o.Summary, Place: o.Method + " " + o.Path, Path: o.Link, Text: o.source.Description,
			Words: b.Config.Words[o.source.OperationID], Weight: 2.5 * weight,
		})
		o.eachMember(func(kind, name, about string) {
			key := entry{Title: name, Place: kind, Text: about}
			if known := shared[key]; known != nil {
				known.more++
				return
			}
			made := key
			made.Place, made.Path, made.Weight = kind+" of "+o.Method+" "+o.Path, o.Link, weight
			shared[key] = &made
			list = append(list, &made)
		})
	}

	for _, e := range list {
		if e.more > 0 {
			e.Place += fmt.Sprintf(" and %d more", e.more)
		}
	}
	return list
}

// eachMember calls fn with the parameters, and with the fields of the request body and of the responses of a status
// 2xx. It calls fn once for members with the same kind, name and description.
func (o *operation) eachMember(fn func(kind, name, about string)) {
	seen := map[string]bool{}
	once := func(kind, name, about string) {
		if key := kind + name + "\x00" + about; !seen[key] {
			seen[key] = true
			fn(kind, name, about)
		}
	}
	for _, p := range o.parameters {
		once("Parameter", p.Value.Name, strings.TrimSpace(p.Value.Description+" "+aboutOf(p.Value.Schema)))
	}

	walked := map[*openapi3.Schema]bool{}
	read := func(content openapi3.Content) {
		if media := content.Get("application/json"); media != nil {
			eachField(media.Schema, walked, func(name, about string) { once("Field", name, about) })
		}
	}
	if body := o.source.RequestBody; body != nil {
		read(body.Value.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(o.source.Responses.Map())) {
		if strings.HasPrefix(status, "2") {
			read(o.source.Responses.Value(status).Value.Content)
		}
	}
}

// eachField calls fn with each field of a schema and of its parts, recursively. It skips schemas in walked, and adds
// those that it visits.
func eachField(ref *openapi3.SchemaRef, walked map[*openapi3.Schema]bool, fn func(name, about string)) {
	if ref == nil || ref.Value == nil || walked[ref.Value] {
		return
	}
	schema := ref.Value
	walked[schema] = true
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		fn(name, aboutOf(schema.Properties[name]))
		eachField(schema.Properties[name], walked, fn)
	}
	eachField(schema.Items, walked, fn)
	eachField(schema.AdditionalProperties.Schema, walked, fn)
	for _, part := range slices.Concat(schema.AllOf, schema.OneOf, schema.AnyOf) {
		eachField(part, walked, fn)
	}
}

// aboutOf returns the description of a schema and its enum values as text; empty for no schema.
func aboutOf(ref *openapi3.SchemaRef) string {
	if ref == nil || ref.Value == nil {
		return ""
	}
	words := []string{ref.Value.Description}
	for _, value := range ref.Value.Enum {
		words = append(words, fmt.Sprint(value))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}
