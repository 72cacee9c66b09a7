// Command program is a small integration that uses the client from oapi-codegen. It lists
// the clients page by page, creates a client with a user, and sends the user a simulated
// phishing email. It also receives an event, verifies the event's signature, and downloads
// a report. Command demonstration runs it.
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	v2 "partnerapi/tools/out/v2"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// refusing sends requests, and makes an error of each response that is none of success.
type refusing struct{}

// Do is the client's transport.
func (refusing) Do(req *http.Request) (*http.Response, error) {
	req.Header.Set("X-API-Key", os.Getenv("KEY"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return nil, fmt.Errorf("%s %s: %s: %s", req.Method, req.URL.Path, resp.Status, body)
}

func run(ctx context.Context) error {
	api, err := v2.NewClientWithResponses(os.Getenv("BASE")+"/v2", v2.WithHTTPClient(refusing{}))
	if err != nil {
		return err
	}
	posted, url, err := endpoint()
	if err != nil {
		return err
	}

	seen, err := pageThrough(ctx, api)
	if err != nil {
		return err
	}
	client, err := api.ClientsCreateWithResponse(ctx, nil, v2.CreateClient{Name: "Made by oapi-codegen"})
	if err != nil {
		return err
	}
	id := client.JSON201.Id
	hook, err := api.WebhooksCreateWithResponse(ctx, nil, v2.CreateWebhook{Url: url, Events: []v2.EventType{"user.created"}, ClientIds: &[]string{id}})
	if err != nil {
		return err
	}
	user, err := api.UsersCreateWithResponse(ctx, id, nil, v2.CreateUser{Email: "ada@oapi-codegen.example", Role: new(v2.Role("finance"))})
	if err != nil {
		return err
	}
	templates, err := api.PhishingTemplatesListWithResponse(ctx, nil)
	if err != nil {
		return err
	}
	sent, err := api.PhishingSendWithResponse(ctx, id, nil, v2.SendPhishing{
		UserIds: []string{user.JSON201.Id}, TemplateId: &templates.JSON200.Data[0].Id,
	})
	if err != nil || len(sent.JSON202.Sends) != 1 {
		return fmt.Errorf("the simulation was not sent: %w", err)
	}
	ping, err := api.WebhooksTestWithResponse(ctx, hook.JSON201.Id, nil)
	if err != nil || !ping.JSON200.Delivered {
		return fmt.Errorf("the ping was not delivered: %w", err)
	}
	events, err := received(posted, hook.JSON201.Secret, string(user.JSON201.Email))
	if err != nil {
		return err
	}
	size, err := report(ctx, api, id)
	if err != nil {
		return err
	}
	fmt.Printf("oapi-codegen: %d clients, %d verified deliveries, a report of %d bytes\n", seen, events, size)
	return nil
}

// pageThrough reads all clients, and counts them.
func pageThrough(ctx context.Context, api *v2.ClientWithResponses) (int, error) {
	seen := map[string]bool{}
	params := &v2.ClientsListParams{Limit: new(10), Sort: new(v2.ClientSort("name"))}
	for more := true; more; {
		page, err := api.ClientsListWithResponse(ctx, params)
		if err != nil {
			return 0, err
		}
		for _, c := range page.JSON200.Data {
			seen[c.Id] = true
		}
		cursor, err := page.JSON200.Page.NextCursor.Get()
		params.Cursor, more = &cursor, err == nil
	}
	if len(seen) < 30 {
		return 0, fmt.Errorf("%d clients were paged through", len(seen))
	}
	return len(seen), nil
}

// endpoint takes deliveries until the program ends.
func endpoint() (<-chan *http.Request, string, error) {
	cert, err := tls.LoadX509KeyPair(os.Getenv("TLS_CERT"), os.Getenv("TLS_KEY"))
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	posted := make(chan *http.Request, 100)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		posted <- r
		w.WriteHeader(http.StatusNoContent)
	})}
	go server.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{cert}}))
	return posted, "https://" + listener.Addr().String() + "/", nil
}

// received verifies deliveries until that of the user was there, and counts them.
func received(posted <-chan *http.Request, secret, email string) (n int, err error) {
	for range 10 {
		r := <-posted
		body, _ := io.ReadAll(r.Body)
		at, signatures, _ := strings.Cut(r.Header.Get("X-Service-Signature"), ",")
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%s.%s", strings.TrimPrefix(at, "t="), body)
		if !strings.Contains(signatures, "v1="+hex.EncodeToString(mac.Sum(nil))) {
			return n, fmt.Errorf("the signature %s is wrong", r.Header.Get("X-Service-Signature"))
		}
		n++
		var event v2.Event
		if err := json.Unmarshal(body, &event); err != nil {
			return n, err
		}
		if event.Type != "user.created" { // perhaps a type that came later
			continue
		}
		var made struct{ Data v2.UserDetail }
		if err := json.Unmarshal(body, &made); err != nil {
			return n, err
		}
		if string(made.Data.Email) == email {
			return n, nil
		}
	}
	return n, fmt.Errorf("%d deliveries, and none of the user", n)
}

// report requests a report, asks until it is ready, and fetches it.
func report(ctx context.Context, api *v2.ClientWithResponses, client string) (size int, err error) {
	made, err := api.ReportsCreateWithResponse(ctx, client, nil, v2.RequestReport{Type: "executive_summary"})
	if err != nil {
		return 0, err
	}
	for range 300 {
		now, err := api.ReportsGetWithResponse(ctx, client, made.JSON201.Id)
		if err != nil || now.JSON200.Status == "failed" {
			return 0, fmt.Errorf("the report failed: %w", err)
		}
		if url, err := now.JSON200.DownloadUrl.Get(); err == nil {
			file, err := http.Get(url)
			if err != nil {
				return 0, err
			}
			defer file.Body.Close()
			pdf, err := io.ReadAll(file.Body)
			if err == nil && !bytes.HasPrefix(pdf, []byte("%PDF")) {
				err = fmt.Errorf("the report is no PDF")
			}
			return len(pdf), err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return 0, fmt.Errorf("the report did not come")
}
