package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// needRoot skips where the test runs as an ordinary user, who needs none of
// this.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as somebody else")
	}
}

func TestAsRootWithoutAnybodyWhoCan(t *testing.T) {
	needRoot(t)
	dir := filepath.Join(t.TempDir(), "data")
	_, err := chooseIdentity(binaries{dir: t.TempDir()}, dir)
	if err == nil || !strings.Contains(err.Error(), "refuses to run as root") || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v", err)
	}
}
