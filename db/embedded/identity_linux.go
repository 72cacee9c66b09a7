package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// insideID is root's number within the namespace of namespaced: any but 0.
const insideID = 1000

// namespaced is root in a user namespace that gives it an ordinary number. To
// the files it stays root, but without the right to pass over their modes; so
// it reaches a folder under /root, which no other user can.
func namespaced() []identity {
	ids := []syscall.SysProcIDMap{{ContainerID: insideID, HostID: 0, Size: 1}}
	return []identity{{name: "root in a user namespace", attr: &syscall.SysProcAttr{
		Setsid:      true,
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: ids,
		GidMappings: ids,
	}}}
}

// serves says whether the process is a live server of the data directory: a
// server's working directory is its data. A dead one that was not waited for
// has none.
func serves(pid int, data string) bool {
	works, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if errors.Is(err, fs.ErrPermission) {
		return startedFor(pid, data)
	}
	if err != nil {
		return false
	}
	own, err := os.Stat(data)
	return err == nil && os.SameFile(works, own)
}

// startedFor goes by the arguments of the process, which every user may read:
// root without the right to trace can't see the folder of another user's. A
// folder that is gone may have been moved to where data is, under a live
// server: that one counts.
func startedFor(pid int, data string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	args := strings.Split(string(line), "\x00")
	if len(args) < 3 || filepath.Base(args[0]) != "postgres" || args[1] != "-D" {
		return false
	}
	_, err = os.Stat(args[2])
	return args[2] == data || errors.Is(err, fs.ErrNotExist)
}
