package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// output is what a command writes to: a file that gets its name when it is complete,
// another writer, or nothing.
type output struct {
	to   io.Writer
	file *os.File // nil for none
	path string
}

// newOutput begins a file for a path, beside its place. It is the one way in which
// commands write files: only the owner can read them (mode 0600), and none is there
// half written. Without a path the lines go to another writer, which may be nil.
func newOutput(path string, other io.Writer) (*output, error) {
	if path == "" {
		return &output{to: other}, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // such as /dev/stdout
		return nil, fmt.Errorf("%s is no file", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return nil, err
	}
	return &output{file, file, path}, nil
}

// keep gives the complete file its name.
func (o *output) keep() error {
	if o.file == nil {
		return nil
	}
	if err := errors.Join(o.file.Sync(), o.file.Close()); err != nil {
		return errors.Join(err, os.Remove(o.file.Name()))
	}
	return os.Rename(o.file.Name(), o.path)
}

// drop removes a file that is not complete.
func (o *output) drop() error {
	if o.file == nil {
		return nil
	}
	return errors.Join(o.file.Close(), os.Remove(o.file.Name()))
}

// writeWhole writes a file that has its name when it is complete. It returns how many
// bytes it has.
func writeWhole(path string, write func(*bufio.Writer) error) (size int64, err error) {
	o, err := newOutput(path, nil)
	if err != nil {
		return 0, err
	}
	buffer := bufio.NewWriter(o.to)
	if err := errors.Join(write(buffer), buffer.Flush()); err != nil {
		return 0, errors.Join(err, o.drop())
	}
	info, err := o.file.Stat()
	if err != nil {
		return 0, errors.Join(err, o.drop())
	}
	return info.Size(), o.keep()
}
