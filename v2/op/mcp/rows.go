package mcp

import (
	"bytes"
	"errors"
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

// listing is a page of any list or feed.
type listing struct {
	Data table `json:"data"`
	Page struct {
		NextCursor *string `json:"next_cursor"`
		HasMore    bool    `json:"has_more"`
	} `json:"page"`
}

// formatCompact formats a page as text. fields are the columns that the caller requested; none means the operation's
// Columns. A response that is no page is returned unchanged.
func (t *tool) formatCompact(body []byte, fields []string) ([]byte, error) {
	columns := t.operation.Meta().Columns
	if columns == nil {
		return body, nil
	}
	if len(fields) > 0 {
		columns = fields
	}
	page := listing{Data: newTable(columns)}
	if err := json.Unmarshal(body, &page, asSent); err != nil {
		return nil, fmt.Errorf("the response of %s: %w", t.Name, err)
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

// table is the text of a page's rows, to which a row is added as its JSON is decoded. columns are the paths of the
// shown members of a row, such as risk.score. values are those of the current row, empty for members that it lacks, and
// parents the paths of the objects that contain shown members.
type table struct {
	text    []byte
	rows    int
	columns []string
	values  map[string]jsontext.Value
	parents map[string]bool
}

// newTable returns a table without rows, whose text is the line of the columns' names. If columns contains everyField,
// the rows stay JSON, and the text is empty.
func newTable(columns []string) table {
	if slices.Contains(columns, everyField) {
		return table{}
	}
	t := table{columns: columns, values: map[string]jsontext.Value{}, parents: map[string]bool{}}
	t.text = []byte(strings.Join(columns, "\t") + "\n")
	for _, path := range columns {
		t.values[path] = nil
		for i, c := range path {
			if c == '.' {
				t.parents[path[:i]] = true
			}
		}
	}
	return t
}

// UnmarshalJSONFrom adds the rows, which are objects in an array.
func (t *table) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	_, _ = dec.ReadToken() // [
	for ; dec.PeekKind() == '{'; t.rows++ {
		if t.columns == nil {
			row, _ := dec.ReadValue()
			t.text = append(append(t.text, row...), '\n')
			continue
		}
		for path, value := range t.values {
			t.values[path] = value[:0]
		}
		t.read(dec, "")
		for i, path := range t.columns {
			if i > 0 {
				t.text = append(t.text, '\t')
			}
			t.text = appendCell(t.text, t.values[path])
		}
		t.text = append(t.text, '\n')
	}
	end, err := dec.ReadToken() // or the first error
	if err == nil && end.Kind() != ']' {
		err = errors.New("the rows are not an array of objects")
	}
	return err
}

// read sets the values of the current row within the next object of dec. prefix is the object's path and a dot; empty
// for the row itself. An error is that of the next read of dec, too.
func (t *table) read(dec *jsontext.Decoder, prefix string) {
	_, _ = dec.ReadToken() // {
	for dec.PeekKind() == '"' {
		token, _ := dec.ReadToken()
		path := prefix + token.String()
		earlier, isColumn := t.values[path] // earlier has the capacity of another row's value
		switch isParent := t.parents[path] && dec.PeekKind() == '{'; {
		case isColumn:
			value, _ := dec.ReadValue()
			t.values[path] = append(earlier[:0], value...)
			if isParent {
				t.read(jsontext.NewDecoder(bytes.NewBuffer(t.values[path]), asSent), path+".")
			}
		case isParent:
			t.read(dec, path+".")
		default:
			_ = dec.SkipValue()
		}
	}
	_, _ = dec.ReadToken() // }
}

// countLine matches the beginning of a page's last line.
var countLine = regexp.MustCompile(`^[0-9]+ rows`)

// appendCell appends a value: an absent one and null as the empty text, a text unquoted unless it contains a separator
// or looks like a page's last line, a number without an exponent, and arrays and objects as canonical JSON.
func appendCell(out []byte, value jsontext.Value) []byte {
	switch value.Kind() {
	case 0, 'n':
		return out
	case '"':
		text, _ := jsontext.AppendUnquote(out, value)
		if added := text[len(out):]; !bytes.ContainsAny(added, "\t\r\n") && !countLine.Match(added) {
			return text
		}
	case '0': // the kind of all numbers
		if bytes.ContainsAny(value, "eE") {
			number, _ := strconv.ParseFloat(string(value), 64)
			return strconv.AppendFloat(out, number, 'f', -1, 64)
		}
	case '[', '{':
		value = value.Clone()
		_ = value.Canonicalize() // sorts the members of objects by name
	}
	return append(out, value...)
}
