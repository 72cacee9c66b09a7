package main

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

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
	for _, line := range slices.Sorted(func(yield func(string) bool) {
		for line := range d.common {
			if !yield(line) {
				return
			}
		}
	}) {
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
		if len(usage) > 80 { // as TestSampleWidth of docs
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
