package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/v2/op"
)

// next is the version that the sources become when they are tagged.
const next = "1.1.0"

type versionCmd struct {
	JSON bool `name:"json" env:"-" help:"Print JSON."`
}

// Run prints the version.
func (c versionCmd) Run(s cli.Env) error {
	if c.JSON {
		return output.JSON(s.Out, versionNow())
	}
	_, err := io.WriteString(s.Out, versionText())
	return err
}

// versionLine describes the program: its version, its commit, its toolchain, and the releases it serves.
type versionLine struct {
	Version   string   `json:"version"`
	Commit    string   `json:"commit"`
	BuiltWith string   `json:"built_with"`
	Serves    []string `json:"serves"`
}

// versionNow returns the versionLine of this program.
func versionNow() versionLine {
	v := versionLine{
		Version: builtVersion(), Commit: cmp.Or(commitID(), "unknown"),
		BuiltWith: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Serves:    []string{"v2, releases " + strings.Join(op.Release(0).Values(), ", ")},
	}
	for _, e := range extensions {
		v.Serves = append(v.Serves, e.Name)
	}
	return v
}

// versionText returns the version of this program as lines of text.
func versionText() string {
	v := versionNow()
	return fmt.Sprintf("partnerapi %s\ncommit: %s\nbuilt with: %s\nserves: %s\n",
		v.Version, v.Commit, v.BuiltWith, strings.Join(v.Serves, "; "))
}

// builtVersion returns the version of this program.
func builtVersion() string { return cmp.Or(version, versionAt(commitID())) }

// versionAt returns the version of sources without a tag: a pre-release of next, with commitID's commit if it is known,
// such as 1.1.0-dev+0123456789ab.
func versionAt(commit string) string {
	v := next + "-dev"
	id, _, changed := strings.Cut(commit, ",")
	if id != "" {
		v += "+" + id[:min(len(id), 12)]
	}
	if changed {
		v += ".changed"
	}
	return v
}

// commitID returns the commit that the program was built from, with a note on local changes; empty if it is unknown.
func commitID() string {
	if commit != "" {
		return commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	if settings["vcs.modified"] == "true" {
		return settings["vcs.revision"] + ", with changes"
	}
	return settings["vcs.revision"]
}
