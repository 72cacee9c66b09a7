package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

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
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL, such as http://127.0.0.1:8080", at)
	}
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("/readyz").String(), nil)
	if err != nil {
		return nil, err
	}
	client := newHTTPClient(&http.Transport{}, 0) // no proxy of the environment
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	return text, nil
}
