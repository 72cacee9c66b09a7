package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// source is the working copy that a release is built from.
type source struct {
	root   string
	commit string
	time   time.Time // of the commit, and so of all files
	dirty  bool
	files  []string // that git knows
}

// openSource reads what git says of a folder.
func openSource(ctx context.Context, root string) (s source, err error) {
	s.root = root
	if s.commit, err = s.git(ctx, "rev-parse", "HEAD"); err != nil {
		return s, fmt.Errorf("a release is made of a commit: %w", err)
	}
	at, err := s.git(ctx, "show", "--no-patch", "--format=%cI", "HEAD")
	if err != nil {
		return s, err
	}
	if s.time, err = time.Parse(time.RFC3339, at); err != nil {
		return s, err
	}
	s.time = s.time.UTC()
	changes, err := s.git(ctx, "status", "--porcelain")
	if err != nil {
		return s, err
	}
	s.dirty = changes != ""
	files, err := s.git(ctx, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	s.files = strings.Split(strings.TrimRight(files, "\x00"), "\x00")
	slices.Sort(s.files)
	return s, err
}

// git runs git, and returns what it printed.
func (s source) git(ctx context.Context, args ...string) (string, error) {
	out, err := output(exec.CommandContext(ctx, "git", append([]string{"-C", s.root}, args...)...))
	return strings.TrimSpace(string(out)), err
}

// output runs a command, and returns what it printed; where it fails, the error has what it said.
func output(c *exec.Cmd) ([]byte, error) {
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}

// read returns a file of the sources.
func (s source) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(s.root, name))
}

// entries returns the files of the sources for which the function names a place.
func (s source) entries(place func(name string) string) (found []entry, err error) {
	for _, name := range s.files {
		at := place(name)
		if at == "" {
			continue
		}
		about, err := os.Stat(filepath.Join(s.root, name))
		if errors.Is(err, os.ErrNotExist) { // deleted, and not committed yet
			continue
		}
		if err != nil {
			return nil, err
		}
		data, err := s.read(name)
		if err != nil {
			return nil, err
		}
		mode := os.FileMode(0o644)
		if about.Mode()&0o100 != 0 {
			mode = 0o755
		}
		found = append(found, entry{name: at, mode: mode, data: data})
	}
	return found, nil
}
