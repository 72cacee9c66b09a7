package pg_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"partnerapi/db/pg"
)

// TestSlowLog: a statement that takes too long is logged by its name, once in a while,
// and without a value; others are not.
func TestSlowLog(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	d := open(t, pg.WithSlowLog(log, 0)) // all are slow
	said.Reset()
	for range 3 {
		if _, err := pg.One[string](t.Context(), d, "read a secret", pg.SQL("SELECT ?::text", "sesame")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.SQL().ExecContext(t.Context(), "SELECT\n\t'sesame'"); err != nil {
		t.Fatal(err)
	}
	text := said.String()
	for word, n := range map[string]int{
		`msg="a statement was slow" statement="read a secret" took=`: 1, "statement=select": 1,
		"sesame": 0,
	} {
		if strings.Count(text, word) != n {
			t.Errorf("%q is not %d times in\n%s", word, n, text)
		}
	}

	said.Reset()
	quick := open(t, pg.WithSlowLog(log, time.Hour))
	exec(t, quick, "SELECT 1")
	if said.Len() > 0 {
		t.Errorf("logs %s", &said)
	}
}
