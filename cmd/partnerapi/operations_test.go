package main

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

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

An operation is available from its release on. In earlier releases it returns 404, like an unknown path. The limit is the maximum number of calls a minute of a key for one client, in addition to the 600 a minute for all operations. Every operation can also return 401 (no valid key), 429 (over a rate limit, or more often than the operation allows), 500 and 503 (the database is unreachable).

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

// commonTo is how many commands a flag has to be of to stand in the first table.
const commonTo = 10

// TestFlagsTable holds docs/flags.md to the commands.
func TestFlagsTable(t *testing.T) {
	t.Parallel()
	of, newer := newerModel(t), map[string]bool{}
	for name := range leaves(of, "") {
		newer[name] = true
	}
	d := flagsDocument{common: commonFlags(of)}
	d.introduce()
	d.list(leaves(of, ""), func(name string) bool { return !strings.HasPrefix(name, "__") })
	if older() {
		d.text.WriteString(olderHeading)
		d.list(leaves(model(t).Node, ""), func(name string) bool { return !newer[name] })
	}
	holdDocument(t, "docs/flags.md", d.text.String())
}

// flagsDocument is docs/flags.md as it is written.
type flagsDocument struct {
	text   strings.Builder
	common map[string]*kong.Flag
}

// commonFlags are the flags of many commands, by what is said of them.
func commonFlags(of *kong.Node) map[string]*kong.Flag {
	count, common := map[string]int{}, map[string]*kong.Flag{}
	for _, command := range leaves(of, "") {
		for _, f := range flagsOf(command) {
			if line := flagLine(f); count[line] < commonTo {
				if count[line]++; count[line] == commonTo {
					common[line] = f
				}
			}
		}
	}
	return common
}

// flagsOf are the flags of a command and of those that it lies below.
func flagsOf(command *kong.Node) []*kong.Flag {
	list := slices.Concat(command.AllFlags(true)...)
	return slices.DeleteFunc(list, func(f *kong.Flag) bool { return f.Name == "help" || f.Name == "version" })
}

// flagLine is a flag's row of a table.
func flagLine(f *kong.Flag) string {
	name := "`" + f.String() + "`"
	if len(f.Envs) > 0 && f.Envs[0] != "-" {
		name += ", `" + f.Envs[0] + "`"
	}
	help := strings.ReplaceAll(f.Help, "|", "\\|")
	if f.Name == "v1" {
		help += " <!-- v1-line -->"
	}
	return fmt.Sprintf("| %s | %s |\n", name, help)
}

func (d *flagsDocument) introduce() {
	d.text.WriteString(`# Commands and flags

Written by ` + "`make operations`" + ` from the commands; a test compares it. A flag with a variable below it can be set in the environment too.

## Flags of most commands

| flag | |
|---|---|
`)
	for _, line := range slices.Sorted(maps.Keys(d.common)) {
		d.text.WriteString(line)
	}
}

// list writes the commands that are wanted, by name.
func (d *flagsDocument) list(commands iter.Seq2[string, *kong.Node], wanted func(string) bool) {
	type named struct {
		name string
		*kong.Node
	}
	var all []named
	for name, command := range commands {
		if wanted(name) {
			all = append(all, named{name, command})
		}
	}
	slices.SortFunc(all, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	for _, command := range all {
		help := command.Help
		if command.Type == kong.ArgumentNode {
			help = cmp.Or(help, command.Parent.Help)
		}
		usage := "partnerapi " + command.Summary()
		if len(usage) > 80 { // docs/width_test.go
			at := strings.LastIndex(usage[:80], " ")
			usage = usage[:at] + "\n   " + usage[at:]
		}
		fmt.Fprintf(&d.text, "\n## %s\n\n```text\n%s\n```\n\n%s\n", command.name, usage, help)
		head := "\n| flag | |\n|---|---|\n"
		for _, f := range flagsOf(command.Node) {
			if line := flagLine(f); d.common[line] == nil {
				d.text.WriteString(head + line)
				head = ""
			}
		}
	}
}

// TestEnvironmentNames wants a variable to mean the same in every command that
// reads it: one type, one default, one description.
func TestEnvironmentNames(t *testing.T) {
	t.Parallel()
	type reader struct {
		command string
		flag    *kong.Flag
	}
	first := map[string]reader{}
	flags := 0
	err := kong.Visit(model(t), func(node kong.Visitable, next kong.Next) error {
		command, ok := node.(*kong.Node)
		if !ok {
			return next(nil)
		}
		for _, flag := range command.Flags {
			for _, name := range flag.Envs {
				flags++
				other, taken := first[name]
				if !taken {
					first[name] = reader{command.Path(), flag}
					continue
				}
				if a, b := other.flag, flag; a.Target.Type() != b.Target.Type() || a.Default != b.Default || a.Help != b.Help {
					t.Errorf("%s is --%s of %q and --%s of %q, which differ", name, a.Name, other.command, b.Name, command.Path())
				}
			}
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if first["PARTNERAPI_DATABASE_URL"].flag == nil || flags < 30 {
		t.Errorf("only %d flags have names: %v", flags, first)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	all := command(t)
	for _, args := range [][]string{{"--help"}, {"help"}} {
		if got := command(t, args...); got != all || got.code != 0 || got.err != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if one, other := command(t, "help", "keys", "create"), command(t, "keys", "create", "--help"); one != other || one.code != 0 || one.out == all.out {
		t.Errorf("%+v", one)
	}
	refused(t, 2, []string{"help", "fly"}, "fly")
	if got := must(t, "--version"); got != must(t, "version") {
		t.Errorf("%q", got)
	}
}
