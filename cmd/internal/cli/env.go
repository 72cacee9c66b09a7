// Package cli has what every command runs with.
package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"

	"partnerapi/db"
	"partnerapi/db/migrate"
)

// Env is the environment of a command: its streams, the program's version, and the tables of its extensions.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Version  string
	Tables   []Tables
}

// Tables are the tables of a part of the program.
type Tables struct {
	Name string
	// Version returns their version, 0 if there are none, and the version that is needed.
	Version func(context.Context, *db.DB) (have, want int64, err error)
	// Migrate brings them up to date.
	Migrate func(context.Context, *db.DB) error
	// Steps returns their migrations.
	Steps func(context.Context, *db.DB) ([]migrate.Step, error)
}

// DefaultListen is where the service listens by default.
const DefaultListen = "127.0.0.1:8080"

// ReachedAt returns the URL of a listen address, with localhost for an unspecified host.
func ReachedAt(listen string) string {
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

// RelaxGC makes the process collect garbage half as often as usual, which costs a heap of some 10 MB little memory,
// until it holds 160 MB: reports use up to 150. GOGC and GOMEMLIMIT override it.
func RelaxGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(160 << 20)
	}
}
