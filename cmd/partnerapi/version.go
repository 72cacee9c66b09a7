package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"partnerapi/cmd/internal/cli"
	"partnerapi/v2/op"
)

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(s cli.Env) error {
	_, err := io.WriteString(s.Out, versionText())
	return err
}

// versionText says what this program is: its version, its commit, what it was built
// with, and what it serves.
func versionText() string {
	serves := "v2, releases " + strings.Join(op.Release(0).Values(), ", ")
	for _, e := range extensions {
		serves += "; " + e.Name
	}
	return fmt.Sprintf("partnerapi %s\ncommit: %s\nbuilt with: %s %s/%s\nserves: %s\n",
		version, cmp.Or(builtFrom(), "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH, serves)
}

// builtFrom is the commit that the program was built from; empty where that is not
// known.
func builtFrom() string {
	if commit != "" {
		return commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	noted := map[string]string{}
	for _, setting := range info.Settings {
		noted[setting.Key] = setting.Value
	}
	if noted["vcs.modified"] == "true" {
		return noted["vcs.revision"] + ", with changes"
	}
	return noted["vcs.revision"]
}
