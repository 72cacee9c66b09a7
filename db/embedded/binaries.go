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

// errNoBinaries tells the user what to do on a machine without PostgreSQL.
var errNoBinaries = errors.New("no PostgreSQL server binaries found; run `make postgres` to fetch them, " +
	"or install PostgreSQL " + strconv.Itoa(MinMajor) + " or later, " +
	"or set PARTNERAPI_POSTGRES_BIN to the folder of its binaries, " +
	"or use a running server with --database-url")

// binaries is a folder with postgres and initdb of one major version.
type binaries struct {
	dir   string
	major int
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// find returns the binaries of binDir or, if it is empty, of the first folder with suitable ones. The major version
// must be want or, if want is 0, at least MinMajor. If none is suitable, the error contains the reasons and a remedy.
func find(binDir string, folders []string, want int) (binaries, error) {
	if binDir != "" {
		folders = []string{binDir}
	}
	var otherVersions, broken []string
	for _, dir := range folders {
		b, err := inspect(dir)
		switch {
		case err != nil:
			broken = append(broken, err.Error())
		case b.major < MinMajor, want != 0 && b.major != want:
			otherVersions = append(otherVersions, fmt.Sprintf("%d (%s)", b.major, b.dir))
		default:
			return b, nil
		}
	}

	found := strings.Join(otherVersions, ", ")
	switch {
	case len(otherVersions) > 0 && want != 0:
		return binaries{}, fmt.Errorf("PostgreSQL %d created the data, but the binaries found are of version %s; "+
			"install PostgreSQL %[1]d, or upgrade the data with pg_upgrade", want, found)
	case len(otherVersions) > 0:
		return binaries{}, fmt.Errorf("PostgreSQL %d or later is required, but the binaries found are of version %s",
			MinMajor, found)
	case len(broken) > 0:
		return binaries{}, fmt.Errorf("%w (%s)", errNoBinaries, strings.Join(broken, "; "))
	}
	return binaries{}, errNoBinaries
}

// Programs returns the folder of the server's binaries: binDir or, if it is empty, the first of binaryFolders with
// suitable binaries. If there is none, the error contains a remedy.
func Programs(binDir string) (dir string, err error) {
	b, err := find(binDir, binaryFolders(), 0 /* any from MinMajor */)
	return b.dir, err
}

// versionLine matches the output of postgres -V: "postgres (PostgreSQL) 15.4 (…)".
var versionLine = regexp.MustCompile(`PostgreSQL\) (\d+)`)

// inspect runs the binaries of a folder to get their version. It returns an error if one cannot run here, for example
// because of another libc.
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

// systemFolders are the patterns of the folders in which systems install server binaries, one folder for each version:
// Debian, Red Hat, Homebrew on ARM and Intel, Postgres.app.
var systemFolders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// binaryFolders returns the folders that hold a program postgres, the preferred first: the folder in PATH, the
// systemFolders by descending version, and the folders of `make postgres` (roots).
func binaryFolders() []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		// The folder of a symbolic link may lack initdb; the folder of its target has it.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, pattern := range systemFolders {
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

var number = regexp.MustCompile(`\d+`)

// versionIn returns the version in a path such as /usr/lib/postgresql/15/bin, or 0 if there is none.
func versionIn(path string) int {
	n, _ := strconv.Atoi(number.FindString(path))
	return n
}

// roots returns the folders in which `make postgres` may have created .postgres: the first folder with a go.mod from
// the working directory upwards, the executable's folder, and the folder above it.
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
