package remote

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"partnerapi/client"
	"partnerapi/cmd/internal/cli"
)

// Health is the command health, which asks a running process whether it is ready.
type Health struct {
	Listen string `default:"${listen}" help:"The address to listen on."`
	URL    string `arg:"" optional:"" help:"Where to ask. Default: the address of --listen, on this machine."`
}

// Help says what it is for.
func (Health) Help() string {
	return `Asks /readyz of a running serve or work, for supervisors and containers. The exit status is 0 if it is ready, 1 if it is not, or does not answer within 5 seconds.`
}

// healthWithin is how long a process may take to say that it is ready: longer than
// it gives its database.
const healthWithin = 5 * time.Second

// Run fails unless the process is ready.
func (c Health) Run(ctx context.Context, s cli.Env) error {
	at := c.URL
	if at == "" {
		at = cli.ReachedAt(c.Listen)
	}
	text, err := Ready(ctx, at)
	if err != nil {
		return err
	}
	_, err = s.Out.Write(text)
	return err
}

// Ready is what the process at an address says when it is ready; else an error.
func Ready(ctx context.Context, at string) ([]byte, error) {
	// No proxy of the environment.
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
