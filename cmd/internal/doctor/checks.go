package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/cmd/internal/telemetry"
	"partnerapi/db/doctor"
	"partnerapi/domain"
	"partnerapi/platform/mail"
)

// checkFlags parses the flags as serve does at its start.
func (e *examination) checkFlags(ctx context.Context) finding {
	const remedy = "correct the flag, or the variable PARTNERAPI_ with its name"
	if err := errors.Join(e.Check(), telemetry.Check()); err != nil {
		return fail(remedy, err)
	}
	return withinContext(ctx, remedy, func() finding { // it reads the font of reports
		if _, err := e.Renderer(); err != nil {
			return fail(remedy, err)
		}
		return pass("they can be used")
	})
}

// checkWebhooks warns if events may be delivered to this machine's own network.
func (e *examination) checkWebhooks(context.Context) finding {
	if e.WebhookAllowPrivate {
		return warn("take --webhook-allow-private away", "deliveries reach private and local addresses too")
	}
	return pass("public addresses only")
}

// checkRedis connects, and makes a write as budgets do.
func (e *examination) checkRedis(ctx context.Context) finding {
	if e.RedisURL == "" {
		return pass("none: each process counts budgets for itself (several processes that serve need one)")
	}
	at, writeErr, err := e.redis(ctx, e.RedisURL)
	switch {
	case err != nil:
		return fail("start Redis, or correct --redis-url: serve does not start without it", err)
	case writeErr != nil:
		return fail("give the primary by --redis-url, with room for keys (maxmemory), and a user who may run scripts (EVAL, EVALSHA) "+
			"on the keys partnerapi/*; meanwhile each process counts budgets for itself",
			fmt.Errorf("it cannot be written at %s: %w", at, writeErr))
	}
	return pass("answers at %s, and takes writes by scripts", at)
}

// checkMail connects to the mail server without sending. Without a server, it warns unless the database is embedded.
func (e *examination) checkMail(ctx context.Context) finding {
	switch {
	case e.SMTPURL == "" && e.DatabaseURL == "":
		return pass("no mail server: mails become files in %s", filepath.Join(e.DataDir, "outbox"))
	case e.SMTPURL == "":
		return warn("give --smtp-url", "no mail server: mails become files in %s", filepath.Join(e.DataDir, "outbox"))
	}
	sender, err := mail.NewSMTP(e.SMTPURL)
	if err != nil {
		return fail("correct --smtp-url", err)
	}
	defer sender.Close()
	how, err := sender.Check(ctx)
	if err != nil {
		return fail("correct --smtp-url: host, port, user, password, starttls, ca", err)
	}
	return pass("the server takes mail (%s); nothing was sent", how)
}

// checkPublicURL checks that callers and readers of mail can reach the public address, by default that of --listen, and
// that it is encrypted. One that only this machine can reach is a failure if mail is sent, and a warning if serve
// listens on other addresses too.
func (e *examination) checkPublicURL(context.Context) finding {
	const remedy = "set --public-url to the https address that callers and readers of mail use"
	address := cmp.Or(e.PublicURL, cli.ListenURL(e.Listen))
	u, err := url.Parse(address)
	if err != nil {
		return fail(remedy, errors.New("it is no URL"))
	}
	isLocal := cli.OnLoopback(net.JoinHostPort(u.Hostname(), "80")) // any port will do
	switch {
	case isLocal && e.SMTPURL != "":
		return fail(remedy, fmt.Errorf("links in mail lead to %s, which only this machine can reach", u.Redacted()))
	case isLocal && e.PublicURL == "" && !cli.OnLoopback(e.Listen): // on all addresses, for which the URL is localhost
		return warn(remedy, "none, and other machines can reach %s: links lead to %s, which they cannot",
			e.Listen, u.Redacted())
	case isLocal:
		return pass("%s, for this machine only", u.Redacted())
	case u.Scheme != "https":
		return warn(remedy, "%s is not encrypted: keys and links can be read on their way", u.Redacted())
	}
	return pass("%s", u.Redacted())
}

// checkProxies warns if a proxy seems to be missing among the trusted proxies, or if they trust every address. Trusted
// proxies report the addresses of callers, on which limits and the networks of keys depend.
func (e *examination) checkProxies(context.Context) finding {
	u, err := url.Parse(e.PublicURL)
	switch {
	case len(e.TrustedProxies) == 0 && err == nil && u.Scheme == "https":
		return warn("name the proxy that ends TLS by --trusted-proxies",
			"none, behind an https address: all callers seem to have the proxy's address")
	case len(e.TrustedProxies) == 0:
		return pass("none: callers have the address that they connect from")
	}
	networks, err := domain.ParseNetworks(e.TrustedProxies)
	if err != nil {
		return fail("give networks as 10.0.0.0/8 by --trusted-proxies", err)
	}
	for _, n := range networks {
		if n.Bits() == 0 {
			return warn("name the proxies' own networks by --trusted-proxies",
				"%s trusts everybody: callers choose the address that they seem to have", n)
		}
	}
	return pass("%v", e.TrustedProxies)
}

