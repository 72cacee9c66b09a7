// Command ogen calls a service with the clients that ogen generates from the documents of both versions, with ogen's
// default settings. It lists clients. It also reads a page of events from a server whose page contains an event of an
// unknown type, and checks that the client decodes the whole page, including its cursor. make contract generates the
// clients first, and runs the command against the demonstration, with its URL in BASE and its API key in KEY.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	v1 "partnerapi/tools/ogen/out/v1"
	v2 "partnerapi/tools/ogen/out/v2"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type (
	newer struct{}
	older struct{}
)

// ApiKey returns the key for v2.
func (newer) ApiKey(context.Context, v2.OperationName) (v2.ApiKey, error) {
	return v2.ApiKey{APIKey: os.Getenv("KEY")}, nil
}

// ApiKey returns the key for v1.
func (older) ApiKey(context.Context, v1.OperationName) (v1.ApiKey, error) {
	return v1.ApiKey{APIKey: os.Getenv("KEY")}, nil
}

func run(ctx context.Context) error {
	api, err := v2.NewClient(os.Getenv("BASE")+"/v2", newer{})
	if err != nil {
		return err
	}
	got, err := api.ClientsList(ctx, v2.ClientsListParams{Limit: v2.NewOptInt(2)})
	if err != nil {
		return err
	}
	clients, ok := got.(*v2.ClientPageHeaders)
	if !ok || len(clients.Response.Data) != 2 {
		return fmt.Errorf("the clients are %+v", got)
	}

	before, err := v1.NewClient(os.Getenv("BASE")+"/v1", older{})
	if err != nil {
		return err
	}
	listed, err := before.Clients(ctx, v1.ClientsParams{Limit: v1.NewOptInt(2)})
	if err != nil {
		return err
	}
	if page, ok := listed.(*v1.ClientPagingHeaders); !ok || len(page.Response.Items) != 2 {
		return fmt.Errorf("version 1's clients are %+v", listed)
	}
	if err := readUnknown(ctx); err != nil {
		return err
	}
	fmt.Println("ogen: both versions list clients, and an event of an unknown type is read")
	return nil
}

// unknown is a page with an event of a type that the document does not have.
const unknown = `{"data": [
	{"id": "evt_1", "type": "moon.rose", "created_at": "2026-01-31T08:00:00.000000Z", "client_id": "cli_1", "data": {"phase": "full"}}
], "page": {"next_cursor": "next", "has_more": false, "as_of": null}}`

// readUnknown reads that page.
func readUnknown(ctx context.Context) error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{
			"Content-Type": "application/json", "X-Request-Id": "req_1", "X-RateLimit-Limit": "600",
			"X-RateLimit-Remaining": "599", "X-RateLimit-Reset": "1767225600",
		} {
			w.Header().Set(name, value)
		}
		_, _ = w.Write([]byte(unknown))
	}))
	defer server.Close()
	api, err := v2.NewClient(server.URL, newer{})
	if err != nil {
		return err
	}
	got, err := api.EventsList(ctx, v2.EventsListParams{})
	if err != nil {
		return err
	}
	page, ok := got.(*v2.EventFeedPageHeaders)
	if !ok || len(page.Response.Data) != 1 || page.Response.Data[0].Type != "moon.rose" || page.Response.Page.NextCursor.Value != "next" {
		return fmt.Errorf("the events are %+v", got)
	}
	return nil
}
