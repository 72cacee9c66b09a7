//go:build !linux

package embedded

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// namespaced is Linux's only.
func namespaced() []identity { return nil }

// serves says whether the process is a live server of the data directory: its
// arguments name it. A dead one that was not waited for has none.
func serves(pid int, data string) bool {
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres -D "+filepath.Clean(data))
}
