package mail

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
)

// server is the content of an SMTP URL.
type server struct {
	host           string
	port           int
	user, password string
	implicitTLS    bool // from the first byte, not by STARTTLS
	starttls       starttls
	roots          *x509.CertPool // the only trusted certificates; nil for the system's
	connections    int            // the maximum number at a time
}

// starttls says when STARTTLS encrypts a connection.
type starttls int

const (
	offered  starttls = iota // if the server offers it
	required                 // always; connecting to a server that does not offer it fails
	never
)

const (
	submissionPort     = 587
	submissionsPort    = 465
	defaultConnections = 20
	maxConnections     = 1000
)

// parseURL parses an SMTP URL (see NewSMTP). Errors contain no password.
func parseURL(text string) (server, error) {
	u, err := url.Parse(text)
	if err != nil {
		// err may contain the password.
		return server{}, errors.New("the SMTP URL is invalid; write it as smtp://user:password@host:port with " +
			"special characters escaped")
	}

	s := server{host: u.Hostname(), user: u.User.Username(), port: submissionPort, connections: defaultConnections}
	s.password, _ = u.User.Password()
	switch u.Scheme {
	case "smtp": // the defaults
	case "smtps":
		s.implicitTLS, s.port = true, submissionsPort
	default:
		return s, fmt.Errorf("the SMTP URL begins with %q; use smtp:// or smtps://", u.Scheme)
	}
	if s.host == "" {
		return s, errors.New("the SMTP URL contains no host")
	}
	if u.Path != "" && u.Path != "/" {
		return s, errors.New("the SMTP URL has a path; remove it, and escape special characters in the password")
	}
	if u.Port() != "" {
		if s.port, err = strconv.Atoi(u.Port()); err != nil || s.port < 1 || s.port > 65535 {
			return s, fmt.Errorf("the SMTP URL's port %q must be a number from 1 to 65535", u.Port())
		}
	}

	for name, values := range u.Query() {
		if err := s.setOption(name, values[len(values)-1]); err != nil {
			return s, fmt.Errorf("the SMTP URL's option %s: %w", name, err)
		}
	}
	return s, nil
}

// setOption sets an option of the URL. It returns an error for an unknown option or an invalid value.
func (s *server) setOption(name, value string) error {
	switch name {
	case "starttls":
		switch {
		case s.implicitTLS:
			return errors.New("smtps:// is always encrypted; omit starttls")
		case value == "required":
			s.starttls = required
		case value == "never":
			s.starttls = never
		case value != "offered":
			return fmt.Errorf("%q is not one of offered, required and never", value)
		}
	case "ca":
		pem, err := os.ReadFile(value)
		if err != nil {
			return err
		}
		s.roots = x509.NewCertPool()
		if !s.roots.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s contains no certificate", value)
		}
	case "connections":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxConnections {
			return fmt.Errorf("%q is not a number between 1 and %d", value, maxConnections)
		}
		s.connections = n
	default:
		return errors.New("unknown option; use starttls, ca or connections")
	}
	return nil
}

// tlsConfig returns the TLS configuration for connections to the server.
func (s *server) tlsConfig() *tls.Config {
	return &tls.Config{ServerName: s.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}
}
