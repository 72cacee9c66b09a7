package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// identity is the operating system user that runs the server. PostgreSQL refuses to run as root.
type identity struct {
	name string
	// uid and gid own the server's files.
	uid, gid int
	// attr starts a child process as the user, in its own session, so that neither Ctrl-C nor the end of this
	// process ends the server.
	attr *syscall.SysProcAttr
}

// chooseIdentity returns the user of this process or, if that is root, the first of rootIdentities that can run the
// binaries and reach the folder dir.
func chooseIdentity(bin binaries, dir string) (identity, error) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid != 0 {
		return identity{uid: uid, gid: gid, attr: &syscall.SysProcAttr{Setsid: true}}, nil
	}
	var failed []string
	for _, owner := range rootIdentities(dir) {
		cmd := exec.Command(bin.path("postgres"), "-V")
		cmd.Dir = filepath.Dir(dir) // not dir, which adopt gives to the user later
		cmd.SysProcAttr = owner.attr
		err := cmd.Run()
		if err == nil {
			return owner, nil
		}
		failed = append(failed, fmt.Sprintf("%s: %v", owner.name, err))
	}
	return identity{}, fmt.Errorf("PostgreSQL refuses to run as root, and no other user can both run %s and access %s "+
		"(perhaps a parent folder has mode 0700); use another data directory, or start as an ordinary user. Tried %s",
		bin.path("postgres"), dir, strings.Join(failed, "; "))
}

// rootIdentities returns the users as which root can start the server, the preferred first: the owner of the data,
// unless it is root; root in a user namespace (namespaced); the users postgres and nobody; the owner of the folder
// above, unless it is root.
func rootIdentities(dir string) []identity {
	var all []identity
	if uid, gid, err := fileOwner(filepath.Join(dir, "pgdata")); err == nil && uid != 0 {
		all = append(all, ordinaryIdentity("the data's owner", uid, gid))
	}
	all = append(all, namespaced()...)
	for _, name := range []string{"postgres", "nobody"} {
		if uid, gid, err := lookup(name); err == nil {
			all = append(all, ordinaryIdentity(name, uid, gid))
		}
	}
	if uid, gid, err := fileOwner(filepath.Dir(dir)); err == nil && uid != 0 {
		all = append(all, ordinaryIdentity("the owner of the parent folder", uid, gid))
	}
	return all
}

// ordinaryIdentity returns the identity of a user other than root.
func ordinaryIdentity(name string, uid, gid int) identity {
	return identity{name: name, uid: uid, gid: gid, attr: &syscall.SysProcAttr{
		Setsid:     true,
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
	}}
}

func lookup(name string) (uid, gid int, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, err
	}
	uid, err = strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return uid, gid, errors.Join(err, err2)
}

func fileOwner(path string) (uid, gid int, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fmt.Errorf("%s: its owner can't be read", path)
	}
	return int(stat.Uid), int(stat.Gid), nil
}

// adopt makes the identity the owner of the folder and all files below, if this process runs as root.
func (owner identity) adopt(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		uid, _, err := fileOwner(path)
		if err != nil {
			return err
		}
		if uid == owner.uid {
			return nil
		}
		return os.Lchown(path, owner.uid, owner.gid)
	})
}
