package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/client"
	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/v2/op/mcp"
)

// MCP is the command mcp, which connects an AI assistant to the MCP server of a service.
type MCP struct {
	KeyFlag
	URL      string  `name:"url" env:"-" required:"" placeholder:"BASE" help:"URL of the service, such as https://partner.example."`
	ReadOnly bool    `name:"read-only" env:"-" help:"Offer only read-only tools."`
	Toolsets string  `env:"-" placeholder:"NAMES" help:"Toolsets to offer, separated by commas, or all. Default: ${toolsets}; none if --tools is set."`
	Tools    string  `env:"-" placeholder:"NAMES" help:"Tools to offer, separated by commas, such as users_list. With --toolsets, these tools are offered in addition."`
	Client   *string `env:"-" placeholder:"ID" help:"ID of the client that the session is limited to."`
	Schemas  bool    `env:"-" help:"Offer tools with output schemas and return structured content in results."`
}

// Validate rejects an unusable address or key.
func (c MCP) Validate() error {
	if _, err := client.New(client.Config{URL: c.URL}); err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	return c.ValidateKey()
}

// Run relays messages between the standard streams and the service's MCP server, until the input ends and all calls
// have a response.
func (c MCP) Run(ctx context.Context, s cli.Env) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	endpoint := mcp.Path + c.query()
	transport := &versionTransport{}
	service, err := client.New(client.Config{URL: c.URL, Key: c.Key, Transport: transport})
	if err != nil {
		return err
	}
	if err := c.probe(ctx, service, endpoint); err != nil {
		return err
	}
	server, err := (&sdk.StreamableClientTransport{
		Endpoint: strings.TrimRight(c.URL, "/") + endpoint, HTTPClient: service.HTTP(),
		MaxRetries: -1, DisableStandaloneSSE: true, // it never reconnects, and asks for no stream of the server's own
	}).Connect(ctx)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", c.URL, err)
	}
	b := &bridge{stdio: newStdio(s.In, output.ForJSON(s.Out)), server: server, transport: transport, log: s.Err}
	return b.run(ctx)
}

// query returns the query parameters for the flags.
func (c MCP) query() string {
	q := url.Values{}
	if c.ReadOnly {
		q.Set("read_only", "1")
	}
	if c.Toolsets != "" {
		q.Set("toolsets", c.Toolsets)
	}
	if c.Tools != "" {
		q.Set("tools", c.Tools)
	}
	if c.Client != nil { // empty too, which the service rejects: a missing value must not widen the session
		q.Set("client_id", *c.Client)
	}
	if c.Schemas {
		q.Set("schemas", "1")
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// probe sends a GET, which asks for a stream. The return 405 shows that the server exists, that it has no such stream,
// and that it accepts the key. Any other answer is an error.
func (c MCP) probe(ctx context.Context, service *client.Client, endpoint string) error {
	a, err := service.Send(ctx, client.Request{Method: http.MethodGet, Path: endpoint})
	if err != nil {
		return fmt.Errorf("cannot reach %s: %w", c.URL, err)
	}
	switch a.Status {
	case http.StatusMethodNotAllowed:
		return nil
	case http.StatusUnauthorized:
		return fmt.Errorf("%s rejects the key in PARTNERAPI_KEY, which is unknown, expired or revoked", c.URL)
	case http.StatusNotFound:
		return fmt.Errorf("%s has no MCP server; MCP requires release %s or later of the API", c.URL, mcp.Since)
	}
	var rejected struct{ Error jsonrpc.Error } // such as an unknown tool
	if json.Unmarshal(a.Body, &rejected) == nil && rejected.Error.Code != 0 {
		return fmt.Errorf("%s: %s", c.URL, rejected.Error.Message)
	}
	if err := a.Err(); err != nil {
		return fmt.Errorf("%s: %w", c.URL, err)
	}
	return fmt.Errorf("%s%s returned %d", c.URL, endpoint, a.Status)
}

// versionTransport adds the negotiated protocol version to requests, and records whether the service refused the key.
type versionTransport struct {
	version atomic.Value // a string
	refused atomic.Bool
}

// RoundTrip sends r with the negotiated version, unless r has a version or none was negotiated yet. The return 401 sets
// refused.
func (c *versionTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if version, ok := c.version.Load().(string); ok && r.Header.Get("Mcp-Protocol-Version") == "" {
		r.Header.Set("Mcp-Protocol-Version", version)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		c.refused.Store(true)
	}
	return resp, err
}

// bridge relays messages between stdio, the standard streams, and server, the service's MCP server. Of a message it
// reads only which call it makes or answers.
type bridge struct {
	stdio     *stdio
	server    sdk.Connection
	transport *versionTransport
	log       io.Writer

	pending sync.WaitGroup // calls without a response
	initial atomic.Value   // the jsonrpc.ID of the latest call initialize
}

// run relays messages until the input ends and all calls have a response, or until ctx ends. It fails if the connection to
// the server ends first.
func (b *bridge) run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- b.relayServer(ctx) }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.relayInput(ctx)
		b.pending.Wait()
	}()
	select {
	case err := <-ended:
		if b.transport.refused.Load() {
			return errors.New("the service rejects the key in PARTNERAPI_KEY, which is unknown, expired or revoked")
		}
		return fmt.Errorf("the connection to the service ended: %w", err)
	case <-ctx.Done():
	case <-done:
	}
	return b.server.Close()
}

