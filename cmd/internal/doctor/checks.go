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
	const remedy = "correct the flag or its PARTNERAPI_ variable"
	if err := errors.Join(e.Check(), telemetry.Check()); err != nil {
		return fail(remedy, err)
	}
	return withinContext(ctx, remedy, func() finding { // it reads the font of reports
		if _, err := e.Renderer(); err != nil {
			return fail(remedy, err)
		}
		return pass("valid")
	})
}

// checkWebhooks warns if events may be delivered to this machine's own network.
func (e *examination) checkWebhooks(context.Context) finding {
	if e.WebhookAllowPrivate {
		return warn("remove --webhook-allow-private", "events are also delivered to private and local addresses")
	}
	return pass("public addresses only")
}

// checkRedis connects, and makes a write as budgets do.
func (e *examination) checkRedis(ctx context.Context) finding {
	if e.RedisURL == "" {
		return pass("none: each process counts request budgets separately (several serve processes need Redis)")
	}
	at, writeErr, err := e.redis(ctx, e.RedisURL)
	switch {
	case err != nil:
		return fail("start Redis or correct --redis-url; serve does not start without it", err)
	case writeErr != nil:
		return fail("set --redis-url to the primary; Redis needs free memory (maxmemory), and the user must be allowed to run scripts "+
			"(EVAL, EVALSHA) on the keys partnerapi/*. Until then, each process counts request budgets separately",
			fmt.Errorf("cannot write to Redis at %s: %w", at, writeErr))
	}
	return pass("accepts writes by scripts at %s", at)
}

// checkMail connects to the mail server without sending. Without a server, it warns unless the database is embedded.
func (e *examination) checkMail(ctx context.Context) finding {
	switch {
	case e.SMTPURL == "" && e.DatabaseURL == "":
		return pass("no mail server: emails are written to files in %s", filepath.Join(e.DataDir, "outbox"))
	case e.SMTPURL == "":
		return warn("set --smtp-url", "no mail server: emails are written to files in %s", filepath.Join(e.DataDir, "outbox"))
	}
	sender, err := mail.NewSMTP(e.SMTPURL)
	if err != nil {
		return fail("correct --smtp-url", err)
	}
	defer sender.Close()
	how, err := sender.Check(ctx)
	if err != nil {
		return fail("correct --smtp-url: its host, port, user, password, starttls or ca", err)
	}
	return pass("the mail server accepts emails (%s); nothing was sent", how)
}

// checkPublicURL checks that callers and readers of email can reach the public address, by default that of --listen,
// and that it is encrypted. One that only this machine can reach is a failure if email is sent, and a warning if serve
// listens on other addresses too.
func (e *examination) checkPublicURL(context.Context) finding {
	const remedy = "set --public-url to the https URL that callers and email recipients use"
	address := cmp.Or(e.PublicURL, cli.ListenURL(e.Listen))
	u, err := url.Parse(address)
	if err != nil {
		return fail(remedy, errors.New("not a URL"))
	}
	isLocal := cli.OnLoopback(net.JoinHostPort(u.Hostname(), "80")) // any port will do
	switch {
	case isLocal && e.SMTPURL != "":
		return fail(remedy, fmt.Errorf("links in emails lead to %s, which only this machine can access", u.Redacted()))
	case isLocal && e.PublicURL == "" && !cli.OnLoopback(e.Listen): // on all addresses, for which the URL is localhost
		return warn(remedy, "none: other machines can access %s, but links lead to %s, which they cannot access",
			e.Listen, u.Redacted())
	case isLocal:
		return pass("%s, for this machine only", u.Redacted())
	case u.Scheme != "https":
		return warn(remedy, "%s is not encrypted, so keys and links can be read in transit", u.Redacted())
	}
	return pass("%s", u.Redacted())
}

// checkProxies warns if a proxy seems to be missing among the trusted proxies, or if they trust every address. Trusted
// proxies report the addresses of callers, on which limits and the networks of keys depend.
func (e *examination) checkProxies(context.Context) finding {
	u, err := url.Parse(e.PublicURL)
	switch {
	case len(e.TrustedProxies) == 0 && err == nil && u.Scheme == "https":
		return warn("set --trusted-proxies to the address of the proxy that terminates TLS",
			"none, but the public URL is https: all callers appear with the proxy's IP address")
	case len(e.TrustedProxies) == 0:
		return pass("none: callers appear with the IP address that they connect from")
	}
	networks, err := domain.ParseNetworks(e.TrustedProxies)
	if err != nil {
		return fail("set --trusted-proxies to networks such as 10.0.0.0/8", err)
	}
	for _, n := range networks {
		if n.Bits() == 0 {
			return warn("set --trusted-proxies to the proxies' own networks",
				"%s contains every address: any caller can spoof its IP address", n)
		}
	}
	return pass("%v", e.TrustedProxies)
}

// checkDataDir checks that this user can write to the data directory, that others can neither write to it nor read its
// emails and reports, and that the disk has free space. It warns if the directory does not exist.
func (e *examination) checkDataDir(ctx context.Context) finding {
	const remedy = "allow this user to write to it, or set --data-dir to another folder"
	return withinContext(ctx, remedy, func() finding {
		if _, err := os.Stat(e.DataDir); errors.Is(err, fs.ErrNotExist) {
			if err := checkMakeable(e.DataDir); err != nil {
				return fail(remedy, err)
			}
			return warn("make sure this user may create it, or set --data-dir to another folder",
				"%s does not exist; serve creates it", e.DataDir)
		}
		if err := checkWritable(e.DataDir); err != nil {
			return fail(remedy, err)
		}
		modes, _ := assessModes("run chmod go-w on the data directory and chmod 700 on its folders outbox and reports",
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
	const remedy = "free some space: the embedded database, emails in files and reports are stored there"
	found := fmt.Sprintf("%s has %d MiB left", dir, free>>20)
	return grade(remedy, found, free < doctor.DiskFail, free < doctor.DiskWarn)
}

// checkTemporary checks that reports can write temporary files.
func (e *examination) checkTemporary(ctx context.Context) finding {
	const remedy = "allow this user to write there, or set TMPDIR to another folder; reports need it"
	return withinContext(ctx, remedy, func() finding {
		if err := checkWritable(os.TempDir()); err != nil {
			return fail(remedy, err)
		}
		return pass("%s is writable", os.TempDir())
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
		return fmt.Errorf("serve cannot create %s: %w", dir, err)
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
		return warn("remove --demo", "on, with your own database: publicly known API keys are accepted")
	case !cli.OnLoopback(e.Listen):
		return warn("remove --demo or listen on 127.0.0.1", "on: other machines can use publicly known API keys")
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
		return warn("start with --demo or, for real clients, use an empty database: another --data-dir or --database-url",
			"--demo filled this database: its clients are invented, and without --demo its API keys are rejected")
	}
	return finding{}
}

// checkEnvironment warns of variables that look like this program's but that it does not read. It shows no value.
func (e *examination) checkEnvironment(context.Context) finding {
	unknown, err := UnknownVariables(e.program)
	if err != nil {
		return fail("report this as a bug", err)
	}
	if len(unknown) > 0 {
		return warn("correct its name or remove it; it has no effect", "no command reads %s",
			strings.Join(unknown, ", "))
	}
	return pass("all PARTNERAPI_… variables are known")
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
// Variables that Kubernetes sets are omitted.
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
