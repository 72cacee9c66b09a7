package mcp

import (
	"bytes"
	"fmt"
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

// compact formats a page as text. fields are the columns that the caller requested; nil means the operation's Columns.
// An answer that is no page is returned unchanged.
func (t *tool) compact(body []byte, fields []string) ([]byte, error) {
	columns := t.operation.Meta().Columns
	if columns == nil {
		return body, nil
	}
	if fields != nil {
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
	row     cell    // the current row
	columns []*cell // the shown cells of row, in order
	whole   bool    // rows stay JSON
}

// newTable returns a table without rows, whose text is the line of the columns' names. If columns contains everyField,
// the rows stay JSON, and the text is empty.
func newTable(columns []string) table {
	t := table{whole: slices.Contains(columns, everyField)}
	if t.whole {
		return t
	}
	t.text = append(t.text, strings.Join(columns, "\t")+"\n"...)
	for _, path := range columns {
		column := t.row.descend(path)
		column.shown = true
		t.columns = append(t.columns, column)
	}
	return t
}

// UnmarshalJSONFrom adds the rows in an array.
func (t *table) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		if err := t.addRow(dec); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// addRow decodes a row, which is an object, and appends it to the text.
func (t *table) addRow(dec *jsontext.Decoder) error {
	if t.whole {
		row, err := dec.ReadValue()
		t.text = append(t.text, row...)
		t.endRow()
		return err
	}
	for _, c := range t.columns {
		c.value = c.value[:0]
	}
	if err := t.row.read(dec); err != nil {
		return err
	}
	for i, c := range t.columns {
		if i > 0 {
			t.text = append(t.text, '\t')
		}
		var err error
		if t.text, err = appendCell(t.text, c.value); err != nil {
			return err
		}
	}
	t.endRow()
	return nil
}

// endRow ends the current row.
func (t *table) endRow() {
	t.text = append(t.text, '\n')
	t.rows++
}

// cell is a member of a row that a column shows, or an object that contains one.
type cell struct {
	members map[string]*cell // by their quoted names, as in JSON
	shown   bool
	value   jsontext.Value // of the current row, if shown; empty if the row lacks the member
}

// descend returns the cell at a path such as risk.score, creating it if needed.
func (c *cell) descend(path string) *cell {
	for name := range strings.SplitSeq(path, ".") {
		quoted := strconv.Quote(name)
		if c.members[quoted] == nil {
			if c.members == nil {
				c.members = map[string]*cell{}
			}
			c.members[quoted] = &cell{}
		}
		c = c.members[quoted]
	}
	return c
}

// read decodes the next value: into c.value if the cell is shown, and an object's members into their cells. It skips
// other values.
func (c *cell) read(dec *jsontext.Decoder) error {
	if c.shown {
		value, err := dec.ReadValue()
		c.value = append(c.value, value...)
		if err != nil || c.members == nil {
			return err
		}
		dec = jsontext.NewDecoder(bytes.NewReader(c.value))
	}
	if c.members == nil || dec.PeekKind() != '{' {
		return dec.SkipValue()
	}

	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if member := c.members[string(name)]; member != nil {
			err = member.read(dec)
		} else {
			err = dec.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// appendCell appends a value: null as the empty text, a text unquoted unless it contains a separator.
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
		if bytes.ContainsAny(out[begin:], "\t\r\n") {
			out = append(out[:begin], value...)
		}
		return out, err
	case '0':
		return appendNumber(out, value)
	case '[', '{':
		return appendSorted(out, value)
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

// appendSorted appends an array or an object, with the members of objects sorted by name.
func appendSorted(out []byte, value jsontext.Value) ([]byte, error) {
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		return out, err
	}
	text, err := json.Marshal(decoded, json.Deterministic(true))
	return append(out, text...), err
}