// maxCalls is the number of concurrent calls: as many as the service accepts per key.
const maxCalls = 16

// relayInput sends the messages of the standard input to the server until the input ends. Calls are sent concurrently,
// up to maxCalls at a time. The call initialize, and messages other than calls, are sent in order.
func (b *bridge) relayInput(ctx context.Context) {
	slots := make(chan struct{}, maxCalls)
	for {
		m, err := b.stdio.Read(ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				fmt.Fprintln(b.log, "partnerapi: cannot read standard input:", err)
			}
			return
		}
		request, ok := m.(*jsonrpc.Request)
		if !ok || !request.IsCall() {
			b.send(ctx, m, jsonrpc.ID{}) // the zero ID: no call
			continue
		}
		b.pending.Add(1)
		if request.Method == "initialize" {
			b.initial.Store(request.ID)
			b.send(ctx, m, request.ID)
			continue
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			b.send(ctx, m, request.ID)
		}()
	}
}

// rejectedByTransport is the code of the SDK's error for a response that is none of JSON-RPC, such as a 429.
const rejectedByTransport = -32005

// send sends a message to the server. If that fails and call is the id of a call, it answers the call with the server's
// error or, if it has none, another one, so that the caller does not wait.
func (b *bridge) send(ctx context.Context, m jsonrpc.Message, call jsonrpc.ID) {
	err := b.server.Write(ctx, m)
	if err == nil {
		return
	}
	failure, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || failure.Code == rejectedByTransport {
		fmt.Fprintln(b.log, "partnerapi:", err)
		failure = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the request to the service failed: " + err.Error()}
	}
	if call.IsValid() {
		b.answer(&jsonrpc.Response{ID: call, Error: failure})
	}
}

// relayServer writes the server's answers to the standard output until the connection ends, and returns why it ended.
// The server sends nothing else.
func (b *bridge) relayServer(ctx context.Context) error {
	for {
		m, err := b.server.Read(ctx)
		if err != nil {
			return err
		}
		if response, ok := m.(*jsonrpc.Response); ok {
			b.answer(response)
		}
	}
}

// answer writes a response to the standard output; it drops one to a call that is not pending. From the response to the
// call initialize it takes the protocol version for later requests.
func (b *bridge) answer(response *jsonrpc.Response) {
	if response.ID == b.initial.Load() && response.Error == nil {
		var result struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(response.Result, &result) == nil && result.ProtocolVersion != "" {
			b.transport.version.Store(result.ProtocolVersion)
		}
	}
	wasPending, err := b.stdio.Answer(response)
	if err != nil {
		fmt.Fprintln(b.log, "partnerapi:", err)
	}
	if wasPending {
		b.pending.Done()
	}
}
