package main

import (
	"context"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// checkEnvironment looks for variables that seem to be meant for this program, and
// that no command reads. It shows no value.
func (e *examination) checkEnvironment(context.Context) finding {
	known, err := environmentVariables()
	if err != nil {
		return fail("report this as a defect", err)
	}
	if unknown := misspelt(os.Environ(), known); len(unknown) > 0 {
		return warn("correct the name, or take the variable away: it has no effect", "no command reads %s",
			strings.Join(unknown, ", "))
	}
	return pass("all variables PARTNERAPI_… are read")
}

// environmentVariables are the names of those that some command reads.
func environmentVariables() (map[string]bool, error) {
	line := cli{Plugins: pluginCommands()}
	parser, err := newParser(context.Background(), &line, streams{out: io.Discard, err: io.Discard})
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			for _, name := range flag.Envs {
				names[name] = true
			}
		}
		return next(nil)
	})
	return names, err
}

// ofKubernetes are variables that Kubernetes sets for a service named partnerapi.
var ofKubernetes = regexp.MustCompile(
	`_SERVICE_(HOST|PORT\w*)=|_PORT(_\d+_(TCP|UDP)\w*)?=(tcp|udp)://|_PORT_\d+_(TCP|UDP)_\w+=`)

// misspelt are the names of settings NAME=value that begin much as this program's
// variables do and are none of those, each with the one that is likely meant.
func misspelt(settings []string, known map[string]bool) (unknown []string) {
	names := slices.Sorted(maps.Keys(known))
	for _, setting := range settings {
		name, _, _ := strings.Cut(setting, "=")
		plain := strings.ToUpper(strings.ReplaceAll(strings.ReplaceAll(name, "_", ""), "-", ""))
		rest, ours := strings.CutPrefix(plain, "PARTNERAPI")
		if !ours || rest == "" || known[name] || ofKubernetes.MatchString(setting) {
			continue
		}
		if likely := nearest(strings.ToUpper(name), names, max(2, (len(name)-len("PARTNERAPI_"))/3)); likely != "" {
			name += " (" + likely + "?)"
		}
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	return unknown
}
