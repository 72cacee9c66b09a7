package output_test

import (
	"errors"
	"strings"
	"testing"

	"partnerapi/cmd/internal/output"
)

// TestTable verifies that numbers are aligned right with commas between thousands, and that everything else is aligned
// left, without spaces at the end of a line.
func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table := output.NewTable(&out, "NAME", "CALLS", "LIMIT", "STATE")
	table.Row("Zoë", 1234567, "all", "on")
	table.Row("a-b", int64(-1000), 7, "")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = "" +
		"NAME      CALLS  LIMIT  STATE\n" +
		"Zoë   1,234,567    all  on\n" +
		"a-b      -1,000      7  \n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// TestTableFits verifies that only the given columns are cut, the widest first.
func TestTableFits(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table := output.NewTable(&out, "KEY", "NAME", "PARTNER").Fit(30, 1, 2)
	table.Row("pk_0123456789", "synchronize everything", "Acme")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = "KEY            NAME    PARTNER\npk_0123456789  synch…  Acme\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// TestTableOfManyRows verifies that an error of a write before the last one is returned.
func TestTableOfManyRows(t *testing.T) {
	t.Parallel()
	table := output.NewTable(failing{}, "N")
	for n := range 1500 {
		table.Row(n)
	}
	if err := table.Flush(); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

var errFull = errors.New("no space left")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

// TestWrap verifies that lines have at most the width, unless a word is longer.
func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"one two", "one two"},
		{"one two three", "one two\n  three"},
		{"one  two\nthree", "one two\n  three"},
		{"abcdefghijkl a b", "abcdefghijkl\n  a b"},
		{"12345678 b", "12345678\n  b"},
	} {
		if got := output.Wrap(c.text, 10, 2); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}
