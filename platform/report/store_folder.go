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

func openFolder(dir string) (*folder, error) {
	const advice = "choose another with --report-store file:///path"
	err := os.MkdirAll(filepath.Dir(dir), 0o755)
	if err == nil {
		if err = os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make the folder of the reports: %w (%s)", err, advice)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory (%s)", dir, advice)
	}
	return &folder{dir: dir}, nil
}

func (f *folder) path(key string) string { return filepath.Join(f.dir, filepath.FromSlash(key)) }

func (f *folder) exists(context.Context) (bool, error) {
	_, err := os.Stat(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// put writes a file beside its place, and renames it when it is whole and on disk.
func (f *folder) put(ctx context.Context, key, _ string, file io.ReadSeeker) error {
	if err := f.remove(ctx, key); err != nil {
		return err
	}
	path := f.path(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, filepath.Base(path)+".*", file, os.Rename)
}

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

// remove deletes the file and the parts of it that a crash left beside it.
func (f *folder) remove(_ context.Context, key string) error {
	dir, name := filepath.Split(f.path(key))
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), name) {
			if gone := os.Remove(filepath.Join(dir, entry.Name())); !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	return err
}
