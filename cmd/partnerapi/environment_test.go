package main

import (
	"testing"

	"github.com/alecthomas/kong"
)

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
