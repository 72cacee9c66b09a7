// Package config has the flags of serve and work, and opens the resources that they select.
package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"partnerapi/cmd/internal/database"
	"partnerapi/domain"
	"partnerapi/platform/phishing"
	"partnerapi/v2/op"
	"partnerapi/v2/op/mcp"
)

// ServeFlags configure the API server; doctor has them too.
type ServeFlags struct {
	database.Flags
	database.CellFlags
	WorkFlags
	Listen         string        `default:"${listen}" help:"The address to listen on."`
	MetricsListen  string        `name:"metrics-listen" placeholder:"ADDRESS" help:"A separate address for /metrics. Without it, /metrics is served with the API if that listens on a loopback address only, else not at all."`
	Drain          time.Duration `default:"0s" help:"How long to accept requests after SIGTERM, while /readyz answers 503."`
	Release        op.Release    `default:"2.0" help:"The release of v2 to serve: 2.0, 2.1, 2.2, 2.3, 2.4, 2.5 or latest."`
	RedisURL       string        `name:"redis-url" placeholder:"URL" help:"A Redis in which replicas share budgets and checkpoints."`
	TrustedProxies []string      `name:"trusted-proxies" placeholder:"CIDR,…" help:"Proxies whose forwarded addresses are believed."`
	ScannerNets    []string      `name:"scanner-networks" placeholder:"CIDR,…" help:"Networks of email scanners. Their opens and clicks are not counted. The list replaces the built-in one, which is Microsoft's and Proofpoint's."`
	MCPReadOnly    bool          `name:"mcp-read-only" help:"Show agents (/mcp) only the tools that read, and refuse the others."`
	MCPOrigins     []string      `name:"mcp-origins" placeholder:"ORIGIN,…" help:"Origins of web pages whose scripts may use /mcp, such as https://app.example.com. Pages of the public URL always may."`
	NoWork         bool          `name:"no-work" help:"Leave background work to other processes (partnerapi work)."`
	NoMigrate      bool          `name:"no-migrate" help:"Change no tables, and refuse to serve while a migration is missing."`
	SupportURL     string        `name:"support-url" placeholder:"URL" help:"Where partners get help: an https address or mailto:. The pages and the OpenAPI documents name it."`
	Demo           bool          `help:"Fill an empty database with a demonstration, and accept its keys."`
}

// Check returns an error for the first flag that is invalid. It connects to nothing.
func (c ServeFlags) Check() error {
	if c.Listen == "" {
		return errors.New("--listen: give an address, such as 127.0.0.1:8080")
	}
	if c.MetricsListen != "" && c.MetricsListen == c.Listen && !strings.HasSuffix(c.Listen, ":0") { // :0 is any free port
		return fmt.Errorf("--metrics-listen: %s is the address of --listen; give another one", c.MetricsListen)
	}
	if c.Drain < 0 {
		return fmt.Errorf("--drain: %v is below 0", c.Drain)
	}
	if _, err := domain.ParseNetworks(c.TrustedProxies); err != nil {
		return fmt.Errorf("--trusted-proxies: %w", err)
	}
	if _, err := phishing.ParseNetworks(c.ScannerNets); err != nil {
		return fmt.Errorf("--scanner-networks: %w", err)
	}
	for _, origin := range c.MCPOrigins {
		if _, err := mcp.ParseOrigin(origin); err != nil {
			return fmt.Errorf("--mcp-origins: %w", err)
		}
	}
	if u, err := url.Parse(c.SupportURL); c.SupportURL != "" &&
		(err != nil || (u.Scheme != "mailto" || u.Opaque == "") && (u.Scheme != "https" || u.Host == "")) {
		return fmt.Errorf("--support-url: %q is no https address and no mailto:name@example.com", c.SupportURL)
	}
	if _, err := c.ParseCell(); err != nil {
		return err
	}
	return c.WorkFlags.Check()
}

// Listen listens on the address of a flag. It returns nil for an empty address.
func Listen(flag, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w (choose another with %s)", address, err, flag)
	}
	return listener, nil
}
