package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FileKeys returns the keys in a file. Where it is not there it is made, with a new
// key and the mode 0600: whole or not at all, and once, whatever processes do so at
// a time.
func FileKeys(path string) (*Keys, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = write(path, NewKey()+"\n", os.Link) // which fails where the file is there by now
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make an encryption key: %w", err)
	}
	return ParseKeys(filePrefix + path)
}

// AddKey puts a new key before those in a file. The older ones stay, for values
// that are not sealed with the new one yet.
func AddKey(path string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = write(path, NewKey()+"\n"+string(text), os.Rename)
	}
	if err != nil {
		return fmt.Errorf("add an encryption key: %w", err)
	}
	return nil
}

// write writes a file aside, and puts it into place by os.Link or os.Rename. It is
// there after a loss of power too.
func write(path, text string, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone where it was renamed
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
