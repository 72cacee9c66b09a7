// Package remote has the commands that call a running service.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"partnerapi/client"
	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

// KeyFlag is the API key of a command that calls a service.
type KeyFlag struct {
	Key string `env:"PARTNERAPI_KEY" name:"key" placeholder:"KEY" help:"API key. Use the environment variable instead, because other users of this machine can see command lines."`
}

// ValidateKey rejects a missing key.
func (f KeyFlag) ValidateKey() error {
	if f.Key == "" {
		return errors.New("no API key; set PARTNERAPI_KEY")
	}
	return nil
}

// Health is the command health, which checks that a process is ready.
type Health struct {
	Listen string `default:"${listen}" help:"Address to listen on."`
	URL    string `arg:"" optional:"" help:"URL to check. Default: the --listen address on this machine."`
}

func (Health) Help() string {
	return `Requests /readyz from a running serve or work process, as a health check for supervisors and containers. The exit status is 0 if the process is ready, and 1 if it is not ready or does not respond within 5 seconds.`
}

// healthWithin is the timeout of the check. It is longer than the timeout for the database of the process checked.
const healthWithin = 5 * time.Second

// Run prints the response of a ready process. It fails if the process is not ready or cannot be reached.
func (c Health) Run(ctx context.Context, s cli.Env) error {
	text, err := CheckReady(ctx, cmp.Or(c.URL, cli.ListenURL(c.Listen)))
	if err != nil {
		return err
	}
	_, err = s.Out.Write(text)
	return err
}

// CheckReady returns the response of a ready process. A process that is not ready or cannot be reached is an error.
func CheckReady(ctx context.Context, at string) ([]byte, error) {
	// The empty Transport ignores the environment's proxy.
	c, err := client.New(client.Config{URL: at, Transport: &http.Transport{}, Timeout: healthWithin, MaxBody: 1024})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	a, err := c.Send(ctx, client.Request{Method: http.MethodGet, Path: "/readyz"})
	if err != nil {
		return nil, err
	}
	if a.Status == http.StatusServiceUnavailable {
		return nil, fmt.Errorf("%d %s: %s", a.Status, http.StatusText(a.Status), bytes.TrimSpace(a.Body))
	}
	return a.Body, a.Err()
}

// FindClient returns the id of a client that the key has access to; text is its id, UUID or name. An id of v2, or a
// number of v1, is returned as it is, and a UUID as an id of v2. Only a name is looked up at the service: an unknown or
// ambiguous one is an error.
func FindClient(ctx context.Context, config client.Config, text string) (string, error) {
	if _, err := strconv.ParseUint(text, 10, 63); err == nil || strings.HasPrefix(text, "cli_") { // 63 bits: as int64
		return text, nil
	}
	if id, err := database.ParseClientID(text); err == nil {
		return id.String(), nil
	}
	c, err := client.New(config)
	if err != nil {
		return "", err
	}
	defer c.Close()
	in := &api.ListClientsInput{}
	in.Query.Q, in.Query.Limit = text, 500
	var names, ids []string
	for found, err := range client.Items(ctx, c, api.ListClients, in) {
		if err != nil {
			return "", err
		}
		names = append(names, found.Name)
		if domain.SortKey(found.Name) == domain.SortKey(text) {
			ids = append(ids, found.ID.String())
		}
	}
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("the key can access no client named %q; specify the client's ID, as returned by GET /v2/clients, or its name%s",
			text, output.DidYouMean(text, names))
	case 1:
		return ids[0], nil
	}
	return "", fmt.Errorf("%d clients have the name %q; specify the ID of one: %s", len(ids), text, strings.Join(ids, " or "))
}
