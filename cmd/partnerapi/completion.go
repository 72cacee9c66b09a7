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
	"partnerapi/domain/rule"
)

// completionScripts ask the program itself, by its hidden command __complete, for the completions of a command line.
// This keeps them small, and consistent with the installed program.
//
//go:embed completion
var completionScripts embed.FS

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

func (completionCmd) Help() string {
	return `To enable completion in the current shell, run source <(partnerapi completion bash), the same command with zsh (after compinit), or partnerapi completion fish | source. To enable it in all new shells, write the script to /etc/bash_completion.d/partnerapi, to _partnerapi in a folder in zsh's $fpath, or to ~/.config/fish/completions/partnerapi.fish.`
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
	Words []string `arg:"" optional:"" help:"The words of the command line after the program's name. The last word is being typed."`
}

// Run prints the possible completions of the last word, one per line, each followed by a tab and a description. A
// line :files or :dirs stands for file or folder names.
func (c completeCmd) Run(k *kong.Context, s cli.Env) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" { // the scripts put it before the words, which are no flags of this command
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, found := range completions(k.Model, words) {
		if _, err := io.WriteString(s.Out, found+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// lineState is a command line up to the word being typed.
type lineState struct {
	node *kong.Node
	// positional is how many arguments of the node there are already.
	positional int
	// pending is the flag whose value comes next; nil if none does.
	pending *kong.Flag
	// flagsEnded reports whether -- was read, after which no flags follow.
	flagsEnded bool
}

// completions returns the completions of the last word, after the words before it.
func completions(model *kong.Application, words []string) []string {
	state := lineState{node: model.Node}
	before, current := words[:len(words)-1], words[len(words)-1]
	isHelp := len(before) > 0 && before[0] == "help" // its arguments are a command line
	if isHelp {
		before = before[1:]
	}
	for _, word := range before {
		state.read(word)
	}
	found := state.candidates(current)
	if state.node == model.Node && !isHelp && !strings.HasPrefix(current, "-") {
		found = append(found, "help\tDescribe a command.")
	}
	return slices.DeleteFunc(found, func(line string) bool {
		return !strings.HasPrefix(line, current) && !strings.HasPrefix(line, ":") // :files and :dirs stay
	})
}

// read parses a complete word: the value of a flag, the end of flags, a flag, a command or an argument.
func (t *lineState) read(word string) {
	switch {
	case t.pending != nil:
		t.pending = nil
	case word == "--" && !t.flagsEnded:
		t.flagsEnded = true
	case strings.HasPrefix(word, "-") && len(word) > 1 && !t.flagsEnded: // - alone is an argument
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

// flag returns the flag that a word names, or nil.
func (t *lineState) flag(word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, f := range slices.Concat(t.node.AllFlags(true)...) {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// candidates returns the possible next words: the values of the pending flag, flags if a dash was typed, otherwise
// commands and the values of the next argument. It does not filter them by the word that is being typed.
func (t *lineState) candidates(current string) (found []string) {
	switch {
	case t.pending != nil:
		return values(t.pending.Value, "")
	case strings.HasPrefix(current, "-") && !t.flagsEnded:
		return t.flags(current)
	}
	for _, child := range t.node.Children {
		switch {
		case child.Hidden: // is not offered
		case child.Type == kong.ArgumentNode: // an argument that commands follow
			found = append(found, values(child.Argument, "")...)
		default:
			found = append(found, describeCompletion(child.Name, child.Help))
		}
	}
	if arguments := t.node.Positional; len(arguments) > 0 {
		next := arguments[min(t.positional, len(arguments)-1)] // the last one may repeat
		if t.positional < len(arguments) || next.IsCumulative() {
			found = append(found, values(next, "")...)
		}
	}
	return found
}

// flags returns the flags of the command and its parents; for a word such as --release=, that flag's values, or nil if
// there is no such flag.
func (t *lineState) flags(current string) (found []string) {
	if name, _, hasValue := strings.Cut(current, "="); hasValue {
		if f := t.flag(name); f != nil {
			return values(f.Value, "--"+f.Name+"=")
		}
		return nil
	}
	for _, f := range slices.Concat(t.node.AllFlags(true)...) {
		found = append(found, describeCompletion("--"+f.Name, f.Help))
	}
	return found
}

// values returns the values of a flag or an argument as completions, with a prefix; for a file or a folder the line
// :files or :dirs; none if the values are unknown.
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
	for _, name := range enumValues(v) {
		found = append(found, prefix+name+"\t")
	}
	return found
}

// enumValues returns the possible values of a flag or an argument, by its tag or its type; nil if they are unknown.
func enumValues(v *kong.Value) []string {
	if v.Enum != "" {
		return v.EnumSlice()
	}
	target := v.Target.Type()
	for target.Kind() == reflect.Pointer || target.Kind() == reflect.Slice {
		target = target.Elem()
	}
	if target == reflect.TypeFor[slog.Level]() {
		return []string{"debug", "info", "warn", "error"}
	}
	if enum, ok := reflect.Zero(target).Interface().(rule.Enum); ok {
		return enum.Values()
	}
	return nil
}

// describeCompletion returns the completion by a word, with the first sentence of its help.
func describeCompletion(word, help string) string {
	first, _, _ := strings.Cut(help, ". ")
	return fmt.Sprintf("%s\t%s", word, strings.TrimSuffix(first, "."))
}
