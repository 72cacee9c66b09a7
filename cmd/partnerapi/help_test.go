package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOrderOfFlags: help shows a command's own flags first, then those of all commands and of the database, in a line each.
func TestOrderOfFlags(t *testing.T) {
	t.Parallel()
	help := must(t, "keys", "create", "--help")
	at := -1
	for _, part := range []string{"\nExamples:\n", "\nFlags:\n  --name=", "\nFlags of all commands:\n", "\nDatabase flags", "  PostgreSQL database."} {
		next := strings.Index(help, part)
		if next <= at {
			t.Fatalf("%q is not there, or too early:\n%s", part, help)
		}
		at = next
	}
	_, last, _ := strings.Cut(help, "\nDatabase flags")
	if lines := strings.Count(last, "\n"); lines > 8 {
		t.Errorf("the flags of the database take %d lines:\n%s", lines, last)
	}
}

// TestHelpOfProcesses verifies that the help of serve begins with the flags that one needs, and that its other flags are
// in groups.
func TestHelpOfProcesses(t *testing.T) {
	t.Parallel()
	flagName := regexp.MustCompile(`(?m)^  (?:-\w, |    )?--(?:\[no-\])?([a-z0-9-]+)`)
	names := func(command string) (list []string) {
		_, rest, _ := strings.Cut(must(t, command, "--help"), "\nFlags:\n")
		first, _, _ := strings.Cut(rest, "\n\n")
		for _, found := range flagName.FindAllStringSubmatch(first, -1) {
			list = append(list, found[1])
		}
		return list
	}
	if got := names("serve"); !slices.Equal(got, firstFlags) {
		t.Errorf("serve begins with %q, want %q: put other flags into processGroups", got, firstFlags)
	}
	if got, want := names("work"), []string{"listen", "data-dir", "database-url", "public-url"}; !slices.Equal(got, want) {
		t.Errorf("work begins with %q, want %q", got, want)
	}
	help := must(t, "serve", "--help")
	for _, g := range processGroups {
		says(t, help, "\n"+g.Title+"\n  --")
	}
}
