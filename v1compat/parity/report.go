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

// maxShown is how many differences of an operation are shown.
const maxShown = 10

// maxValue is how many bytes of a value are shown.
const maxValue = 2000

// Report is what was compared, operation by operation.
type Report struct {
	// Between, where two services' version 1 are compared, are the addresses of the
	// one that differences have under v1, and of the one under v2.
	Between    []string     `json:"between,omitzero"`
	Operations []*Operation `json:"operations"`

	mu sync.Mutex
}

// Operation is what was compared of one of v1's operations. Each value of an item
// counts as one, as do an item that only one side has, the total and the order of a
// list, and a status or header that is wrong.
type Operation struct {
	// Operation is its method and path, such as GET /v1/clients.
	Operation string `json:"operation"`
	// Compared is the sum of the next three.
	Compared int `json:"compared"`
	Equal    int `json:"equal"`
	// Explained counts values that differ, or that v2 lacks, as the migration guide
	// says.
	Explained int `json:"explained"`
	Different int `json:"different"`
	// Differences are the first ten.
	Differences []Difference `json:"differences"`
	// Unsettled counts the differences that were others at each of the times that they
	// were read again.
	Unsettled int `json:"unsettled,omitzero"`
}

// Difference is a value that both sides say differently.
type Difference struct {
	// Field is the value's path in v1's item, such as admins[0].role; or missing row for
	// an item that v1 lacks, and surplus row for one that it alone has; order, total,
	// limit or offset of a list; status; the name of a header; or a member of v2's object
	// that is missing or of a wrong type.
	Field string `json:"field"`
	// Object is what the value is of: the item, or the admin in it, or what the list is of
	// where its items have no ids.
	Object Object `json:"object,omitzero"`
	// Row is the item in its list, where it has no id, such as order 3.
	Row string `json:"row,omitzero"`
	// V1 and V2 are what v1 says, and what v2 says in v1's words. A side that does not
	// have the value has nothing, which is not null.
	V1 jsontext.Value `json:"v1,omitzero"`
	V2 jsontext.Value `json:"v2,omitzero"`
	// Unsettled says that the value was another one each time that it was read again.
	Unsettled bool `json:"unsettled,omitzero"`
	// Request is the commands that show both, one a line.
	Request string `json:"request"`
}

// Object is an object by its ids in both versions; an id that is not known is empty.
type Object struct {
	Kind string `json:"kind"`
	V1   string `json:"v1,omitzero"`
	V2   string `json:"v2,omitzero"`
}

// about says what a verdict is of, and which answers show it.
type about struct {
	object    Object
	row       string
	unsettled bool
	of        []answer
}

// at is the operation of that name. The report is locked.
func (r *Report) at(name string) *Operation {
	for _, o := range r.Operations {
		if o.Operation == name {
			return o
		}
	}
	o := &Operation{Operation: name, Differences: []Difference{}}
	r.Operations = append(r.Operations, o)
	return o
}

// count adds a verdict to an operation. The answers are those that it is of.
func (r *Report) count(operation string, v verdict, of ...answer) { r.add(operation, v, about{of: of}) }

// add adds a verdict to an operation.
func (r *Report) add(operation string, v verdict, a about) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.at(operation)
	o.Equal += v.equal
	o.Explained += v.explained
	o.Different += len(v.faults)
	o.Compared += v.equal + v.explained + len(v.faults)
	if a.unsettled {
		o.Unsettled += len(v.faults)
	}
	for _, f := range v.faults {
		if len(o.Differences) == maxShown {
			return
		}
		o.Differences = append(o.Differences, Difference{
			Field: f.field, Object: a.object, Row: a.row, V1: shown(f.v1), V2: shown(f.v2), Unsettled: a.unsettled,
			Request: commands(a.of),
		})
	}
}

// sort puts the operations into the order of names.
func (r *Report) sort(names []string) {
	slices.SortStableFunc(r.Operations, func(a, b *Operation) int {
		return cmp.Compare(slices.Index(names, a.Operation), slices.Index(names, b.Operation))
	})
}

// Different is how many differences there are.
func (r *Report) Different() int { return r.sum(func(o *Operation) int { return o.Different }) }

// Compared is how many values were compared.
func (r *Report) Compared() int { return r.sum(func(o *Operation) int { return o.Compared }) }

func (r *Report) sum(of func(*Operation) int) (n int) {
	for _, o := range r.Operations {
		n += of(o)
	}
	return n
}

func commands(of []answer) string {
	var lines []string
	for _, a := range of {
		if a.from != nil {
			lines = append(lines, a.curl())
		}
	}
	return strings.Join(lines, "\n")
}

// shown is a value as it is reported; nil for none.
func shown(v jsontext.Value) jsontext.Value {
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

// valueOf is a value of this package as JSON.
func valueOf(value any) jsontext.Value {
	b, err := json.Marshal(value, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err)
	}
	return b
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

// WriteText writes the report for people: a table, and then the differences.
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

// write writes a difference for people.
func (d Difference) write(b *strings.Builder, operation string, between []string) {
	fmt.Fprintf(b, "\n%s: %s", operation, d.Field)
	if d.Row != "" {
		fmt.Fprintf(b, ", %s", d.Row)
	}
	if o := d.Object; o.Kind != "" {
		fmt.Fprintf(b, ", %s %s (%s)", o.Kind, cmp.Or(o.V1, "?"), cmp.Or(o.V2, "?"))
	}
	if d.Unsettled {
		fmt.Fprintf(b, ", still changing after %d readings", rounds)
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
