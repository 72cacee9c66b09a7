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

// insideID is the uid of root in the user namespace of namespaced: any but 0.
const insideID = 1000

// namespaced returns the identity of root in a user namespace in which its uid is not 0. It still owns root's files, so
// it reaches a folder under /root, which no other user can. But it cannot bypass file modes.
func namespaced() []identity {
	ids := []syscall.SysProcIDMap{{ContainerID: insideID, HostID: 0, Size: 1}}
	return []identity{{name: "root in a user namespace", attr: &syscall.SysProcAttr{
		Setsid:      true,
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: ids,
		GidMappings: ids,
	}}}
}

// serves reports whether the process is a running server of the data directory, which is then its working directory. A
// zombie process has no working directory.
func serves(pid int, data string) bool {
	workDir, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if errors.Is(err, fs.ErrPermission) {
		return startedFor(pid, data)
	}
	if err != nil {
		return false
	}
	dataDir, err := os.Stat(data)
	return err == nil && os.SameFile(workDir, dataDir)
}

// startedFor reports whether the arguments of the process are those of a server of the data directory. Every user may
// read arguments, but root without CAP_SYS_PTRACE cannot read the working directory of another user's process. A server
// whose folder no longer exists counts too: the folder may have been renamed to data while the server ran.
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
