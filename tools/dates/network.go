//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// cutOff gives this process's namespaces a loopback device and a resolver that never
// answers, until it is closed.
func cutOff(dir string) (resolver io.Closer, err error) {
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("ip link set lo up: %w: %s", err, out)
	}
	file := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 127.0.0.1\n"), 0o644); err != nil {
		return nil, err
	}
	const private = syscall.MS_REC | syscall.MS_PRIVATE // no mount is seen outside
	for _, mount := range []func() error{
		func() error { return syscall.Mount("none", "/", "", private, "") },
		func() error { return syscall.Mount(file, "/etc/resolv.conf", "", syscall.MS_BIND, "") },
	} {
		if err := mount(); err != nil {
			return nil, fmt.Errorf("mount: %w", err)
		}
	}
	return net.ListenPacket("udp", "127.0.0.1:53")
}
