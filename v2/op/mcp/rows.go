package mcp

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The compact form of a result is a page of a list as text: a line with the columns' names, a line for each row with
// tabs between its values, and a line with the count and the next cursor. It costs a third of the page in JSON.

// fieldsArgument is the argument of lists that names the fields to return.
const fieldsArgument = "fields"

// everyField requests rows in JSON with all fields.
const everyField = "*"

// formatCompact formats a page as text. fields are the columns that the caller requested; none means the operation's
// Columns. An answer that is no page is returned unchanged.
func (t *tool) formatCompact(body []byte, fields []string) ([]byte, error) {
	columns := t.operation.Meta().Columns
	if columns == nil {
		return body, nil
	}
	if len(fields) > 0 {
		columns = fields
	}
	page := listing{Data: newTable(columns)}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", t.Name, err)
	}

	out := fmt.Appendf(page.Data.text, "%d rows", page.Data.rows)
	if !page.Page.HasMore {
		out = append(out, ", no more"...)
	}
	if next := page.Page.NextCursor; next != nil {
		out = append(append(out, "; next_cursor "...), *next...)
	}
	return out, nil
}

// listing is a page of any list or feed.
type listing struct {
	Data table `json:"data"`
	Page struct {
		NextCursor *string `json:"next_cursor"`
		HasMore    bool    `json:"has_more"`
	} `json:"page"`
}

// table holds the rows of a page as text. They are written while the JSON is decoded: no other form of them is kept,
// except the values of the current row.
type table struct {
	text    []byte
	rows    int
	columns []string                  // the paths of the shown members of a row, such as risk.score
	values  map[string]jsontext.Value // of the current row, by path; empty for members that the row lacks
	parents map[string]bool           // the paths of the objects that contain shown members
	whole   bool                      // rows stay JSON
}

// newTable returns a table without rows, whose text is the line of the columns' names. If columns contains everyField,
// the rows stay JSON, and the text is empty.
func newTable(columns []string) table {
	if slices.Contains(columns, everyField) {
		return table{whole: true}
	}
	t := table{columns: columns, values: map[string]jsontext.Value{}, parents: map[string]bool{}}
	t.text = append(t.text, strings.Join(columns, "\t")+"\n"...)
	for _, path := range columns {
		t.values[path] = nil // marks the member as shown
		for i, c := range path {
			if c == '.' {
				t.parents[path[:i]] = true
			}
		}
	}
	return t
}

// UnmarshalJSONFrom adds the rows in an array.
func (t *table) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil { // [
		return err
	}
	for dec.PeekKind() != ']' {
		if err := t.addRow(dec); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken() // ]
	return err
}

// addRow decodes a row, which is an object, and appends it to the text: its cells, or its JSON if t.whole is true.
func (t *table) addRow(dec *jsontext.Decoder) error {
	t.rows++
	if t.whole {
		row, err := dec.ReadValue()
		t.text = append(append(t.text, row...), '\n')
		return err
	}
	for path, value := range t.values {
		t.values[path] = value[:0] // absent, until readObject finds one
	}
	if err := t.readObject(dec, ""); err != nil {
		return err
	}
	for i, path := range t.columns {
		if i > 0 {
			t.text = append(t.text, '\t')
		}
		var err error
		if t.text, err = appendCell(t.text, t.values[path]); err != nil {
			return err
		}
	}
	t.text = append(t.text, '\n')
	return nil
}

// readObject decodes the next value, an object of the row, and sets the values of its shown members, also of those
// within its members. prefix is the object's path and a dot; empty for the row itself.
func (t *table) readObject(dec *jsontext.Decoder, prefix string) error {
	if _, err := dec.ReadToken(); err != nil { // {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		path := prefix + name.String()
		empty, isShown := t.values[path] // empty has the capacity of an earlier row's value
		switch hasShown := t.parents[path] && dec.PeekKind() == '{'; {
		case isShown:
			var value jsontext.Value
			value, err = dec.ReadValue()
			t.values[path] = append(empty, value...)
			if err == nil && hasShown {
				err = t.readObject(jsontext.NewDecoder(bytes.NewReader(t.values[path])), path+".")
			}
		case hasShown:
			err = t.readObject(dec, path+".")
		default:
			err = dec.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// countLine matches the beginning of a page's last line.
var countLine = regexp.MustCompile(`^[0-9]+ rows`)

// appendCell appends a value: an absent one and null as the empty text, a text unquoted unless it contains a separator
// or looks like a page's last line, a number without an exponent, and arrays and objects as canonical JSON.
func appendCell(out []byte, value jsontext.Value) ([]byte, error) {
	if len(value) == 0 {
		return out, nil
	}
	switch value.Kind() {
	case 'n':
		return out, nil
	case '"':
		begin := len(out)
		out, err := jsontext.AppendUnquote(out, value)
		if bytes.ContainsAny(out[begin:], "\t\r\n") || countLine.Match(out[begin:]) {
			out = append(out[:begin], value...)
		}
		return out, err
	case '0': // the kind of all numbers
		return appendNumber(out, value)
	case '[', '{':
		value = value.Clone()
		err := value.Canonicalize() // sorts the members of objects by name
		return append(out, value...), err
	}
	return append(out, value...), nil
}

// appendNumber appends a number without an exponent.
func appendNumber(out []byte, value jsontext.Value) ([]byte, error) {
	if !bytes.ContainsAny(value, "eE") {
		return append(out, value...), nil
	}
	number, err := strconv.ParseFloat(string(value), 64)
	return strconv.AppendFloat(out, number, 'f', -1, 64), err
}
