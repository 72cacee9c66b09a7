package idmap

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxImported is the highest number that an import gives to an object: the higher numbers are for allocation (decisions
// 1.5). A row with a higher number is accepted if its object has this number already, so that an import accepts every
// export.
const maxImported = 1 << 30

// notImported is the format of an OutOfRange refusal's detail.
const notImported = "%v is not between 1 and %d"

// byteOrderMark is the mark that spreadsheet programs write before the first line.
const byteOrderMark = "\ufeff"

// Reason is the reason why a row of an import was refused (decisions 1.5).
type Reason string

// The reasons.
const (
	Duplicate  Reason = "duplicate"      // another object has or had the number, or the file has the number or object twice
	Orphan     Reason = "orphan"         // the object does not exist
	OutOfRange Reason = "out of range"   // the number is not from 1 to 2^30
	WrongKind  Reason = "wrong kind"     // the kind is unknown, or the object is of another kind
	Malformed  Reason = "malformed line" // the line is not a kind, a number and an id
)

// Refusal is a row that an import refuses, with the reason.
type Refusal struct {
	Line   int // of the file, from 1
	Reason Reason
	Detail string
}

// String returns the refusal as one line of a report.
func (r Refusal) String() string {
	return fmt.Sprintf("line %d: %s: %s", r.Line, r.Reason, r.Detail)
}

// A row of an import is an object with its number, and the line of the file.
type row struct {
	line int
	pair
}

// A namedRow is a row of an imported template that is named by language and name.
type namedRow struct {
	line           int
	number         int64
	language, name string
}

// nameSeparator is between the language and the name of a namedRow.
const nameSeparator = ":"

// A sheet is the content of an import file.
type sheet struct {
	total   int // the number of rows, with the refused
	rows    []row
	named   []namedRow // they become rows once the templates are found
	refused []Refusal
	numbers map[NumberKey]int // the line of each number
	objects map[IDKey]int     // the line of each object
}

// readSheet reads lines of kind,number,id; the first line may be a header of these three words. It returns an error
// only if the file cannot be read: invalid lines are in sheet.refused.
func readSheet(file io.Reader) (*sheet, error) {
	s := &sheet{numbers: make(map[NumberKey]int), objects: make(map[IDKey]int)}
	text := bufio.NewReader(file)
	if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = text.Discard(len(mark)) // cannot fail: the mark is in the buffer
	}

	lines := csv.NewReader(text)
	lines.FieldsPerRecord = -1
	lines.TrimLeadingSpace = true
	lines.ReuseRecord = true
	for first := true; ; first = false {
		fields, err := lines.Read()
		var malformed *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return s, nil
		case errors.As(err, &malformed):
			s.total++
			s.refuse(malformed.StartLine, Malformed, "%v", malformed.Err)
			continue
		case err != nil:
			return nil, fmt.Errorf("read the file: %w", err)
		}
		if first && strings.EqualFold(strings.Join(fields, ","), "kind,number,id") {
			continue
		}
		line, _ := lines.FieldPos(0)
		s.total++
		s.parse(line, fields)
	}
}

// refuse adds a refusal of the row on a line.
func (s *sheet) refuse(line int, reason Reason, format string, args ...any) {
	s.refused = append(s.refused, Refusal{line, reason, fmt.Sprintf(format, args...)})
}

// parse adds the row with the fields of a line, or refuses it.
func (s *sheet) parse(line int, fields []string) {
	if len(fields) != 3 {
		s.refuse(line, Malformed, "%d fields instead of kind,number,id", len(fields))
		return
	}

	name, digits, text := strings.TrimSpace(fields[0]), strings.TrimSpace(fields[1]), strings.TrimSpace(fields[2])
	kind, ok := kindNamed(name)
	if !ok {
		s.refuse(line, WrongKind, "%q is not a kind that has numeric IDs", name)
		return
	}
	if !isInteger(digits) {
		s.refuse(line, Malformed, "%q is not an integer", digits)
		return
	}
	language, template, byName := strings.Cut(text, nameSeparator)
	byName = byName && kind == Template
	id, err := ParseID(kind, text)
	if !byName && errors.Is(err, errIDKind) {
		s.refuse(line, WrongKind, "%s is not the ID of a %s", text, kind)
		return
	}
	if !byName && err != nil {
		s.refuse(line, Malformed, "%q is %v", text, err)
		return
	}

	number, ok := parseNumber(digits)
	switch {
	case !ok || number > MaxNumber:
		s.refuse(line, OutOfRange, notImported, digits, maxImported)
	case byName:
		s.named = append(s.named, namedRow{line, number, language, template})
	default:
		s.add(row{line, pair{kind, number, id}})
	}
}

// add adds a row, or refuses it if its number or its object is on an earlier line.
func (s *sheet) add(r row) {
	number, object := NumberKey{r.kind, r.number}, IDKey{r.kind, r.id}
	if line, found := s.numbers[number]; found {
		s.refuse(r.line, Duplicate, "%s %d is also on line %d", r.kind, r.number, line)
		return
	}
	if line, found := s.objects[object]; found {
		s.refuse(r.line, Duplicate, "%s is also on line %d", kindInfos[r.kind].show(r.id), line)
		return
	}
	s.numbers[number], s.objects[object] = r.line, r.line
	s.rows = append(s.rows, r)
}

// isInteger reports whether text is a decimal integer of any size, without a plus sign and leading zeros.
func isInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || digits[0] == '0' && text != "0" {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}
