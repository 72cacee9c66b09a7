package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

const (
	// followEvery is how often a service is asked for new events.
	followEvery = time.Second
	// followAgain is the pause after a service could not be asked; it doubles up to
	// followLongest.
	followAgain, followLongest = time.Second, 30 * time.Second
	// followWithin is how long a service may take to answer.
	followWithin = 30 * time.Second
	// followLimit is how many events are asked for at a time, and followMax bounds
	// what they may take, in bytes.
	followLimit, followMax = 100, 64 << 20
)

// Listen is the command webhooks listen, which posts events to a local address.
type Listen struct {
	KeyFlag
	ForwardTo string   `required:"" name:"forward-to" env:"-" placeholder:"URL" help:"Where events are posted to: an http or https URL, such as http://localhost:3000/hook."`
	URL       string   `name:"url" default:"http://127.0.0.1:8080" placeholder:"BASE" help:"The address of the service whose events are followed, without /v2."`
	Types     []string `env:"-" placeholder:"TYPE,…" help:"Only events of these types. Default: all."`
	Client    string   `env:"-" help:"Only events of this client: its id, UUID or name. Default: those of all that the key reaches."`
	From      string   `env:"-" default:"latest" placeholder:"CURSOR" help:"Where to begin: latest for new events only, start for the oldest that are kept, or a cursor that was printed at the end."`
	CA        string   `name:"forward-ca" env:"-" type:"path" placeholder:"FILE" help:"Certificates in PEM of authorities that the local address may have its own from, beside the machine's."`
	Secret    string   `env:"PARTNERAPI_WEBHOOK_SECRET" placeholder:"SECRET" help:"The secret that signs, as a subscription has one: whsec_ and base64. Default: a new one, which is printed."`
}

// Help says what is posted.
func (Listen) Help() string {
	return `Needs no subscription and no public address: events are read from GET /v2/events, and posted with the headers and the body of a delivery. Each event is tried once; the answer stands in the line that is printed for it.`
}

// Validate refuses what could not be followed or signed.
func (c Listen) Validate() error {
	if _, err := followed(c.URL); err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	if u, err := url.Parse(c.ForwardTo); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("--forward-to: is not an http or https URL, such as http://localhost:3000/hook")
	}
	if _, err := webhook.NewEndpoints(webhook.Options{CAFile: c.CA}); err != nil {
		return fmt.Errorf("--forward-ca: %w", err)
	}
	if c.Secret != "" {
		if err := webhook.CheckSecret(c.Secret); err != nil {
			return fmt.Errorf("--secret: %w", err)
		}
	}
	return c.ValidateKey()
}

// followed is the address of the events of a service.
func followed(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("is not the address of a service, such as https://api.example.com")
	}
	return u.JoinPath("v2", "events"), nil
}

// Run follows events until ctx ends.
func (c Listen) Run(ctx context.Context, s cli.Env) error {
	return c.follow(ctx, s, domain.Pause)
}

// follow is Run that waits by way of wait.
func (c Listen) follow(ctx context.Context, s cli.Env, wait func(context.Context, time.Duration) error) error {
	events, err := followed(c.URL)
	if err != nil {
		return err
	}
	if c.Client != "" {
		if c.Client, err = ClientAt(ctx, c.URL, c.Key, c.Client); err != nil {
			return fmt.Errorf("--client: %w", err)
		}
	}
	to, err := webhook.NewEndpoints(webhook.Options{Forward: true, Version: s.Version, CAFile: c.CA})
	if err != nil {
		return err
	}
	defer to.Close()
	f := &follower{
		Listen: c, Env: s, events: events, to: to, wait: wait, cursor: c.From,
		client: newHTTPClient(http.DefaultTransport.(*http.Transport).Clone(), followWithin),
	}
	defer f.client.CloseIdleConnections()
	if f.Secret == "" {
		f.Secret = domain.NewWebhookSecret()
	}
	if f.cursor == "start" {
		f.cursor = ""
	}
	fmt.Fprintf(s.Out, "Events of %s are posted to %s, signed with %s\n", c.URL, c.ForwardTo, f.Secret)
	err = f.run(ctx)
	if f.cursor != "" && f.cursor != "latest" {
		fmt.Fprintf(s.Err, "go on with: --from %s\n", f.cursor)
	}
	return err
}

// follower posts the events of a service.
type follower struct {
	Listen
	cli.Env
	events *url.URL
	client *http.Client
	to     *webhook.Endpoints
	wait   func(context.Context, time.Duration) error
	// cursor is where the next page begins; empty is the start.
	cursor string
}

// run follows events until ctx ends, or the service refuses to show them.
func (f *follower) run(ctx context.Context) error {
	again := followAgain
	for ctx.Err() == nil {
		page, err := f.page(ctx)
		var refused *refusedRead
		var elsewhere *redirected
		switch {
		case ctx.Err() != nil:
		case errors.As(err, &refused) && !refused.passes(), errors.As(err, &elsewhere):
			return err
		case err != nil:
			until := again
			if refused != nil {
				until = max(again, refused.after)
			}
			fmt.Fprintf(f.Env.Err, "no events: %v; trying again in %v\n", err, until)
			_ = f.wait(ctx, until)
			again = min(2*again, followLongest)
		default:
			again = followAgain
			f.postAll(ctx, page)
			if !page.Page.HasMore {
				_ = f.wait(ctx, followEvery)
			}
		}
	}
	return nil
}

// followedPage is a page of events.
type followedPage struct {
	Data []json.RawMessage
	Page struct {
		NextCursor string `json:"next_cursor"`
		HasMore    bool   `json:"has_more"`
	}
}

// postAll posts the events of a page. The cursor moves on when all have been tried.
func (f *follower) postAll(ctx context.Context, page followedPage) {
	for _, body := range page.Data {
		if ctx.Err() != nil {
			return
		}
		var event struct {
			ID   string
			Type domain.EventType
		}
		_ = json.Unmarshal(body, &event) // what it lacks is shown as such
		try := f.to.Send(ctx, f.ForwardTo, event.ID, []string{f.Secret}, body)
		if ctx.Err() != nil {
			return
		}
		status := strconv.Itoa(try.StatusCode)
		if try.StatusCode == 0 {
			status = "failed: " + try.Response
		}
		fmt.Fprintf(f.Out, "%s %s %s %s (%d ms)\n", try.At.UTC().Format(time.RFC3339), event.Type, event.ID, status, try.DurationMS)
	}
	f.cursor = page.Page.NextCursor
}

// page reads the events after the cursor.
func (f *follower) page(ctx context.Context) (page followedPage, err error) {
	asked := *f.events
	query := url.Values{"limit": {strconv.Itoa(followLimit)}}
	for name, value := range map[string]string{
		"cursor": f.cursor, "types": strings.Join(f.Types, ","), "client_id": f.Client,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	asked.RawQuery = query.Encode()
	text, err := readWithKey(ctx, f.client, f.Key, asked.String(), followMax)
	if err != nil {
		return page, err
	}
	if err := json.Unmarshal(text, &page); err != nil || page.Page.NextCursor == "" {
		return page, &refusedRead{status: http.StatusOK, message: "and no page of events: does --url name the service?"}
	}
	return page, nil
}
