// Package cli has the environment of commands, and types of their flags.
package cli

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"

	"partnerapi/db/doctor"
)

// Env is the environment of a command: its streams, the program's version, and the tables of its extensions.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Version  string
	Tables   []doctor.Tables
}

// DefaultListen is where the service listens by default.
const DefaultListen = "127.0.0.1:8080"

// ListenURL returns the URL of a listen address, with localhost for an unspecified host.
func ListenURL(listen string) string {
	if a, err := netip.ParseAddrPort(listen); err == nil && a.Addr().IsUnspecified() {
		listen = net.JoinHostPort("localhost", fmt.Sprint(a.Port()))
	}
	return "http://" + listen
}

// OnLoopback reports whether a listen address accepts only connections from this machine.
func OnLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// RelaxGC makes the process collect garbage half as often as by default, which costs little memory, as the heap is some
// 10 MB. From 160 MB on, garbage is collected more often: reports use up to 150 MB. GOGC and GOMEMLIMIT override it.
func RelaxGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(160 << 20)
	}
}
