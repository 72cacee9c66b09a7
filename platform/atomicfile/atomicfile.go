// Package atomicfile writes files that exist completely or not at all.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write writes the content of from to a file that only its owner can read. It writes a temporary file in the same
// folder, named by pattern (os.CreateTemp), and moves it into place with place: os.Rename, or os.Link to keep an
// existing file. The file survives a crash of the machine.
func Write(path, pattern string, from io.Reader, place func(from, to string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // no such file after os.Rename

	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
