// Package atomicfile writes files that are whole or not there.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write writes what from has to a file that only its owner can read. It is written
// aside, under a name of the pattern (os.CreateTemp) in the same folder, and put into
// place by place: os.Rename, or os.Link where there must be none. It outlives a crash of
// the machine.
func Write(path, pattern string, from io.Reader, place func(from, to string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone where it was renamed

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
