package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// installation is what the packages install for the services: their settings, their user, and the folder of their data.
type installation struct {
	// settings is the path of a file of variables, as systemd reads it.
	settings string
	// user is the user that services run as. Empty means that commands never change their user.
	user string
	data string
}

// installed is the installation that commands use if they are called by hand.
var installed = installation{
	settings: "/etc/partnerapi/partnerapi.env", user: "partnerapi", data: "/var/lib/partnerapi",
}

// adopt gives a command that is called by hand the settings of the installation, so that it uses the database of the
// services. It says so. A variable that is set already stays as it is.
//
// It does nothing without the file, for a command that needs no settings, or if the command line or the environment
// chooses a database: settings such as a mail server are not mixed with another database. For root, the process
// becomes the services' user, to whom the data belong, and whom the database may know by name.
func (i installation) adopt(args []string, errs io.Writer) error {
	text, err := os.ReadFile(i.settings)
	if errors.Is(err, fs.ErrNotExist) || !i.wanted(args) {
		return nil
	}
	if err != nil {
		fmt.Fprintf(errs, "partnerapi: cannot use the settings of the service: %v; run the command as root\n", err)
		return nil
	}
	as := ""
	if os.Geteuid() == 0 && i.user != "" {
		if err := becomeUser(i.user); err != nil {
			fmt.Fprintf(errs, "partnerapi: cannot use the settings in %s: %v\n", i.settings, err)
			return nil
		}
		as = ", as the user " + i.user
	}
	fmt.Fprintf(errs, "partnerapi: using the settings in %s%s\n", i.settings, as)
	variables := append(environmentFile(text), [2]string{"PARTNERAPI_DATA_DIR", i.data})
	for _, v := range variables {
		if _, ok := os.LookupEnv(v[0]); ok {
			continue
		}
		if err := os.Setenv(v[0], v[1]); err != nil {
			return fmt.Errorf("%s: %w", i.settings, err)
		}
	}
	return nil
}

// choices are the flags that choose a database.
var choices = []string{"database-url", "data-dir", "demo"}

// wanted reports whether the command of a command line reads settings of the services, and nothing chooses a database.
func (installation) wanted(args []string) bool {
	for _, name := range choices {
		if os.Getenv("PARTNERAPI_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))) != "" {
			return false
		}
	}
	line := commands{Plugins: pluginCommands()}
	parser, err := newParser(context.Background(), &line, environment(nil, io.Discard, io.Discard))
	if err != nil {
		return false // run says why
	}
	trace, err := kong.Trace(parser, withHelp(args))
	if err != nil {
		return false
	}
	given := func(names ...string) bool {
		return slices.ContainsFunc(trace.Path, func(p *kong.Path) bool { return p.Flag != nil && slices.Contains(names, p.Flag.Name) })
	}
	reads := slices.ContainsFunc(trace.Flags(), func(f *kong.Flag) bool { return f.Name == "data-dir" || f.Name == "listen" })
	return reads && !given(choices...) && !given("help", "version")
}

// becomeUser makes the process that of a user, with its supplementary groups, as systemd does. Entries of the audit trail then name root as the one who called it,
// unless sudo did.
func becomeUser(name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	groups, err3 := groupsOf(u)
	err = errors.Join(err, err2, err3)
	if err == nil {
		err = syscall.Setgroups(groups)
	}
	if err == nil {
		err = syscall.Setgid(gid)
	}
	if err == nil {
		err = syscall.Setuid(uid)
	}
	variables := [][2]string{{"HOME", u.HomeDir}, {"USER", name}, {"LOGNAME", name}}
	if os.Getenv("SUDO_USER") == "" {
		variables = append(variables, [2]string{"SUDO_USER", "root"})
	}
	for _, v := range variables {
		err = errors.Join(err, os.Setenv(v[0], v[1]))
	}
	return err
}

// groupsOf returns the numbers of a user's groups, its own and the supplementary ones.
func groupsOf(u *user.User) (groups []int, err error) {
	ids, err := u.GroupIds()
	for _, id := range ids {
		group, err := strconv.Atoi(id)
		if err != nil {
			return nil, err
		}
		groups = append(groups, group)
	}
	return groups, err
}

// environmentFile returns the variables of a file in the order of its lines, the last one of each name. It reads what
// systemd reads (systemd.exec(5), EnvironmentFile=), but for values over several lines within quotes.
func environmentFile(text []byte) (variables [][2]string) {
	text = bytes.ReplaceAll(text, []byte("\\\n"), nil)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		variables = slices.DeleteFunc(variables, func(v [2]string) bool { return v[0] == name })
		variables = append(variables, [2]string{name, unquoted(strings.TrimSpace(value))})
	}
	return variables
}

// unquoted returns a value without its quotes and backslashes. Between double quotes a backslash quotes only the
// characters that are special there; between single quotes, none.
func unquoted(value string) string {
	special, quote := "", byte(0)
	if n := len(value); n > 1 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
		value, quote = value[1:n-1], value[0]
		special = "\"\\`$"
	}
	if quote == '\'' {
		return value
	}
	var plain strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) && (quote == 0 || strings.IndexByte(special, value[i+1]) >= 0) {
			i++
		}
		plain.WriteByte(value[i])
	}
	return plain.String()
}
