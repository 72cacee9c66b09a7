// Command mcpgo performs one task with the MCP server through mcp-go, a Go client that is independent of the SDK. It
// lists the tools, creates, finds and updates a client, and causes an error, over HTTP and over the bridge:
//
//	mcpgo PARTNERAPI
//
// PARTNERAPI is the service's binary. Command demonstration runs mcpgo with the service's URL in BASE and an API key in
// KEY. The exit status is 1 if a check fails.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: mcpgo PARTNERAPI")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Getenv("BASE"), os.Getenv("KEY")); err != nil {
		fmt.Fprintln(os.Stderr, "mcp-go:", err)
		os.Exit(1)
	}
	fmt.Println("mcp-go does a task, over HTTP and over stdio")
}

// run does the task over both transports.
func run(ctx context.Context, program, base, key string) error {
	overHTTP, err := client.NewStreamableHttpClient(base+"/mcp", transport.WithHTTPHeaders(map[string]string{"X-API-Key": key}))
	if err != nil {
		return err
	}
	if err := task(ctx, overHTTP, "mcp-go HTTP"); err != nil {
		return fmt.Errorf("over HTTP: %w", err)
	}
	bridge, err := client.NewStdioMCPClient(program, append(os.Environ(), "PARTNERAPI_KEY="+key), "mcp", "--url", base)
	if err != nil {
		return err
	}
	if err := task(ctx, bridge, "mcp-go stdio"); err != nil {
		return fmt.Errorf("over stdio: %w", err)
	}
	return nil
}

// task creates a client with the name, finds and changes it, and reads one that does not exist. It closes c.
func task(ctx context.Context, c *client.Client, name string) error {
	defer c.Close()
	if err := c.Start(ctx); err != nil && !strings.Contains(err.Error(), "already") {
		return err
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion, hello.Params.ClientInfo = mcp.LATEST_PROTOCOL_VERSION, mcp.Implementation{Name: "mcpgo", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil || len(tools.Tools) < 20 || tools.NextCursor != "" {
		return fmt.Errorf("tools/list: %w, %+v", err, tools)
	}

	if _, err := call(ctx, c, "clients_create", map[string]any{"name": name, "industry": "Retail"}); err != nil {
		return err
	}
	list, err := call(ctx, c, "clients_list", map[string]any{"q": name, "fields": []string{"id"}})
	if err != nil {
		return err
	}
	lines := strings.Split(list, "\n")
	if len(lines) != 3 {
		return fmt.Errorf("clients_list returns %q", list)
	}
	changed, err := call(ctx, c, "clients_update", map[string]any{"client_id": lines[1], "external_id": "A-1", "industry": nil})
	if err != nil {
		return err
	}
	var after struct {
		Industry   *string
		ExternalID *string `json:"external_id"`
	}
	if err := json.Unmarshal([]byte(changed), &after); err != nil || after.ExternalID == nil || after.Industry == nil {
		return fmt.Errorf("clients_update returns %q", changed)
	}
	_, err = call(ctx, c, "clients_get", map[string]any{"client_id": "cli_01h455vb4pex5vsknk084sn02q"})
	if err == nil || !strings.Contains(err.Error(), `"not_found"`) {
		return fmt.Errorf("a client that does not exist: %w", err)
	}
	return nil
}

// call calls a tool and returns its text. A result that is an error is an error with that text.
func call(ctx context.Context, c *client.Client, tool string, arguments map[string]any) (string, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = tool, arguments
	result, err := c.CallTool(ctx, request)
	if err != nil {
		return "", fmt.Errorf("%s: %w", tool, err)
	}
	if len(result.Content) != 1 {
		return "", fmt.Errorf("%s returns %d contents", tool, len(result.Content))
	}
	text, ok := result.Content[0].(mcp.TextContent)
	if !ok {
		return "", fmt.Errorf("%s returns a %T", tool, result.Content[0])
	}
	if result.IsError {
		return "", errors.New(text.Text)
	}
	return text.Text, nil
}
