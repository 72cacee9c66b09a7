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
	Listen         string        `default:"${listen}" help:"Address to listen on."`
	MetricsListen  string        `name:"metrics-listen" placeholder:"ADDRESS" help:"Separate address for /metrics. Default: the API's address if it is a loopback address; otherwise, /metrics is not served."`
	Drain          time.Duration `default:"0s" help:"Time to keep accepting requests after SIGTERM, while /readyz returns 503."`
	Release        op.Release    `default:"2.0" help:"Release of v2 to serve: 2.0, 2.1, 2.2, 2.3, 2.4, 2.5 or latest."`
	RedisURL       string        `name:"redis-url" placeholder:"URL" help:"Redis server through which replicas share request budgets and paging checkpoints."`
	TrustedProxies []string      `name:"trusted-proxies" placeholder:"CIDR,…" help:"Networks of proxies that are trusted to forward callers' IP addresses."`
	ScannerNets    []string      `name:"scanner-networks" placeholder:"CIDR,…" help:"Networks of email scanners. Opens and clicks from these networks are not counted. This list replaces the built-in list of Microsoft and Proofpoint networks."`
	MCPReadOnly    bool          `name:"mcp-read-only" help:"Offer AI assistants (/mcp) only read-only tools and reject calls to other tools."`
	MCPOrigins     []string      `name:"mcp-origins" placeholder:"ORIGIN,…" help:"Origins of web pages whose scripts may use /mcp, such as https://app.example.com. Pages at the public URL are always allowed."`
	NoWork         bool          `name:"no-work" help:"Leave background work to other processes (partnerapi work)."`
	NoMigrate      bool          `name:"no-migrate" help:"Do not change tables. If a migration is missing, refuse to start."`
	SupportURL     string        `name:"support-url" placeholder:"URL" help:"URL where partners can get help (https:// or mailto:). The pages and the OpenAPI documents show this URL."`
	Demo           bool          `help:"Fill an empty database with demonstration data and accept the demonstration's API keys."`
}

// Check returns an error for the first flag that is invalid. It connects to nothing.
func (c ServeFlags) Check() error {
	if c.Listen == "" {
		return errors.New("--listen must not be empty; use an address such as 127.0.0.1:8080")
	}
	if c.MetricsListen != "" && c.MetricsListen == c.Listen && !strings.HasSuffix(c.Listen, ":0") { // :0 is any free port
		return fmt.Errorf("--metrics-listen: %s is already the address of --listen; use another address", c.MetricsListen)
	}
	if c.Drain < 0 {
		return fmt.Errorf("--drain must not be negative: %v", c.Drain)
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
		return fmt.Errorf("--support-url: %q is neither an https URL nor mailto:name@example.com", c.SupportURL)
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
		return nil, fmt.Errorf("cannot listen on %s: %w (choose another address with %s)", address, err, flag)
	}
	return listener, nil
}
