package pg

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// parameterName matches the name of a session parameter.
var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.$]*$`)

// parseAddress parses the address of a database: a URL, or a list of keyword=value. Its errors quote no part of the
// address, because it is unknown where the password in a malformed address ends.
func parseAddress(address string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", withoutAddress(err))
	}
	// An unescaped @ or / in a password makes its rest part of the host or of the name of the database.
	if strings.Contains(address, "://") && strings.Contains(config.ConnConfig.Host+config.ConnConfig.Database, "@") {
		return nil, fmt.Errorf("read the database URL: %w", errAddress)
	}
	for name := range config.ConnConfig.RuntimeParams {
		// An unknown name is sent to the server, whose error would quote it. A URL of another scheme is such a name, up
		// to its first "=".
		if !parameterName.MatchString(name) {
			return nil, fmt.Errorf("read the database URL: %w", errAddress)
		}
	}
	return config, nil
}

var errAddress = errors.New("write it as postgres://user:password@host:port/name, with special characters escaped, " +
	"or as host=… user=… password=… dbname=…")

// withoutAddress returns a parse error that quotes no part of the address: a reason with quotes is left out.
func withoutAddress(err error) error {
	parseErr, ok := errors.AsType[*pgconn.ParseConfigError](err)
	if !ok || parseErr.Unwrap() == nil || strings.ContainsAny(parseErr.Unwrap().Error(), "\"`'") {
		return errAddress
	}
	return fmt.Errorf("%w (%w)", errAddress, parseErr.Unwrap())
}
