package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"partnerapi/platform/atomicfile"
)

// Keys are encryption keys. The first key, the current key, seals; all keys open. Keys in a file are read again for
// each use, so that a running process follows a rotation; while the file cannot be read or parsed, the previous keys
// stay. A nil Keys has no key. Keys are safe for concurrent use.
type Keys struct {
	list string

	mu   sync.Mutex
	last []key
}

// filePrefix is the prefix of a file's path in place of a key.
const filePrefix = "file:"

// ParseKeys parses keys, separated by commas: each 32 bytes in base64, or file:PATH, a file of keys separated by
// commas or white space. Errors never quote a key.
func ParseKeys(list string) (*Keys, error) {
	ring, err := readKeys(list)
	if err != nil {
		return nil, err
	}
	return &Keys{list: list, last: ring}, nil
}

// Files returns the paths of the entries file:PATH in a list of keys, separated by commas.
func Files(list string) (paths []string) {
	for entry := range strings.SplitSeq(list, ",") {
		if path, ok := strings.CutPrefix(strings.TrimSpace(entry), filePrefix); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// ring returns the keys, the current key first. It reads files of keys again. The error is ErrNoKey for a nil Keys.
func (k *Keys) ring() ([]key, error) {
	if k == nil {
		return nil, ErrNoKey
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if strings.Contains(k.list, filePrefix) {
		if ring, err := readKeys(k.list); err == nil { // else the previous keys stay
			k.last = ring
		}
	}
	return k.last, nil
}

// readKeys parses a list of keys, separated by commas, and reads the files of entries file:PATH. It returns at least
// one key. Errors do not contain a key's text.
func readKeys(list string) (ring []key, err error) {
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		texts, place := []string{entry}, ""
		if path, ok := strings.CutPrefix(entry, filePrefix); ok {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("read the encryption key: %w", err)
			}
			separator := func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }
			texts, place = strings.FieldsFunc(string(text), separator), " in "+path
			if len(texts) == 0 {
				return nil, fmt.Errorf("there is no encryption key%s; create one with partnerapi encryption-key", place)
			}
		}
		for _, text := range texts {
			key, err := parseKey(text)
			if err != nil {
				return nil, fmt.Errorf("the encryption key%s %w; create one with partnerapi encryption-key", place, err)
			}
			ring = append(ring, key)
		}
	}
	return ring, nil
}

// parseKey parses a key in base64. Its error completes the sentence "the encryption key …".
func parseKey(text string) (key, error) {
	switch secret, err := base64.StdEncoding.DecodeString(text); {
	case text == "":
		return key{}, errors.New("is empty")
	case err != nil:
		return key{}, errors.New("is neither base64 (44 characters that end with =) nor file: and a path")
	case len(secret) != keySize:
		return key{}, fmt.Errorf("has %d bytes instead of %d", len(secret), keySize)
	default:
		return newKey(secret)
	}
}

// FileKeys returns the keys in a file. If the file does not exist, it is created atomically, with a new key and the
// mode 0600; concurrent processes create it once.
func FileKeys(path string) (*Keys, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = write(path, NewKey()+"\n", os.Link)
		if errors.Is(err, fs.ErrExist) { // another process has created the file
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create an encryption key: %w", err)
	}
	return ParseKeys(filePrefix + path)
}

// AddKey prepends a new key to the keys in a file. The other keys stay, for values that are not resealed yet.
func AddKey(path string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = write(path, NewKey()+"\n"+string(text), os.Rename) // replaces the file
	}
	if err != nil {
		return fmt.Errorf("add an encryption key: %w", err)
	}
	return nil
}

// write writes a temporary file, and moves it into place with os.Link or os.Rename.
func write(path, text string, place func(from, to string) error) error {
	return atomicfile.Write(path, filepath.Base(path)+".new-*", strings.NewReader(text), place)
}
