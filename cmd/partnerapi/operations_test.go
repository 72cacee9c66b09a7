package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"partnerapi/cmd/internal/extension"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

var update = flag.Bool("update", false, "write docs/operations.md instead of comparing it")

// olderHeading begins the part of the document that is of version 1.
const olderHeading = "\n## Version 1\n"

// TestOperationsTable holds docs/operations.md to the operations' declarations.
func TestOperationsTable(t *testing.T) {
	t.Parallel()
	want := newerOperations()
	for _, e := range extensions {
		want += olderHeading + olderOperations(e.Routes())
	}
	holdDocument(t, "docs/operations.md", want)
}

// holdDocument holds a document to a text, or writes it with -update. Where version 1 was
// deleted, its part of the document is not looked at.
func holdDocument(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(root+name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got := fileText(t, name)
	if !older() {
		got, _, _ = strings.Cut(got, olderHeading)
	}
	if got != want {
		t.Errorf("%s is not what the program declares: run make operations\n%s", name, v2test.Diff(got, want))
	}
}

func newerOperations() string {
	var text strings.Builder
	text.WriteString(`# Operations

Written by ` + "`make operations`" + ` from the operations' declarations; a test compares it.

## Version 2

An operation is served from its release on; below that it answers 404, as an unknown path does. The limit is how many calls a minute a key may make for one client, beside the 600 a minute that it has for everything. Every operation also fails with 401 (no valid key), 429 (over a rate limit, or more often than the operation allows), 500 and 503 (the database is away).

| operation | | since | scope | limit | success | failures |
|---|---|---|---|---|---|---|
`)
	ops := slices.Clone(api.Operations)
	slices.SortStableFunc(ops, func(a, b op.Declaration) int { return cmp.Compare(a.Meta().Since, b.Meta().Since) })
	for _, o := range ops {
		m := o.Meta()
		budget := ""
		if m.PerClient > 0 {
			budget = strconv.Itoa(m.PerClient)
		}
		statuses := []int{}
		for _, code := range op.Codes(o) {
			statuses = append(statuses, op.StatusOf(code))
		}
		fmt.Fprintf(&text, "| `%s` | `%s /v2%s` | %s | %s | %s | %d | %s |\n",
			m.ID, m.Method, op.Braced(m.Path), m.Since, m.Scope, budget, m.Status, ownStatuses(statuses))
	}
	return text.String()
}

func olderOperations(routes []extension.Route) string {
	var text strings.Builder
	text.WriteString(`
Each route is one call of an operation of version 2, whatever the release that is served. Version 2 does not serve those whose names begin with v1. The failures are those that version 1 documents, beside 401, 429, 500 and 503.

| route | stands on | scope | failures |
|---|---|---|---|
`)
	for _, r := range routes {
		fmt.Fprintf(&text, "| `%s /v1%s` | `%s` | %s | %s |\n", r.Method, op.Braced(r.Path), r.Operation.ID, r.Operation.Scope, ownStatuses(r.Fails))
	}
	return text.String()
}

// ownStatuses lists statuses without those that all operations have.
func ownStatuses(statuses []int) string {
	statuses = slices.Clone(statuses)
	slices.Sort(statuses)
	var own []string
	for _, status := range slices.Compact(statuses) {
		if !slices.Contains([]int{401, 429, 500, 503}, status) {
			own = append(own, strconv.Itoa(status))
		}
	}
	return strings.Join(own, ", ")
}
