//go:build !linux

package embedded

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// namespaced returns nil: only Linux has user namespaces.
func namespaced() []identity { return nil }

// serves reports whether the process is a running server of the data directory, which its arguments name. A zombie
// process has no arguments.
func serves(pid int, data string) bool {
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres -D "+filepath.Clean(data))
}
