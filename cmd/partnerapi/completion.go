package main

import (
	"embed"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/cli"
	"partnerapi/v2/op"
)

// completionScripts ask the program itself, by its hidden command __complete, what
// a line may continue with. So they are as small as they are, and always agree with
// the program that is installed.
//
//go:embed completion
var completionScripts embed.FS

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help says where the script goes.
func (completionCmd) Help() string {
	return `For the running shell: source <(partnerapi completion bash), the same with zsh (after compinit), or partnerapi completion fish | source. For every shell, write it to /etc/bash_completion.d/partnerapi, to _partnerapi in a folder of zsh's $fpath, or to ~/.config/fish/completions/partnerapi.fish.`
}

// Run prints the script.
func (c completionCmd) Run(s cli.Env) error {
	script, err := completionScripts.ReadFile("completion/" + c.Shell)
	if err != nil {
		return err
	}
	_, err = s.Out.Write(script)
	return err
}

type completeCmd struct {
	Words []string `arg:"" optional:"" help:"The words of the line after the program's name; the last is being typed."`
}

// Run prints what the last word may become, a line each, with a tab and a
// description after it. A line :files or :dirs stands for names of those.
func (c completeCmd) Run(k *kong.Context, s cli.Env) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, found := range continuations(k.Model, words) {
		if _, err := io.WriteString(s.Out, found+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// typed is a line up to the word that is being typed.
type typed struct {
	node *kong.Node
	// positional is how many arguments of the node there are already.
	positional int
	// pending is the flag whose value comes next; nil where none does.
	pending *kong.Flag
	// plain says that no flags follow, after --.
	plain bool
}

// continuations is what the last of the words may become.
func continuations(model *kong.Application, words []string) []string {
	at := typed{node: model.Node}
	before, current := words[:len(words)-1], words[len(words)-1]
	help := len(before) > 0 && before[0] == "help"
	if help {
		before = before[1:]
	}
	for _, word := range before {
		at.read(word)
	}
	found := at.next(current)
	if at.node == model.Node && !help && !strings.HasPrefix(current, "-") {
		found = append(found, "help\tDescribe a command.")
	}
	return slices.DeleteFunc(found, func(line string) bool {
		return !strings.HasPrefix(line, current) && !strings.HasPrefix(line, ":")
	})
}

// read goes over a word.
func (t *typed) read(word string) {
	switch {
	case t.pending != nil:
		t.pending = nil
	case word == "--" && !t.plain:
		t.plain = true
	case strings.HasPrefix(word, "-") && len(word) > 1 && !t.plain:
		if f := t.flag(word); f != nil && !f.IsBool() && !strings.Contains(word, "=") {
			t.pending = f
		}
	default:
		for _, child := range t.node.Children {
			if child.Type == kong.ArgumentNode || child.Name == word || slices.Contains(child.Aliases, word) {
				t.node, t.positional = child, 0
				return
			}
		}
		t.positional++
	}
}

// flag is the flag that a word names, or nil.
func (t *typed) flag(word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, group := range t.node.AllFlags(true) {
		for _, f := range group {
			if f.Name == name {
				return f
			}
		}
	}
	return nil
}

// next is what may come, whatever of it is typed already.
func (t *typed) next(current string) (found []string) {
	switch {
	case t.pending != nil:
		return values(t.pending.Value, "")
	case strings.HasPrefix(current, "-") && !t.plain:
		return t.flags(current)
	}
	for _, child := range t.node.Children {
		switch {
		case child.Hidden:
		case child.Type == kong.ArgumentNode:
			found = append(found, values(child.Argument, "")...)
		default:
			found = append(found, explained(child.Name, child.Help))
		}
	}
	if arguments := t.node.Positional; len(arguments) > 0 {
		last := arguments[min(t.positional, len(arguments)-1)]
		if t.positional < len(arguments) || last.IsCumulative() {
			found = append(found, values(last, "")...)
		}
	}
	return found
}

// flags are those of the command and the ones above it, or the values of the one
// that is there already: --release=.
func (t *typed) flags(current string) (found []string) {
	if name, _, has := strings.Cut(current, "="); has {
		if f := t.flag(name); f != nil {
			return values(f.Value, "--"+f.Name+"=")
		}
		return nil
	}
	for _, group := range t.node.AllFlags(true) {
		for _, f := range group {
			found = append(found, explained("--"+f.Name, f.Help))
		}
	}
	return found
}

// values are those that a flag or an argument may have, each after a prefix; none
// where they are not known.
func values(v *kong.Value, prefix string) (found []string) {
	switch v.Tag.Type {
	case "path", "existingfile":
		return []string{":files"}
	case "existingdir":
		return []string{":dirs"}
	}
	if v.Flag != nil && v.Flag.PlaceHolder == "DIR" {
		return []string{":dirs"}
	}
	if v.Flag == nil && v.Name == "file" {
		return []string{":files"}
	}
	for _, name := range valuesOf(v) {
		found = append(found, prefix+name+"\t")
	}
	return found
}

func valuesOf(v *kong.Value) []string {
	if v.Enum != "" {
		return v.EnumSlice()
	}
	of := v.Target.Type()
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of == reflect.TypeFor[slog.Level]() {
		return []string{"debug", "info", "warn", "error"}
	}
	if enum, ok := reflect.Zero(of).Interface().(op.Enum); ok {
		return enum.Values()
	}
	return nil
}

// explained is a word with the first sentence of what it does.
func explained(word, help string) string {
	first, _, _ := strings.Cut(help, ". ")
	return fmt.Sprintf("%s\t%s", word, strings.TrimSuffix(first, "."))
}
