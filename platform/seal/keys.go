package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// Keys are the keys that values are opened with; the first, the current one, is
// what they are sealed with. Those in a file are read anew for each use, so that a
// running process follows a rotation; while it can't be read, they stay as they
// were. A nil Keys has no key. Keys are safe for concurrent use.
type Keys struct {
	list string

	mu   sync.Mutex
	last []key
}

// filePrefix begins the name of a file in place of a key.
const filePrefix = "file:"

// ParseKeys reads keys, separated by commas: each 32 bytes in base64, or
// file:PATH, a file of such, separated by commas or white space. Errors show
// nothing of a key.
func ParseKeys(list string) (*Keys, error) {
	ring, err := readKeys(list)
	if err != nil {
		return nil, err
	}
	return &Keys{list: list, last: ring}, nil
}

// Files are the paths of the files that a list, as ParseKeys takes it, names.
func Files(list string) (paths []string) {
	for entry := range strings.SplitSeq(list, ",") {
		if path, ok := strings.CutPrefix(strings.TrimSpace(entry), filePrefix); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// ring are the keys; there is at least one.
func (k *Keys) ring() ([]key, error) {
	if k == nil {
		return nil, ErrNoKey
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if strings.Contains(k.list, filePrefix) {
		if ring, err := readKeys(k.list); err == nil {
			k.last = ring
		}
	}
	return k.last, nil
}

func readKeys(list string) (ring []key, err error) {
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		texts, place := []string{entry}, ""
		if path, ok := strings.CutPrefix(entry, filePrefix); ok {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("read the encryption key: %w", err)
			}
			texts, place = splitKeys(string(text)), " in "+path
			if len(texts) == 0 {
				return nil, fmt.Errorf("there is no encryption key%s: partnerapi encryption-key makes one", place)
			}
		}
		for _, text := range texts {
			one, err := parseKey(text)
			if err != nil {
				return nil, fmt.Errorf("the encryption key%s %w: partnerapi encryption-key makes one", place, err)
			}
			ring = append(ring, one)
		}
	}
	return ring, nil
}

func splitKeys(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
}

func parseKey(text string) (key, error) {
	switch secret, err := base64.StdEncoding.DecodeString(text); {
	case text == "":
		return key{}, errors.New("is empty")
	case err != nil:
		return key{}, errors.New("is not base64 (44 characters that end with =), nor file: and a path")
	case len(secret) != keySize:
		return key{}, fmt.Errorf("has %d bytes instead of %d", len(secret), keySize)
	default:
		return newKey(secret)
	}
}
