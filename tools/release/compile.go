package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// target is what a binary runs on.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

var allTargets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

func parseTargets(text string) (targets []target, err error) {
	for name := range strings.SplitSeq(text, ",") {
		os, arch, _ := strings.Cut(name, "/")
		if !slices.Contains(allTargets, target{os, arch}) {
			return nil, fmt.Errorf("the targets are %v", allTargets)
		}
		targets = append(targets, target{os, arch})
	}
	return targets, nil
}

// program is the package that is given out.
const program = "./cmd/partnerapi"

// profile is the CPU profile that the compiler optimizes for, in the sources: reads of a client
// and of pages under make bench's load.
const profile = "tools/release/cpu.pgo"

// goTool returns a command of the Go tool for a target. Of the caller's environment, nothing
// that changes what is compiled is kept. The tags are the Makefile's. The tool's own note
// of the working copy is omitted: it would differ where a copy has no tags.
func (s source) goTool(ctx context.Context, t target, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = s.root
	c.Env = append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GODEBUG=", "GOWORK=off", "GOFLAGS=-trimpath -tags=nomsgpack -buildvcs=false -mod=readonly -pgo=off")
	return c
}

// compile returns the program for a target.
func (r *release) compile(ctx context.Context, t target) ([]byte, error) {
	folder, err := os.MkdirTemp("", "partnerapi-release")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	commit := r.commit
	if r.dirty {
		commit += ", with changes"
	}
	file := filepath.Join(folder, "partnerapi")
	flags := fmt.Sprintf("-s -w -X main.version=%s -X 'main.commit=%s'", r.version, commit)
	args := []string{"build", "-ldflags", flags, "-o", file}
	if r.profiled {
		args = append(args, "-pgo="+profile)
	}
	if _, err := output(r.goTool(ctx, t, append(args, program)...)); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}