// checkDataDir checks that this user can write to the data directory, that others can neither write to it nor read its
// mails and reports, and that the disk has free space. It warns if the directory does not exist.
func (e *examination) checkDataDir(ctx context.Context) finding {
	const remedy = "let this user write to it, or name another by --data-dir"
	return withinContext(ctx, remedy, func() finding {
		if _, err := os.Stat(e.DataDir); errors.Is(err, fs.ErrNotExist) {
			if err := checkMakeable(e.DataDir); err != nil {
				return fail(remedy, err)
			}
			return warn("see that this user may make it, or name another by --data-dir",
				"%s is not there: serve makes it", e.DataDir)
		}
		if err := checkWritable(e.DataDir); err != nil {
			return fail(remedy, err)
		}
		modes, _ := assessModes("chmod go-w the data directory, and chmod 700 the folders of mails and reports in it",
			fileRule{e.DataDir, "write to", 0o022}, fileRule{filepath.Join(e.DataDir, "outbox"), "use", 0o077},
			fileRule{filepath.Join(e.DataDir, "reports"), "use", 0o077}) // how many of them exist is not shown
		if modes.Status != passed {
			return modes
		}
		free, err := doctor.FreeBytes(e.DataDir)
		if err != nil {
			return fail(remedy, err)
		}
		return assessDisk(e.DataDir, free)
	})
}

// assessDisk warns if a directory's disk has little free space, and fails if the disk is nearly full.
func assessDisk(dir string, free uint64) finding {
	const remedy = "make space: the embedded database, mails in files and reports are kept there"
	found := fmt.Sprintf("%s has %d MiB left", dir, free>>20)
	return grade(remedy, found, free < doctor.DiskFail, free < doctor.DiskWarn)
}

// checkTemporary checks that reports can write temporary files.
func (e *examination) checkTemporary(ctx context.Context) finding {
	const remedy = "let this user write there, or name another place by TMPDIR: reports need it"
	return withinContext(ctx, remedy, func() finding {
		if err := checkWritable(os.TempDir()); err != nil {
			return fail(remedy, err)
		}
		return pass("%s can be written", os.TempDir())
	})
}

// checkWritable returns an error unless files can be created in a directory, and deleted.
func checkWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// checkMakeable returns an error unless this user can make a directory that does not exist: the nearest directory above
// it that exists must be writable.
func checkMakeable(dir string) error {
	above := filepath.Dir(dir)
	if _, err := os.Stat(above); errors.Is(err, fs.ErrNotExist) && above != dir {
		return checkMakeable(above)
	}
	if err := checkWritable(above); err != nil {
		return fmt.Errorf("serve cannot make %s: %w", dir, err)
	}
	return nil
}

// checkDemo warns of the published demonstration keys if the database is not the embedded one, or if other machines can
// reach the service.
func (e *examination) checkDemo(context.Context) finding {
	switch {
	case !e.Demo:
		return pass("off")
	case e.DatabaseURL != "":
		return warn("take --demo away", "on, with a database of your own: keys that everybody knows are accepted")
	case !cli.OnLoopback(e.Listen):
		return warn("take --demo away, or listen on 127.0.0.1", "on, and other machines can use keys that everybody knows")
	}
	return pass("on, for this machine only")
}

// checkDemoData warns if the database has the demonstration without --demo: serve then shows its invented clients and
// refuses its keys. Otherwise its finding has no status.
func (e *examination) checkDemoData(ctx context.Context) finding {
	if e.Demo {
		return finding{}
	}
	filled, err := doctor.HasDemo(ctx, e.db)
	switch {
	case err != nil:
		return fail(readTables, err)
	case filled:
		return warn("give --demo, or for real clients an empty database: another --data-dir or --database-url",
			"--demo filled this database: its clients are invented, and without --demo its keys are refused")
	}
	return finding{}
}

// checkEnvironment warns of variables that look like this program's but that it does not read. It shows no value.
func (e *examination) checkEnvironment(context.Context) finding {
	unknown, err := UnknownVariables(e.program)
	if err != nil {
		return fail("report this as a defect", err)
	}
	if len(unknown) > 0 {
		return warn("correct the name, or take the variable away: it has no effect", "no command reads %s",
			strings.Join(unknown, ", "))
	}
	return pass("all variables PARTNERAPI_… are read")
}

// UnknownVariables returns, sorted, the names of the variables of this process that look like the program's but that no
// command reads, each with a similar known name, if there is one.
func UnknownVariables(program *kong.Application) ([]string, error) {
	known, err := EnvironmentVariables(program)
	return unknownVariables(os.Environ(), known), err
}

// EnvironmentVariables returns the names of the variables that the program's commands read.
func EnvironmentVariables(program *kong.Application) (map[string]bool, error) {
	names := map[string]bool{}
	err := kong.Visit(program, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			for _, name := range flag.Envs {
				names[name] = true
			}
		}
		return next(nil)
	})
	return names, err
}

// kubernetesVariable matches the variables that Kubernetes sets for a service named partnerapi.
var kubernetesVariable = regexp.MustCompile(
	`_SERVICE_(HOST|PORT\w*)=|_PORT(_\d+_(TCP|UDP)\w*)?=(tcp|udp)://|_PORT_\d+_(TCP|UDP)_\w+=`)

// unknownVariables returns, sorted, the names of settings NAME=value that begin like this program's variables, whatever
// their case and punctuation, but that are not known. Each is followed by a similar known name, if there is one.
// Variables that Kubernetes sets are left out.
func unknownVariables(settings []string, known map[string]bool) (unknown []string) {
	names := slices.Sorted(maps.Keys(known))
	for _, setting := range settings {
		name, _, _ := strings.Cut(setting, "=")
		plain := strings.ToUpper(strings.ReplaceAll(strings.ReplaceAll(name, "_", ""), "-", ""))
		rest, isOurs := strings.CutPrefix(plain, "PARTNERAPI")
		if !isOurs || rest == "" || known[name] || kubernetesVariable.MatchString(setting) {
			continue
		}
		maxEdits := max(2, (len(name)-len("PARTNERAPI_"))/3) // a third of what follows the prefix
		if likely := output.Nearest(strings.ToUpper(name), names, maxEdits); likely != "" {
			name += " (" + likely + "?)"
		}
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	return unknown
}
