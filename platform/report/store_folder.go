package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"partnerapi/platform/atomicfile"
)

// folder keeps objects as files of this machine.
type folder struct{ dir string }

// openFolder opens a folder, which it makes if it does not exist. Only the owner can read the folder. Parent folders
// that it makes can be read by all users of the machine. advice says in errors how to choose another one.
func openFolder(dir, advice string) (*folder, error) {
	err := os.MkdirAll(filepath.Dir(dir), 0o755)
	if err == nil {
		if err = os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create the folder of the reports: %w (%s)", err, advice)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory (%s)", dir, advice)
	}
	return &folder{dir: dir}, nil
}

// path returns the path of an object's file.
func (f *folder) path(key string) string { return filepath.Join(f.dir, filepath.FromSlash(key)) }

// exists reports whether the folder exists.
func (f *folder) exists(context.Context) (bool, error) {
	_, err := os.Stat(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// put removes temporary files that a crash left, writes the file under a temporary name in the same folder, and renames
// it when it is complete and on disk. Until then an earlier file of the key remains.
func (f *folder) put(_ context.Context, key, _ /* content type */ string, file io.ReadSeeker) error {
	path := f.path(key)
	if err := removeFiles(path + "."); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, filepath.Base(path)+".*", file, os.Rename)
}

// open opens an object. The error is ErrNoFile if there is no such file.
func (f *folder) open(_ context.Context, key string) (*File, error) {
	file, err := os.Open(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoFile
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &File{ReadSeekCloser: file, ModTime: info.ModTime()}, nil
}

// remove deletes the file of an object, and temporary files that a crash of put left. A file that does not exist is no
// error.
func (f *folder) remove(_ context.Context, key string) error { return removeFiles(f.path(key)) }

// removeFiles deletes the files whose path begins with prefix. It is no error if there are none.
func removeFiles(prefix string) error {
	dir, name := filepath.Split(prefix)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), name) {
			if removeErr := os.Remove(filepath.Join(dir, entry.Name())); !errors.Is(removeErr, fs.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
	}
	return err
}
