package output_test

import (
	"bytes"
	"testing"

	"partnerapi/cmd/internal/output"
)

// TestVisibleWriter: characters may come in pieces.
func TestVisibleWriter(t *testing.T) {
	t.Parallel()
	var to bytes.Buffer
	w := output.NewVisible(&to, false)
	for _, b := range []byte("é\u202e\tx\n\xe2\x80") {
		if n, err := w.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	w.Finish()
	if got, want := to.String(), "é\\u{202e}\tx\n\\x{e2}\\x{80}"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
