package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/output"
	"partnerapi/cmd/internal/remote"
	"partnerapi/platform/seal"
)

// checkListen wants the addresses to be free, or a running serve at them.
func (e *examination) checkListen(ctx context.Context) finding {
	var taken []string
	for _, at := range []struct{ flag, address string }{{"--listen", e.Listen}, {"--metrics-listen", e.MetricsListen}} {
		if at.address == "" {
			continue
		}
		listener, err := config.Listen(at.flag, at.address)
		switch {
		case err == nil:
			defer listener.Close() // which serve holds while it takes the next
			taken = append(taken, at.address)
		case at.flag == "--listen" && errors.Is(err, syscall.EADDRINUSE) && serves(ctx, e.Listen):
			return pass("a service of this kind answers at %s", e.Listen)
		default:
			return fail("stop what listens there, or choose another address by "+at.flag, err)
		}
	}
	return pass("%s can be taken", strings.Join(taken, " and "))
}

// serves says whether serve or work answers at a listen address, ready or not.
func serves(ctx context.Context, listen string) bool {
	said, err := remote.Ready(ctx, cli.ReachedAt(listen))
	if err != nil {
		return strings.Contains(err.Error(), ": not ready")
	}
	return strings.HasPrefix(string(said), "ready")
}

// checkMetrics wants metrics, which name keys, to be seen by the operator only.
func (e *examination) checkMetrics(context.Context) finding {
	public, err := url.Parse(e.PublicURL)
	switch {
	case e.MetricsListen != "":
		return judgeMetrics(e.MetricsListen)
	case !cli.OnLoopback(e.Listen):
		return pass("off (--metrics-listen gives them an address)")
	case err == nil && public.Host != "" && !cli.OnLoopback(net.JoinHostPort(public.Hostname(), "80")):
		return warn("give --metrics-listen, or let the proxy refuse /metrics",
			"/metrics is at %s with the API: a proxy on this machine shows it to everybody", e.Listen)
	}
	return pass("/metrics is at %s with the API, for this machine only", e.Listen)
}

// judgeMetrics says who can read metrics that have an address of their own.
func judgeMetrics(listen string) finding {
	const mend = "let --metrics-listen be a loopback or private address, or close its port to others"
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fail("give --metrics-listen as host:port", err)
	}
	address, err := netip.ParseAddr(host)
	address = address.Unmap()
	switch {
	case host == "" || err == nil && address.IsUnspecified():
		return warn(mend,
			"/metrics is at %s, on every address of this machine: who reaches one reads what each key does", listen)
	case err == nil && !address.IsLoopback() && !address.IsPrivate() && !address.IsLinkLocalUnicast():
		return fail(mend, fmt.Errorf("/metrics is at %s, a public address: everybody reads what each key does", listen))
	}
	return pass("/metrics is at %s", listen)
}

// checkKeyFiles wants the files of encryption keys to be the service's own.
func (e *examination) checkKeyFiles(context.Context) finding {
	var places []place
	for _, file := range append(seal.Files(e.EncryptionKey), e.KeyFile()) {
		places = append(places, place{file, "use", 0o077})
	}
	found, looked := judgeModes("chmod 600 the file; if others had it, partnerapi encryption-key rotate", places...)
	if found.Status != passed {
		return found
	}
	return pass("%s, for their owner only", output.Counted(looked, "file", "files"))
}

// place is a file or a folder, and what nobody but its owner is to do with it.
type place struct {
	path, doing string
	forbidden   fs.FileMode
}

// judgeModes says which places are open to others, and how many there are at all. One that
// is not there is passed over.
func judgeModes(mend string, places ...place) (found finding, looked int) {
	var open []string
	status := passed
	for _, p := range places {
		about, err := os.Stat(p.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fail("let this user read it", err), looked
		}
		looked++
		switch mode := about.Mode().Perm(); {
		case mode&p.forbidden&0o007 != 0:
			status, open = failed, append(open, fmt.Sprintf("everybody on this machine may %s %s (mode %04o)", p.doing, p.path, mode))
		case mode&p.forbidden&0o070 != 0:
			if status == passed {
				status = warned
			}
			open = append(open, fmt.Sprintf("its group may %s %s (mode %04o)", p.doing, p.path, mode))
		}
	}
	if status == passed {
		return pass("closed to others"), looked
	}
	return finding{Status: status, Found: strings.Join(open, "; "), Mend: mend}, looked
}

// checkStore writes, reads and deletes a small object in the store of reports. It
// makes no folder.
func (e *examination) checkStore(ctx context.Context) finding {
	const mend = "correct --report-store and the credentials of this machine: reports need to write, read, list and delete"
	return bounded(ctx, mend, func() finding {
		dir, ofMachine := e.Folder(e.DataDir)
		if _, err := os.Stat(dir); ofMachine && errors.Is(err, fs.ErrNotExist) {
			if e.ReportStore == "" {
				return pass("serve makes %s", dir)
			}
			return warn("make or mount it, or correct --report-store",
				"%s does not exist: serve makes a new one, without the files of before", dir)
		}
		store, err := e.OpenStore(ctx, e.DataDir, slog.New(slog.DiscardHandler))
		if err != nil {
			return fail(mend, err)
		}
		if err := store.Check(ctx); err != nil {
			return fail(mend, err)
		}
		if e.ReportStore == "" {
			return pass("%s can be written, read and deleted in (several machines need a shared --report-store)", dir)
		}
		return pass("objects can be written, read and deleted")
	})
}
