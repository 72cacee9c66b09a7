package transfer

import (
	"bufio"
	"bytes"
	"encoding"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// Input is what Import and Try read.
type Input struct {
	open func() source
}

// Lines returns an Input of lines of JSON, one object on each.
func Lines(r io.Reader) Input { return Input{func() source { return newLineReader(r) }} }

// Table returns an Input of comma-separated values: one object of a kind in each row, below a row with the names of the
// fields. The error says that no such kind exists.
//
// Tables are read as spreadsheets write them. Columns may be separated by semicolons or tabs, and the text may be in
// UTF-8, UTF-16 or Windows-1252, which includes Latin-1. Names of columns may be written in other cases, and with spaces
// or hyphens. Empty rows and empty cells are omitted. The lines that are reported are those of the file.
func Table(r io.Reader, object string) (Input, error) {
	k := kindNamed(object)
	if k == nil {
		return Input{}, fmt.Errorf("%q is not a kind of object; it %s", object, rule.EnumMessage(objectName("")))
	}
	return Input{func() source { return &tableReader{kind: k, in: bufio.NewReaderSize(r, 64<<10)} }}, nil
}

// tableReader reads the rows of a table, and returns them as lines of JSON.
type tableReader struct {
	kind    *kind
	in      *bufio.Reader
	bounded *boundedReader
	rows    *csv.Reader // of bounded; nil before the first row
	before  int         // lines before those that rows counts
	columns []column
	line    int // of the last row
}

// column is a column of a table.
type column struct {
	field string // empty for a column without a name
	kind  reflect.Type
}

// next returns the next row that is not empty.
func (t *tableReader) next() inputLine {
	if t.rows == nil {
		if err := t.begin(); err != nil {
			return inputLine{err: err}
		}
	}
	for {
		t.bounded.left = maxRow
		cells, err := t.rows.Read()
		bad, isBad := errors.AsType[*csv.ParseError](err)
		switch {
		case isBad && bad.Line > bad.StartLine:
			t.line = t.before + bad.StartLine
			return t.fault("the row has an unclosed quotation mark; the lines from this one to line %d were not read", t.before+bad.Line)
		case isBad:
			t.line = t.before + bad.StartLine
			return t.fault(badQuotes)
		case errors.Is(err, errLongRow):
			return inputLine{err: FormatError(fmt.Sprintf("a row after line %d has more than %d bytes; check for an unclosed quotation mark", t.line, maxRow))}
		case err != nil: // io.EOF, or of the input
			return inputLine{number: t.line, bytes: t.rows.InputOffset(), err: err}
		}
		if !clean(cells) {
			continue
		}
		first, _ := t.rows.FieldPos(0)
		t.line = t.before + first
		return t.row(cells)
	}
}

// badQuotes is the fault of a row with a quotation mark that is not paired.
const badQuotes = "the row has an unpaired quotation mark; if a cell contains a quotation mark, enclose the cell in quotation marks " +
	"and double the mark"

// maxRow is the maximum length of a row in bytes, which is held in memory; that of a line of JSON is lower.
const maxRow = 4 * MaxLine

// errLongRow is the error of a boundedReader.
var errLongRow = errors.New("a row is too long")

// boundedReader reads at most left more bytes, or a few more.
type boundedReader struct {
	from io.Reader
	left int
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errLongRow
	}
	n, err := r.from.Read(p)
	r.left -= n
	return n, err
}

// fault returns the last row as an invalid line.
func (t *tableReader) fault(format string, args ...any) inputLine {
	return inputLine{number: t.line, bytes: t.rows.InputOffset(), fault: fmt.Errorf(format, args...)}
}

// clean decodes the cells, and removes white space around them. It reports whether any is not empty.
func clean(cells []string) (found bool) {
	for i, text := range cells {
		if !utf8.ValidString(text) {
			text, _ = charmap.Windows1252.NewDecoder().String(text) // it never fails: it maps every byte
		}
		cells[i] = strings.TrimSpace(text)
		found = found || cells[i] != ""
	}
	return found
}

