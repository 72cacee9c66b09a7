package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"partnerapi/platform/atomicfile"
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

// write writes a file aside, and puts it into place by os.Link or os.Rename.
func write(path, text string, place func(from, to string) error) error {
	return atomicfile.Write(path, filepath.Base(path)+".new-*", strings.NewReader(text), place)
}
