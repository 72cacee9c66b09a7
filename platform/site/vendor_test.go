package site_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestVendored: the scripts of others, and their licences, are those that renew.sh wrote.
func TestVendored(t *testing.T) {
	t.Parallel()
	const dir = "assets/vendor"
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var are []string
	for _, file := range files {
		if slices.Contains([]string{"SHA256SUMS", "renew.sh"}, file.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		are = append(are, fmt.Sprintf("%x  %s", sha256.Sum256(text), file.Name()))
	}
	recorded := strings.Split(strings.TrimSpace(string(sums)), "\n")
	slices.Sort(are)
	slices.Sort(recorded)
	if !slices.Equal(are, recorded) {
		t.Errorf("the files are\n%s\nand SHA256SUMS says\n%s", strings.Join(are, "\n"), strings.Join(recorded, "\n"))
	}
}
