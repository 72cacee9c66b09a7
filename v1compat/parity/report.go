package parity

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxShown is the number of an operation's differences that are reported in full.
	maxShown = 10
	// maxValue is the number of bytes of a value that are reported.
	maxValue = 2000
)

// Report is the result of a comparison, by operation.
type Report struct {
	// Between has the addresses of the two services whose v1 were compared, in the order
	// of V1 and V2 in differences; empty if v1 and v2 of one service were compared.
	Between    []string     `json:"between,omitzero"`
	Operations []*Operation `json:"operations"`

	mu sync.Mutex
}

// Operation is the result for one of v1's operations. Each value of an item counts as one, as do an item that only one
// side has, the total and the order of a list, and a wrong status or header.
type Operation struct {
	// Operation is its method and path, such as GET /v1/clients.
	Operation string `json:"operation"`
	// Compared is the sum of the next three.
	Compared int `json:"compared"`
	Equal    int `json:"equal"`
	// Explained counts values that differ, or that v2 lacks, for a reason that the migration guide gives.
	Explained int `json:"explained"`
	Different int `json:"different"`
	// Differences are the first ten.
	Differences []Difference `json:"differences"`
	// Unsettled counts the differences that changed with each reading.
	Unsettled int `json:"unsettled,omitzero"`
}

// Difference is a value that differs between the sides.
type Difference struct {
	// Field is the value's path in v1's item, such as admins[0].role; "missing row" for an item that only the other
	// side has, and "surplus row" for one that only v1 has; order, total, limit or offset of a list; status; the name
	// of a header; or a member of v2's object that is missing or of a wrong type.
	Field string `json:"field"`
	// Object is the object that has the value: the item, an admin in it, or the owner of the list if items have no ids.
	Object Object `json:"object,omitzero"`
	// Row names an item without an id in its list, such as order 3.
	Row string `json:"row,omitzero"`
	// V1 is v1's value, and V2 is v2's, translated. For a side that lacks the value it is nil, which is not null.
	V1 jsontext.Value `json:"v1,omitzero"`
	V2 jsontext.Value `json:"v2,omitzero"`
	// Unsettled reports whether the value changed with each reading.
	Unsettled bool `json:"unsettled,omitzero"`
	// Request has the commands that repeat both requests, one a line.
	Request string `json:"request"`
}

// Object is an object by its ids in both versions; an unknown id is empty.
type Object struct {
	Kind string `json:"kind"`
	V1   string `json:"v1,omitzero"`
	V2   string `json:"v2,omitzero"`
}

// add adds a finding to an operation.
func (r *Report) add(operation string, f finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.Operations, func(o *Operation) bool { return o.Operation == operation })
	if i < 0 {
		i = len(r.Operations)
		r.Operations = append(r.Operations, &Operation{Operation: operation})
	}
	o := r.Operations[i]
	o.Equal += f.equal
	o.Explained += f.explained
	o.Different += len(f.mismatches)
	o.Compared += f.equal + f.explained + len(f.mismatches)
	if f.unsettled {
		o.Unsettled += len(f.mismatches)
	}
	for _, m := range f.mismatches[:min(len(f.mismatches), maxShown-len(o.Differences))] {
		o.Differences = append(o.Differences, Difference{
			Field: m.field, Object: cmp.Or(m.object, f.object), Row: f.row, V1: shorten(m.v1), V2: shorten(m.v2),
			Unsettled: f.unsettled, Request: commands(f.answers),
		})
	}
}

// sort puts the operations in the order of names; those not in names come first.
func (r *Report) sort(names []string) {
	slices.SortStableFunc(r.Operations, func(a, b *Operation) int {
		return cmp.Compare(slices.Index(names, a.Operation), slices.Index(names, b.Operation))
	})
}

// Different returns the number of differences.
func (r *Report) Different() (n int) {
	for _, o := range r.Operations {
		n += o.Different
	}
	return n
}

// commands returns the commands that repeat the requests, one a line. Answers that were not requested, such as the
// translators' refusals, have none.
func commands(answers []answer) string {
	var lines []string
	for _, a := range answers {
		if a.from != nil {
			lines = append(lines, a.curl())
		}
	}
	return strings.Join(lines, "\n")
}

// shorten returns a value as it is reported: valid JSON of limited length; nil for none.
func shorten(v jsontext.Value) jsontext.Value {
	switch {
	case len(v) == 0:
		return nil
	case len(v) > maxValue:
		return valueOf(strings.ToValidUTF8(string(v[:maxValue]), "") + "…")
	case !v.IsValid():
		return valueOf(strings.ToValidUTF8(string(v), "?"))
	}
	return v
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(to io.Writer) error {
	b, err := json.Marshal(r, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	_, err = to.Write(append(b, '\n'))
	return err
}

// WriteText writes the report as text: a table, and then the differences.
func (r *Report) WriteText(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "OPERATION\tCOMPARED\tEQUAL\tEXPLAINED\tDIFFERENT")
	for _, o := range r.Operations {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", o.Operation, o.Compared, o.Equal, o.Explained, o.Different)
	}
	if err := table.Flush(); err != nil {
		return err
	}

	var b strings.Builder
	for _, o := range r.Operations {
		for _, d := range o.Differences {
			d.write(&b, o.Operation, r.Between)
		}
		if more := o.Different - len(o.Differences); more > 0 {
			fmt.Fprintf(&b, "\n%s: %d more\n", o.Operation, more)
		}
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// write writes a difference as text.
func (d Difference) write(b *strings.Builder, operation string, between []string) {
	fmt.Fprintf(b, "\n%s: %s", operation, d.Field)
	if d.Row != "" {
		fmt.Fprintf(b, ", %s", d.Row)
	}
	if o := d.Object; o.Kind != "" {
		fmt.Fprintf(b, ", %s %s (%s)", o.Kind, cmp.Or(o.V1, "?"), cmp.Or(o.V2, "?"))
	}
	if d.Unsettled {
		fmt.Fprintf(b, ", still changing after %d reads", maxReadings)
	}
	b.WriteString("\n")
	names := []string{"v1", "v2"}
	if len(between) == len(names) {
		names = between
	}
	for i, v := range []jsontext.Value{d.V1, d.V2} {
		fmt.Fprintf(b, "  %s: %s\n", names[i], cmp.Or(string(v), "absent"))
	}
	for line := range strings.Lines(d.Request) {
		fmt.Fprintf(b, "  %s\n", strings.TrimSuffix(line, "\n"))
	}
}
