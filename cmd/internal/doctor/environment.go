package doctor

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/output"
)

// checkEnvironment looks for variables that seem to be meant for this program, and
// that no command reads. It shows no value.
func (e *examination) checkEnvironment(context.Context) finding {
	known, err := EnvironmentVariables(e.program)
	if err != nil {
		return fail("report this as a defect", err)
	}
	if unknown := misspelt(os.Environ(), known); len(unknown) > 0 {
		return warn("correct the name, or take the variable away: it has no effect", "no command reads %s",
			strings.Join(unknown, ", "))
	}
	return pass("all variables PARTNERAPI_… are read")
}

// EnvironmentVariables are the names of those that some command of a program reads.
func EnvironmentVariables(program *kong.Application) (map[string]bool, error) {
	names := map[string]bool{}
	err := kong.Visit(program, func(node kong.Visitable, next kong.Next) error {
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
		if likely := output.Nearest(strings.ToUpper(name), names, max(2, (len(name)-len("PARTNERAPI_"))/3)); likely != "" {
			name += " (" + likely + "?)"
		}
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	return unknown
}
