package pg

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// parameterName is the name of a session's parameter.
var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.$]*$`)

// parseAddress parses the address of a database: a URL, or a list of keyword=value. Its errors
// quote nothing of it: where the password in a malformed address ends is unknown.
func parseAddress(address string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", withoutAddress(err))
	}
	// The part of a password after an @ or / would be taken for the host or the database.
	if strings.Contains(address, "://") && strings.Contains(config.ConnConfig.Host+config.ConnConfig.Database, "@") {
		return nil, fmt.Errorf("read the database URL: %w", errAddress)
	}
	for name := range config.ConnConfig.RuntimeParams {
		// The server would repeat it: a URL of another scheme is one keyword up to its "=".
		if !parameterName.MatchString(name) {
			return nil, fmt.Errorf("read the database URL: %w", errAddress)
		}
	}
	return config, nil
}

var errAddress = errors.New("write it as postgres://user:password@host:port/name, with special characters escaped, " +
	"or as host=… user=… password=… dbname=…")

// withoutAddress returns the error of parsing an address, without any part of the address. It
// leaves out a reason with quotes, which quotes a part.
func withoutAddress(err error) error {
	var unread *pgconn.ParseConfigError
	if !errors.As(err, &unread) || unread.Unwrap() == nil || strings.ContainsAny(unread.Unwrap().Error(), "\"`'") {
		return errAddress
	}
	return fmt.Errorf("%w (%w)", errAddress, unread.Unwrap())
}