// begin reads the row with the names of the fields. Its error is a FormatError if there is none, or a name is wrong.
func (t *tableReader) begin() error {
	head, _ := t.in.Peek(longestMark) // an error returns with the first row
	if err := checkHead(head, true /* UTF-16 */); err != nil {
		return err
	}
	if bigEndian, isUTF16 := utf16Order(head); isUTF16 {
		order := unicode.LittleEndian
		if bigEndian {
			order = unicode.BigEndian
		}
		t.in = bufio.NewReaderSize(transform.NewReader(t.in, unicode.UTF16(order, unicode.UseBOM).NewDecoder()), 64<<10)
	}
	if mark, _ := t.in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = t.in.Discard(len(byteOrderMark)) // it never fails: the bytes are there
	}
	separator, err := t.findSeparator()
	if err != nil {
		return err
	}
	t.bounded = &boundedReader{t.in, maxRow}
	t.rows = csv.NewReader(t.bounded)
	t.rows.Comma, t.rows.FieldsPerRecord, t.rows.ReuseRecord = separator, -1, true

	for {
		names, err := t.rows.Read()
		switch {
		case errors.Is(err, io.EOF):
			return FormatError("the table is empty; its first row must contain the names of the fields")
		case err != nil:
			return fmt.Errorf("read the names of the fields: %w", err)
		}
		if first, _ := t.rows.FieldPos(0); clean(names) {
			t.line = t.before + first
			return t.nameColumns(names)
		}
	}
}

// findSeparator returns the separator of the cells: that of a first line such as "sep=;", which Excel writes and which is
// skipped, or the one that the first line that is not empty has most often outside quotation marks. It skips the lines
// before that one, whose separators may be others. Its error is a FormatError if the input is JSON.
func (t *tableReader) findSeparator() (rune, error) {
	head, _ := t.in.Peek(32 << 10) // fewer bytes at the end of the input
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if named := bytes.TrimSpace(line); bytes.HasPrefix(named, []byte("sep=")) && len(named) == len("sep=")+1 {
		_, _ = t.in.Discard(min(len(line)+1, len(head))) // it never fails: the bytes are there
		t.before++
		return rune(named[len("sep=")]), nil
	}
	if text := bytes.TrimSpace(head); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		return 0, errNoTable
	}
	empty := 0 // bytes of the empty lines
	for line = range bytes.Lines(head) {
		if len(bytes.Trim(line, " \r\n\",;\t|")) > 0 || !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		t.before++
		empty += len(line)
	}
	_, _ = t.in.Discard(empty) // it never fails: the bytes are there
	return separatorOf(line), nil
}

// separatorOf returns the separator that a line has most often outside quotation marks.
func separatorOf(line []byte) rune {
	counts, quoted := map[rune]int{}, false
	for _, b := range line {
		if b == '"' {
			quoted = !quoted
		} else if !quoted {
			counts[rune(b)]++
		}
	}
	best := ','
	for _, r := range ";\t|" {
		if counts[r] > counts[best] {
			best = r
		}
	}
	return best
}

// nameColumns finds the fields of the columns by their names. Its error is a FormatError that lists wrong names.
func (t *tableReader) nameColumns(names []string) error {
	fields, list := map[string]column{}, []string{}
	for f := range t.kind.Type().Fields() {
		name := rule.WireName(f)
		element, _ := rule.OptionalElement(f.Type)
		fields[plain(name)], list = column{name, element}, append(list, name)
	}
	var wrong []string
	seen := map[string]bool{}
	for _, name := range names {
		c, ok := fields[plain(name)]
		if name != "" && (!ok || seen[c.field]) {
			wrong = append(wrong, strconv.Quote(name))
		}
		seen[c.field] = true
		t.columns = append(t.columns, c)
	}
	if wrong != nil {
		return FormatError(fmt.Sprintf("line %d: the first row contains names that are not fields of %s or are repeated: %s; the fields are %s",
			t.line, t.kind.Object(), strings.Join(wrong, ", "), strings.Join(list, ", ")))
	}
	return nil
}

