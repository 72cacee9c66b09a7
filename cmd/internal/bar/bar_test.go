package bar_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"partnerapi/cmd/internal/bar"
)

// TestNoBarInFiles: logs and pipes get no bar.
func TestNoBarInFiles(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	inText, inFile := bar.New(&text, "seeding"), bar.New(file, "seeding")
	for done := range 4 {
		inText(done, 3)
		inFile(done, 3)
	}
	if info, err := file.Stat(); err != nil || info.Size() > 0 || text.Len() > 0 {
		t.Errorf("%d bytes in a file (%v), %q", info.Size(), err, text.String())
	}
}
