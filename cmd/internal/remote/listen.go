package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"partnerapi/client"
	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
	"partnerapi/v2/api"
)

// followEvery is the polling interval for new events.
const followEvery = time.Second

// Listen is the command webhooks listen, which posts events to a local address.
type Listen struct {
	KeyFlag
	ForwardTo string   `required:"" name:"forward-to" env:"-" placeholder:"URL" help:"URL to post events to, such as http://localhost:3000/hook."`
	URL       string   `name:"url" default:"http://127.0.0.1:8080" placeholder:"BASE" help:"URL of the service that publishes the events, without /v2."`
	Types     []string `env:"-" placeholder:"TYPE,…" help:"Types of events to forward. Default: all."`
	Client    string   `env:"-" help:"Only events for the client with this ID, UUID or name. Default: all clients that the key can access."`
	From      string   `env:"-" default:"latest" placeholder:"CURSOR" help:"Starting point: latest for new events only, start for the oldest stored event, or the cursor that an earlier run printed when it ended."`
	CA        string   `name:"forward-ca" env:"-" type:"path" placeholder:"FILE" help:"Certificate authorities (PEM) to trust for the local URL, in addition to the system's."`
	Secret    string   `env:"PARTNERAPI_WEBHOOK_SECRET" placeholder:"SECRET" help:"Secret that signs the events, in the format of webhook secrets: whsec_ followed by base64. Default: a new secret, which the command prints."`
}

func (Listen) Help() string {
	return `Requires neither a webhook nor a public URL. The command reads events from GET /v2/events and posts each event once, with the headers and body of a webhook delivery. It prints one line per event, with the response.`
}

// Validate rejects invalid addresses, certificates and secrets, and a missing key.
func (c Listen) Validate() error {
	if _, err := client.New(client.Config{URL: c.URL}); err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	if u, err := url.Parse(c.ForwardTo); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("--forward-to must be an http or https URL with a host, such as http://localhost:3000/hook")
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

// Run follows events until ctx ends.
func (c Listen) Run(ctx context.Context, s cli.Env) error {
	return c.follow(ctx, s, domain.Pause)
}

// follow posts events until ctx ends, or some cannot be read or encoded; a failed post does not end it. wait waits
// between polls. At its end follow prints the cursor after the last page whose events were all tried, from which
// another run can continue.
func (c Listen) follow(ctx context.Context, s cli.Env, wait func(context.Context, time.Duration) error) error {
	if c.Client != "" {
		var err error
		if c.Client, err = FindClient(ctx, client.Config{URL: c.URL, Key: c.Key}, c.Client); err != nil {
			return fmt.Errorf("--client: %w", err)
		}
	}
	service, err := client.New(client.Config{
		URL: c.URL, Key: c.Key, Wait: wait, Tries: math.MaxInt, MaxWait: math.MaxInt64, // until ctx ends
		Retrying: func(err error, pause time.Duration) {
			fmt.Fprintf(s.Err, "cannot read events: %v; retrying in %v\n", err, pause.Round(time.Second))
		},
	})
	if err != nil {
		return err
	}
	defer service.Close()
	to, err := webhook.NewEndpoints(webhook.Options{Forward: true, Version: s.Version, CAFile: c.CA})
	if err != nil {
		return err
	}
	defer to.Close()
	if c.Secret == "" {
		c.Secret = domain.NewWebhookSecret()
	}
	fmt.Fprintf(s.Out, "Events from %s are posted to %s, signed with %s\n", c.URL, output.WithoutSecrets(c.ForwardTo), c.Secret)

	in := c.input()
	cursor := in.Query.Cursor
	for page, feedErr := range client.Feed(ctx, service, api.ListEvents, in, followEvery) {
		if feedErr != nil {
			err = feedErr
			break
		}
		if err = c.postAll(ctx, s, to, page.Data); err != nil {
			break
		}
		cursor = page.Page.NextCursor // each event of the page was posted, or failed
	}
	if cursor != "" && cursor != "latest" { // else no page came
		fmt.Fprintf(s.Err, "to continue, use --from %s\n", cursor)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// input returns the input for the operation that lists events, as the flags filter them and where they begin.
func (c Listen) input() *api.ListEventsInput {
	in := &api.ListEventsInput{}
	in.Query.ClientID = c.Client
	if c.From != "start" { // else the cursor stays empty
		in.Query.Cursor = c.From
	}
	for _, t := range c.Types {
		in.Query.Types = append(in.Query.Types, domain.EventType(t))
	}
	return in
}

// postAll posts the events of a page, and prints the response to each. A failed post is printed, and is no error; the
// end of ctx is one, as is an event that cannot be encoded.
func (c Listen) postAll(ctx context.Context, s cli.Env, to *webhook.Endpoints, events []api.Event) error {
	for _, event := range events {
		body, err := json.Marshal(event)
		if err != nil {
			return err
		}
		try := to.Send(ctx, domain.DeliveryMessage{URL: c.ForwardTo, ID: event.ID.String(), Secrets: []string{c.Secret}, BodySigned: true, Body: body})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		status := strconv.Itoa(try.StatusCode)
		if try.StatusCode == 0 {
			status = "failed: " + try.Response
		}
		fmt.Fprintf(s.Out, "%s %s %s %s (%d ms)\n", try.At.UTC().Format(time.RFC3339), event.Type, event.ID, status, try.DurationMS)
	}
	return nil
}