// plain returns the letters and digits of a name, in lower case.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_- .", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// row returns a row as a line of JSON, without its empty cells.
func (t *tableReader) row(cells []string) inputLine {
	text := append([]byte(`{"object":"`), t.kind.Object()...)
	text = append(text, '"')
	values := map[string]string{}
	for i, cell := range cells {
		switch {
		case cell == "":
			continue
		case i >= len(t.columns):
			return t.fault("the row has more cells than the first row: %.40q", cell)
		case t.columns[i].field == "":
			return t.fault("the row has a cell in a column without a name: %.40q", cell)
		}
		values[t.columns[i].field] = cell
		text = append(text, `,"`+t.columns[i].field+`":`...)
		text = append(text, jsonOf(cell, t.columns[i].kind)...)
	}
	if id := t.madeID(values); values["id"] == "" && id != "" {
		text = append(text, `,"id":"`+id+`"`...)
	}
	text = append(text, '}')
	l := inputLine{number: t.line, bytes: t.rows.InputOffset(), tooLong: len(text) > MaxLine}
	if !l.tooLong {
		l.text = text
	}
	return l
}

// jsonOf returns a cell as JSON for a field of a type; nil for a reference. A cell that is no such value is returned as a
// string, so that the check of the line says what it must be.
func jsonOf(cell string, t reflect.Type) []byte {
	quoted, err := jsontext.AppendQuote(nil, cell)
	if err != nil { // not UTF-8, which clean excludes
		return []byte(`""`)
	}
	if t == nil || reflect.PointerTo(t).Implements(textType) {
		return quoted
	}
	switch t.Kind() {
	case reflect.String:
		return quoted
	case reflect.Bool:
		switch strings.ToLower(cell) {
		case "true", "yes", "1":
			return []byte("true")
		case "false", "no", "0":
			return []byte("false")
		}
	case reflect.Int:
		if n, err := strconv.Atoi(cell); err == nil {
			return strconv.AppendInt(nil, int64(n), 10)
		}
	case reflect.Slice:
		if !strings.HasPrefix(cell, "[") {
			return listOf(cell)
		}
	}
	if value := jsontext.Value(cell); value.IsValid() { // lists and objects are in JSON
		return value
	}
	return quoted
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// listOf returns the parts of a cell, between commas, semicolons and white space, as a JSON list of strings.
func listOf(cell string) []byte {
	list := []byte{'['}
	for i, part := range strings.FieldsFunc(cell, func(r rune) bool { return strings.ContainsRune(",; \t\r\n", r) }) {
		if i > 0 {
			list = append(list, ',')
		}
		list, _ = jsontext.AppendQuote(list, part) // it never fails: the cell is UTF-8
	}
	return append(list, ']')
}

// madeOf are the fields from which an id is derived for an object without one, by kind: those of its owner, of which the first
// that is given counts, and its name.
var madeOf = map[string]struct {
	owners []string
	name   string
}{
	"client":     {[]string{"partner"}, "name"},
	"admin":      {[]string{"client", "partner"}, "email"},
	"group":      {[]string{"client"}, "name"},
	"user":       {[]string{"client"}, "email"},
	"collection": {[]string{"client"}, "name"},
}

// madeID returns an id that is always the same for the same owner and name (a UUID of version 5); empty if the values have
// no valid owner or no name.
func (t *tableReader) madeID(values map[string]string) string {
	object := t.kind.Object()
	made := madeOf[object]
	name := strings.ToLower(values[made.name])
	for _, field := range made.owners {
		owner, ok := ownerOf(values[field])
		if !ok || name == "" {
			continue
		}
		if object != "user" { // so that an admin with the address of a user has another id
			name = object + " " + name
		}
		return uuid.NewSHA1(owner, []byte(name)).String()
	}
	return ""
}

// ownerOf returns the UUID of a reference to a client or a partner; false if it is neither.
func ownerOf(text string) (uuid.UUID, bool) {
	var client domain.Ref[domain.ClientKind]
	if client.UnmarshalText([]byte(text)) == nil {
		return uuid.UUID(client.ID), true
	}
	var partner domain.Ref[domain.PartnerKind]
	err := partner.UnmarshalText([]byte(text))
	return uuid.UUID(partner.ID), err == nil
}
