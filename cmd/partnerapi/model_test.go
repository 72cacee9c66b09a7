package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/doctor"
)

// parserOf returns a parser of command lines into line.
func parserOf(t *testing.T, line *commands) *kong.Kong {
	t.Helper()
	parser, err := newParser(t.Context(), line, environment(nil, io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// model is the model of all commands.
func model(t *testing.T) *kong.Application {
	t.Helper()
	return parserOf(t, &commands{Plugins: pluginCommands()}).Model
}

// newerModel is the model of the commands of this version, without those of an older one.
func newerModel(t *testing.T) *kong.Node {
	t.Helper()
	return parserOf(t, &commands{}).Model.Node
}

// variables are the names of all environment variables that a command reads.
func variables(t *testing.T) map[string]bool {
	t.Helper()
	names, err := doctor.EnvironmentVariables(model(t))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func eachFlag(t *testing.T, of *kong.Application, see func(*kong.Flag)) {
	t.Helper()
	err := kong.Visit(of, func(node kong.Visitable, next kong.Next) error {
		if f, ok := node.(*kong.Flag); ok {
			see(f)
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// parses wants a command line to be one of this program, and returns what it says.
func parses(t *testing.T, args ...string) commands {
	t.Helper()
	line := commands{Plugins: pluginCommands()}
	if _, err := parserOf(t, &line).Parse(args); err != nil {
		t.Errorf("%v: %v", args, err)
	}
	return line
}

// mentioned says what is wrong with a command line as documents show it: with
// placeholders (CLIENT, ID…), options in brackets, and alternatives (pdf|xlsx).
func mentioned(of *kong.Application, words []string) (wrong string) {
	at := lineState{node: of.Node}
	for _, word := range words {
		word = strings.Trim(word, "[]")
		if word == "" || word == "|" {
			continue
		}
		if strings.HasPrefix(word, "--") {
			f := at.flag(word)
			if f == nil && word != "--help" {
				return "there is no flag " + word + " of " + at.node.FullPath()
			}
			at.pending = nil
			if f != nil && !f.IsBool() && !strings.Contains(word, "=") {
				at.pending = f
			}
			continue
		}
		if at.pending == nil && len(at.node.Children) > 0 && len(at.node.Positional) == 0 && !isArgument(at.node.Children[0]) {
			if names := strings.Split(word, "|"); len(names) > 1 {
				for _, name := range names[1:] {
					if !hasCommand(at.node, name) {
						return "there is no command " + name + " of " + at.node.FullPath()
					}
				}
				word = names[0]
			}
			if !hasCommand(at.node, word) {
				return "there is no command " + word + " of " + at.node.FullPath()
			}
		}
		at.read(word)
	}
	return ""
}

func isArgument(n *kong.Node) bool { return n.Type == kong.ArgumentNode }

func hasCommand(n *kong.Node, name string) bool {
	return slices.ContainsFunc(n.Children, func(c *kong.Node) bool { return c.Name == name })
}
