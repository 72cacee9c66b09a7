// Command release builds the files of a version of the program: archives, packages for
// Debian and Red Hat, an image, a list of their parts (SBOM), and checksums. The same
// commit results in the same bytes in any folder. The command is a separate module, so
// that the program's module has none of its dependencies.
//
//	release -version v1.0.0    write dist/
//	release -licenses          only check the licenses of the program's dependencies
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/semver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is a version to build.
type release struct {
	source
	version  string // as v1.0.0
	targets  []target
	profiled bool   // compiled with the profile
	out      string // the folder that is written
	progress io.Writer

	conffile bool // settings are a conffile in all packages, as in those of 1.0: for tests

	parts    []part
	binaries map[target][]byte
}

// run runs a command line.
func run(ctx context.Context, args []string, progress io.Writer) error {
	r := release{targets: allTargets, progress: progress, binaries: map[target][]byte{}}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.version, "version", "", "the `version`: SemVer with a v before it, as v1.0.0")
	root := flags.String("source", ".", "the `folder` of the sources")
	flags.StringVar(&r.out, "out", "dist", "the `folder` that is written: a new or an empty one")
	dirty := flags.Bool("dirty", false, "take the sources with changes that are not committed, to try this tool")
	flags.BoolVar(&r.profiled, "pgo", true, "optimize for the CPU profile "+profile+"; all packages are compiled anew for it")
	onlyLicenses := flags.Bool("licenses", false, "check the licenses of what the program is built from, and write nothing")
	flags.Func("targets", "make only these `targets`, as linux/amd64,darwin/arm64", func(text string) (err error) {
		r.targets, err = parseTargets(text)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	if *onlyLicenses {
		r.root = *root
		return r.checkLicenses(ctx)
	}
	if err := r.prepare(ctx, *root, *dirty); err != nil {
		return err
	}
	return r.make(ctx)
}

// prepare refuses a version, sources or a folder from which no release can be made.
func (r *release) prepare(ctx context.Context, root string, dirty bool) (err error) {
	if semver.Canonical(r.version) != r.version || r.version == "" {
		return fmt.Errorf("VERSION must be a version of SemVer with a v before it, as v1.0.0 or v1.1.0-rc.1; it is %q", r.version)
	}
	if r.source, err = openSource(ctx, root); err != nil {
		return err
	}
	if r.dirty && !dirty {
		return errors.New("there are changes that are not committed (git status): commit them; -dirty takes them along, for a try")
	}
	if tagged, err := r.git(ctx, "rev-parse", "--quiet", "--verify", "refs/tags/"+r.version+"^{commit}"); err == nil &&
		tagged != r.commit && !dirty {
		return fmt.Errorf("the tag %s is of the commit %.12s, and the sources are of %.12s: check the tag out", r.version, tagged, r.commit)
	}
	if err := r.named(root); err != nil && semver.Prerelease(r.version) == "" {
		return err
	}
	old, err := os.ReadDir(r.out)
	if err == nil && len(old) > 0 {
		return fmt.Errorf("%s has files already: remove it, or name another folder by -out", r.out)
	}
	return os.MkdirAll(r.out, 0o755)
}

// named returns an error unless the chart and the changelog name the version.
func (r *release) named(root string) error {
	for file, text := range map[string]string{
		"deploy/helm/Chart.yaml": "\nappVersion: " + r.version + "\n", "CHANGELOG.md": "\n## [" + strings.TrimPrefix(r.version, "v") + "]",
	} {
		if read, err := os.ReadFile(filepath.Join(root, file)); err != nil || !strings.Contains(string(read), text) {
			return errors.Join(err, fmt.Errorf("%s does not have %q", file, strings.TrimSpace(text)))
		}
	}
	return nil
}

// make makes all artifacts.
func (r *release) make(ctx context.Context) (err error) {
	begin := time.Now()
	fmt.Fprintf(r.progress, "%s of the commit %.12s, %s\n", r.version, r.commit, r.time.Format(time.RFC3339))
	if r.parts, err = r.readParts(ctx); err != nil {
		return err
	}
	if err := assess(r.parts); err != nil {
		return err
	}
	for _, t := range r.targets {
		fmt.Fprintf(r.progress, "compile for %s\n", t)
		if r.binaries[t], err = r.compile(ctx, t); err != nil {
			return err
		}
	}
	for _, t := range r.targets {
		if err := r.makeOf(t); err != nil {
			return err
		}
	}
	if err := r.write(r.name("oci.tar"), r.writeImage); err != nil {
		return err
	}
	if err := r.write(r.name("sbom.cdx.json"), r.writeSBOM); err != nil {
		return err
	}
	if err := r.write("SHA256SUMS", r.writeSums); err != nil {
		return err
	}
	fmt.Fprintf(r.progress, "the whole took %s\n", time.Since(begin).Round(time.Second))
	return nil
}

// makeOf makes the artifacts of one target.
func (r *release) makeOf(t target) error {
	if err := r.write(r.name(t.os+"_"+t.arch+".tar.gz"), func(w io.Writer) error { return r.writeArchive(w, t) }); err != nil {
		return err
	}
	if t.os != "linux" {
		return nil
	}
	for _, format := range []string{"deb", "rpm"} {
		write := func(w io.Writer) error { return r.writePackage(w, format, t) }
		if err := r.write(r.name(t.os+"_"+t.arch+"."+format), write); err != nil {
			return err
		}
	}
	return nil
}

// name is an artifact's.
func (r *release) name(rest string) string {
	return "partnerapi_" + strings.TrimPrefix(r.version, "v") + "_" + rest
}

// write writes an artifact, and says so. One that fails is omitted.
func (r *release) write(name string, fill func(io.Writer) error) error {
	begin := time.Now()
	path := filepath.Join(r.out, name)
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(fill(file), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("make %s: %w", name, err), os.Remove(path))
	}
	about, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.progress, "%-42s %6.1f MB %6s\n", name, float64(about.Size())/1e6, time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// writeSums writes the checksums of the artifacts, as sha256sum -c reads them.
func (r *release) writeSums(w io.Writer) error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f os.DirEntry) bool { return f.Name() == "SHA256SUMS" })
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%x  %s\n", sha256.Sum256(data), f.Name()); err != nil {
			return err
		}
	}
	return nil
}
