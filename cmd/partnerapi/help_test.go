package main

import (
	"strings"
	"testing"
)

// TestOrderOfFlags: help shows a command's own flags first, then those of all commands and of the database, in a line each.
func TestOrderOfFlags(t *testing.T) {
	t.Parallel()
	help := must(t, "keys", "create", "--help")
	at := -1
	for _, part := range []string{"\nExamples:\n", "\nFlags:\n  --name=", "\nFlags of all commands:\n", "\nFlags of the database", "  A PostgreSQL database."} {
		next := strings.Index(help, part)
		if next <= at {
			t.Fatalf("%q is not there, or too early:\n%s", part, help)
		}
		at = next
	}
	_, last, _ := strings.Cut(help, "\nFlags of the database")
	if lines := strings.Count(last, "\n"); lines > 8 {
		t.Errorf("the flags of the database take %d lines:\n%s", lines, last)
	}
}
