package pg

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// parameterName matches the name of a session parameter.
var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.$]*$`)

// parseAddress parses the address of a database: a URL, or a list of keyword=value. Its errors quote no part of the
// address, because it is unknown where the password in a malformed address ends. It accepts an address only if its
// hosts, its user and its database look like such, so that errors of the driver and of the server, which quote them,
// can be shown.
func parseAddress(address string) (*pgxpool.Config, error) {
	if misplaced(address) {
		return nil, fmt.Errorf("read the database URL: %w", errAddress)
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", withoutAddress(err))
	}
	// An unescaped @ or / in a password makes its rest part of the host or of the name of the database.
	c := config.ConnConfig
	if strings.Contains(address, "://") && strings.Contains(c.Host+c.Database, "@") || !readable(&c.Config) {
		return nil, fmt.Errorf("read the database URL: %w", errAddress)
	}
	for name := range c.RuntimeParams {
		// An unknown name is sent to the server, whose error would quote it. A URL of another scheme is such a name, up
		// to its first "=".
		if !parameterName.MatchString(name) {
			return nil, fmt.Errorf("read the database URL: %w", errAddress)
		}
	}
	return config, nil
}

var errAddress = errors.New("write it as postgres://user:password@host:port/name, with special characters escaped, " +
	"or as host=… user=… password=… dbname=…, separated by spaces")

var (
	// keyword matches a keyword of an address and its equals sign after a comma or a semicolon, which separate the parts
	// of an address in other programs. The driver takes the rest of such an address for a part of the value before it.
	keyword = regexp.MustCompile(`(?i)[,;]\s*(?:host(?:addr)?|server|data source|port|user(?: ?name| ?id)?|uid|password|pwd|` +
		`db(?:name)?|database|initial catalog|ssl_?mode|options)\s*=`)
	// password matches the keyword of a password, with the character before it.
	password = regexp.MustCompile(`(?i)(?:^|[^\w.-])(?:ssl)?(?:password|passwd|pwd)\s*=`)

	// host matches the name or address of a machine, and the folder of a socket.
	host = regexp.MustCompile(`^(?:[\pL\pN][\pL\pN._-]*|[0-9A-Fa-f:.]+(?:%[\w.-]+)?|[/@][\pL\pN/._@ +~-]*)$`)
	// notInName matches what the name of a user or of a database can have, but only has by mistake.
	notInName = regexp.MustCompile("[=,:;&?|<>\"'`[:cntrl:]]")
)

// misplaced reports whether parts of an address are separated as the driver does not separate them, or a password is
// where the driver finds none.
func misplaced(address string) bool {
	separators := " \t\r\n"
	if isURL(address) {
		separators = "?&"
	}
	for _, at := range password.FindAllStringIndex(address, -1) {
		if at[0] > 0 && !strings.ContainsAny(address[at[0]:at[0]+1], separators) {
			return true
		}
	}
	return keyword.MatchString(address)
}

// isURL reports whether the driver reads an address as a URL.
func isURL(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// readable reports whether hosts, user and database look like such.
func readable(c *pgconn.Config) bool {
	hosts := []string{c.Host}
	for _, f := range c.Fallbacks {
		hosts = append(hosts, f.Host)
	}
	return !slices.ContainsFunc(hosts, func(h string) bool { return !host.MatchString(h) }) &&
		!notInName.MatchString(c.User) && !notInName.MatchString(c.Database)
}

// withoutAddress returns a parse error that quotes no part of the address: a reason is omitted if it has quotes, or
// what separates the parts of an address.
func withoutAddress(err error) error {
	parseErr, ok := errors.AsType[*pgconn.ParseConfigError](err)
	if !ok || parseErr.Unwrap() == nil || strings.ContainsAny(parseErr.Unwrap().Error(), "\"`'=,;|&") {
		return errAddress
	}
	return fmt.Errorf("%w (%w)", errAddress, parseErr.Unwrap())
}
