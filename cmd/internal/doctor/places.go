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

// checkListen checks that the process can listen on the addresses, or that a service already answers at --listen.
func (e *examination) checkListen(ctx context.Context) finding {
	var addresses []string
	for _, at := range []struct{ flag, address string }{{"--listen", e.Listen}, {"--metrics-listen", e.MetricsListen}} {
		if at.address == "" {
			continue
		}
		listener, err := config.Listen(at.flag, at.address)
		switch {
		case err == nil:
			defer listener.Close() // held while the next is tried, as serve does
			addresses = append(addresses, at.address)
		case at.flag == "--listen" && errors.Is(err, syscall.EADDRINUSE) && isServing(ctx, e.Listen):
			return pass("partnerapi already listens at %s", e.Listen)
		default:
			return fail("stop the program that listens there, or choose another address with "+at.flag, err)
		}
	}
	return pass("%s available", strings.Join(addresses, " and "))
}

// isServing reports whether serve or work answers at a listen address, even if it is not ready.
func isServing(ctx context.Context, listen string) bool {
	answer, err := remote.CheckReady(ctx, cli.ListenURL(listen))
	if err != nil {
		return strings.Contains(err.Error(), ": not ready") // the text of its response 503
	}
	return strings.HasPrefix(string(answer), "ready")
}

// checkMetrics checks that only the operator can read metrics, which name keys.
func (e *examination) checkMetrics(context.Context) finding {
	public, err := url.Parse(e.PublicURL)
	switch {
	case e.MetricsListen != "":
		return assessMetrics(e.MetricsListen)
	case !cli.OnLoopback(e.Listen):
		return pass("off (to serve metrics, set --metrics-listen)")
	case err == nil && public.Host != "" && !cli.OnLoopback(net.JoinHostPort(public.Hostname(), "80")): // any port will do
		return warn("set --metrics-listen, or make the proxy reject /metrics",
			"/metrics is served on %s with the API, so a proxy on this machine may expose it to everyone", e.Listen)
	}
	return pass("/metrics is served on %s with the API, for this machine only", e.Listen)
}

// assessMetrics warns if metrics are served at every address of this machine, and fails if they are at a public
// address.
func assessMetrics(listen string) finding {
	const remedy = "set --metrics-listen to a loopback or private address, or block access to its port"
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fail("set --metrics-listen to host:port", err)
	}
	address, err := netip.ParseAddr(host)
	address = address.Unmap()
	switch {
	case host == "" || err == nil && address.IsUnspecified():
		return warn(remedy,
			"/metrics is served on %s, on every address of this machine: anyone with access to one can read how each key is used", listen)
	case err == nil && !address.IsLoopback() && !address.IsPrivate() && !address.IsLinkLocalUnicast():
		return fail(remedy, fmt.Errorf("/metrics is served on %s, a public address: everyone can read how each key is used", listen))
	}
	return pass("/metrics is served on %s", listen) // also at a host name, which is not resolved
}

// checkKeyFiles checks that only the service can read the key files.
func (e *examination) checkKeyFiles(context.Context) finding {
	var places []fileRule
	for _, file := range append(seal.Files(e.EncryptionKey), e.KeyFile()) {
		places = append(places, fileRule{file, "use", 0o077})
	}
	found, count := assessModes("run chmod 600 on the file; if others had access, also run partnerapi encryption-key rotate", places...)
	if found.Status != passed {
		return found
	}
	return pass("%s, accessible only to the owner", output.Plural(count, "file", "files"))
}

// fileRule is a file or folder, and the access that only its owner may have.
type fileRule struct {
	path, access string
	forbidden    fs.FileMode
}

// assessModes reports the places that others than the owner can access: it fails if everyone can access one, otherwise
// warns if its group can. It skips places that do not exist, and count is the number of the others. It fails if a place
// cannot be examined.
func assessModes(remedy string, places ...fileRule) (found finding, count int) {
	var faults []string
	status := passed
	for _, p := range places {
		about, err := os.Stat(p.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fail("give this user access to the folders that contain the path", err), count
		}
		count++
		switch mode := about.Mode().Perm(); {
		case mode&p.forbidden&0o007 != 0:
			status, faults = failed, append(faults, fmt.Sprintf("everyone on this machine can %s %s (mode %04o)", p.access, p.path, mode))
		case mode&p.forbidden&0o070 != 0:
			if status == passed {
				status = warned
			}
			faults = append(faults, fmt.Sprintf("group members can %s %s (mode %04o)", p.access, p.path, mode))
		}
	}
	if status == passed {
		return pass("closed to others"), count
	}
	return finding{Status: status, Found: strings.Join(faults, "; "), Remedy: remedy}, count
}

// checkStore writes, reads and deletes a small object in the store of reports. If the store is a folder that does not
// exist, it does not create it.
func (e *examination) checkStore(ctx context.Context) finding {
	const remedy = "correct --report-store or this machine's credentials; reports need to write, read, list and delete"
	return withinContext(ctx, remedy, func() finding {
		dir, isLocal := e.Folder(e.DataDir)
		if _, err := os.Stat(dir); isLocal && errors.Is(err, fs.ErrNotExist) {
			if err := checkMakeable(dir); err != nil {
				return fail("allow this user to write there, or set --data-dir or --report-store to another location", err)
			}
			if e.ReportStore == "" {
				return pass("serve creates %s", dir)
			}
			return warn("create or mount it, or correct --report-store",
				"%s does not exist: serve creates a new one, without any earlier files", dir)
		}
		store, err := e.OpenStore(ctx, e.DataDir, slog.New(slog.DiscardHandler))
		if err != nil {
			return fail(remedy, err)
		}
		if err := store.Check(ctx); err != nil {
			return fail(remedy, err)
		}
		if e.ReportStore == "" {
			return pass("files in %s can be written, read and deleted (several machines need a shared --report-store)", dir)
		}
		return pass("objects can be written, read and deleted")
	})
}
