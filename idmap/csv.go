package idmap

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxImported is the highest number that an import gives: the upper half of the
// space stays for allocation (decisions 1.5). A row of a number that was allocated
// there and that its object still has changes nothing, and is taken: an export has
// such rows.
const maxImported = 1 << 30

// notImported is the format of an OutOfRange refusal's detail.
const notImported = "%v is not from 1 to %d"

// byteOrderMark is what spreadsheets put before the first line.
const byteOrderMark = "\ufeff"

// Reason is why a row of an import was refused (decisions 1.5).
type Reason string

// The reasons.
const (
	Duplicate  Reason = "duplicate"      // the number is another object's, or the file has number or object twice
	Orphan     Reason = "orphan"         // no such object
	OutOfRange Reason = "out of range"   // not from 1 to 2^30
	WrongKind  Reason = "wrong kind"     // an unknown kind, or an object of another one
	Malformed  Reason = "malformed line" // not a kind, a number and an id
)

// Refusal is a row that an import does not take, and why.
type Refusal struct {
	Line   int // of the file, from 1
	Reason Reason
	Detail string
}

// String returns the refusal as one line of a report.
func (r Refusal) String() string {
	return fmt.Sprintf("line %d: %s: %s", r.Line, r.Reason, r.Detail)
}

// A row of an import says which number an object had.
type row struct {
	line int
	pair
}

// A sheet is what was read of an import file, before the database is asked.
type sheet struct {
	total   int // rows, refused ones too
	rows    []row
	refused []Refusal
	numbers map[NumberKey]int // the line of each
	objects map[IDKey]int     // the line of each
}

// readSheet reads lines of kind,number,id, the first of which may be these
// three words. The error is the reader's alone: malformed lines are refused and the
// next is read.
func readSheet(file io.Reader) (*sheet, error) {
	s := &sheet{numbers: make(map[NumberKey]int), objects: make(map[IDKey]int)}
	text := bufio.NewReader(file)
	if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = text.Discard(len(mark)) // it was just seen to be there
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

func (s *sheet) refuse(line int, reason Reason, format string, args ...any) {
	s.refused = append(s.refused, Refusal{line, reason, fmt.Sprintf(format, args...)})
}

// parse adds the row of one line's fields, or refuses it.
func (s *sheet) parse(line int, fields []string) {
	if len(fields) != 3 {
		s.refuse(line, Malformed, "%d fields instead of kind,number,id", len(fields))
		return
	}

	name, digits, text := strings.TrimSpace(fields[0]), strings.TrimSpace(fields[1]), strings.TrimSpace(fields[2])
	kind, ok := kindNamed(name)
	if !ok {
		s.refuse(line, WrongKind, "%q is not a kind that has numbers", name)
		return
	}
	if !isInteger(digits) {
		s.refuse(line, Malformed, "%q is not an integer", digits)
		return
	}
	id, err := ParseID(kind, text)
	if errors.Is(err, errIDKind) {
		s.refuse(line, WrongKind, "%s is not the id of a %s", text, kind)
		return
	}
	if err != nil {
		s.refuse(line, Malformed, "%q is %v", text, err)
		return
	}

	number, ok := parseNumber(digits)
	if !ok || number > MaxNumber {
		s.refuse(line, OutOfRange, notImported, digits, maxImported)
		return
	}
	s.add(row{line, pair{kind, number, id}})
}

// add keeps a row whose number and object the file does not have yet.
func (s *sheet) add(r row) {
	number, object := NumberKey{r.kind, r.number}, IDKey{r.kind, r.id}
	if line, again := s.numbers[number]; again {
		s.refuse(r.line, Duplicate, "%s %d is also on line %d", r.kind, r.number, line)
		return
	}
	if line, again := s.objects[object]; again {
		s.refuse(r.line, Duplicate, "%s is also on line %d", spaces[r.kind].show(r.id), line)
		return
	}
	s.numbers[number], s.objects[object] = r.line, r.line
	s.rows = append(s.rows, r)
}

// isInteger reports whether text is an integer, of whatever size, that is
// written without superfluous signs or zeros.
func isInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || digits[0] == '0' && text != "0" {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}
