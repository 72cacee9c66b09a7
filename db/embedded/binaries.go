package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// errNoBinaries says what to do on a machine without PostgreSQL.
var errNoBinaries = errors.New("no PostgreSQL server binaries found: run `make postgres` to fetch them, " +
	"or install PostgreSQL " + strconv.Itoa(MinMajor) + " or newer, " +
	"or name the folder of its binaries in PARTNERAPI_POSTGRES_BIN, " +
	"or use a running server with --database-url")

// binaries is a folder with postgres and initdb of one major version.
type binaries struct {
	dir   string
	major int
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// find returns binaries of the major version want, or of any where want is 0:
// those of binDir where it is given, else the first of the folders.
func find(binDir string, folders []string, want int) (binaries, error) {
	if binDir != "" {
		folders = []string{binDir}
	}
	var others, broken []string
	for _, dir := range folders {
		b, err := inspect(dir)
		switch {
		case err != nil:
			broken = append(broken, err.Error())
		case b.major < MinMajor, want != 0 && b.major != want:
			others = append(others, fmt.Sprintf("%d (%s)", b.major, b.dir))
		default:
			return b, nil
		}
	}

	found := strings.Join(others, ", ")
	switch {
	case len(others) > 0 && want != 0:
		return binaries{}, fmt.Errorf("the data were made by PostgreSQL %d, and the binaries found are of version %s: "+
			"install PostgreSQL %[1]d, or move the data with pg_upgrade", want, found)
	case len(others) > 0:
		return binaries{}, fmt.Errorf("PostgreSQL %d or newer is needed, and the binaries found are of version %s",
			MinMajor, found)
	case len(broken) > 0:
		return binaries{}, fmt.Errorf("%w (%s)", errNoBinaries, strings.Join(broken, "; "))
	}
	return binaries{}, errNoBinaries
}

// Programs returns the folder of the server's binaries: binDir or, where that is empty,
// one of the usual places. The error says what to do where there are none.
func Programs(binDir string) (dir string, err error) {
	b, err := find(binDir, places(), 0)
	return b.dir, err
}

// versionLine is what postgres -V prints: "postgres (PostgreSQL) 15.4 (…)".
var versionLine = regexp.MustCompile(`PostgreSQL\) (\d+)`)

// inspect asks the binaries of a folder for their version; binaries that can't
// run here (of another libc, say) fail.
func inspect(dir string) (binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return binaries{}, err
	}
	b := binaries{dir: dir}
	for _, program := range []string{"postgres", "initdb"} {
		out, err := exec.Command(b.path(program), "-V").Output()
		if err != nil {
			return binaries{}, fmt.Errorf("%s -V: %w", b.path(program), err)
		}
		m := versionLine.FindSubmatch(out)
		if m == nil {
			return binaries{}, fmt.Errorf("%s -V printed %q", b.path(program), out)
		}
		if b.major, err = strconv.Atoi(string(m[1])); err != nil {
			return binaries{}, err
		}
	}
	return b, nil
}

// usual are the places where systems put server binaries, a folder for each
// version: Debian, Red Hat, Homebrew on both kinds of Mac, Postgres.app.
var usual = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// places lists the folders that hold a postgres, in the order of preference.
func places() []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		// A link in PATH may stand alone: its target has initdb beside it.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, pattern := range usual {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(versionIn(b), versionIn(a)) })
		dirs = append(dirs, found...)
	}
	for _, root := range roots() {
		dirs = append(dirs, filepath.Join(root, ".postgres", "bin"))
	}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "postgres"))
		return err != nil
	})
}

// number finds the version in a path such as /usr/lib/postgresql/15/bin.
var number = regexp.MustCompile(`\d+`)

func versionIn(path string) int {
	n, _ := strconv.Atoi(number.FindString(path)) // none counts as 0: last
	return n
}

// roots are the folders that may hold what `make postgres` fetched: the working
// directory up to the project's root, and the executable's folder and the one
// above it.
func roots() []string {
	var dirs []string
	if wd, err := os.Getwd(); err == nil {
		for dir := wd; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				dirs = append(dirs, dir)
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if exe, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(exe), filepath.Dir(filepath.Dir(exe)))
	}
	return dirs
}
