package output

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// File is the output of a command: a file that gets its name when it is complete, another writer, or nothing.
type File struct {
	To   io.Writer
	file *os.File // under its temporary name; nil if the output is no file
	path string   // the name of the complete file
}

// NewFile creates a temporary file next to path. All commands write files this way: only the owner can read them
// (mode 0600), and none appears half written. A path that is no regular file is an error. If path is empty, the output goes
// to other, which may be nil.
func NewFile(path string, other io.Writer) (*File, error) {
	if path == "" {
		return &File{To: other}, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // such as /dev/stdout
		return nil, fmt.Errorf("%s is not a file", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return nil, err
	}
	return &File{file, file, path}, nil
}

// Keep renames the complete file to its name; it does nothing if the output is no file.
func (o *File) Keep() error {
	if o.file == nil {
		return nil
	}
	if err := errors.Join(o.file.Sync(), o.file.Close()); err != nil {
		return errors.Join(err, os.Remove(o.file.Name()))
	}
	return os.Rename(o.file.Name(), o.path)
}

// Discard deletes the incomplete file; it does nothing if the output is no file.
func (o *File) Discard() error {
	if o.file == nil {
		return nil
	}
	return errors.Join(o.file.Close(), os.Remove(o.file.Name()))
}

// WriteFile writes a file, which gets its name only if write succeeds, and returns its size in bytes.
func WriteFile(path string, write func(*bufio.Writer) error) (size int64, err error) {
	o, err := NewFile(path, nil)
	if err != nil {
		return 0, err
	}
	buffer := bufio.NewWriter(o.To)
	if err := errors.Join(write(buffer), buffer.Flush()); err != nil {
		return 0, errors.Join(err, o.Discard())
	}
	info, err := o.file.Stat()
	if err != nil {
		return 0, errors.Join(err, o.Discard())
	}
	return info.Size(), o.Keep()
}
