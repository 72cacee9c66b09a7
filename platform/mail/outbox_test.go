package mail_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"partnerapi/platform/mail"
)

// TestOutboxTidies: a start removes what a process that died left unfinished,
// and nothing that another may be writing, or that was sent.
func TestOutboxTidies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{
		".writing-old": 2 * time.Hour, ".writing-new": time.Minute, "old.eml": 100 * time.Hour,
	} {
		file := filepath.Join(dir, name)
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	outbox, err := mail.NewOutbox(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second replaces the first
		if err := outbox.Send(t.Context(), message("ada@example.test")); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if want := []string{".writing-new", "0190-test.eml", "old.eml"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v", names, err)
	}
	if send(t, outbox, "no address") != "refused" {
		t.Error("an address that is none is not refused")
	}
}
