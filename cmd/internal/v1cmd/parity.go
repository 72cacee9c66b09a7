package v1cmd

import (
	"context"
	"errors"
	"fmt"

	"partnerapi/client"
	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/cmd/internal/remote"
	"partnerapi/v1compat"
	"partnerapi/v1compat/parity"
)

type parityCmd struct {
	Compare compareCmd `cmd:"" default:"withargs" help:"Compare the responses of v1 and v2 for everything that a key can access (default)." example:"parity --url https://api.example.com\nparity compare --url https://api.example.com --all"`
	Replay  replayCmd  `cmd:"" help:"Replay callers' v1 requests, send the equivalent v2 requests, and compare the responses." example:"parity replay requests.txt --url https://api.example.com"`
}

// parityFlags are the services that are compared, and the form of the report.
type parityFlags struct {
	remote.KeyFlag
	URL      string   `name:"url" env:"-" default:"http://127.0.0.1:8080" placeholder:"BASE" help:"URL of the service, without /v1."`
	V1URL    string   `name:"v1-url" env:"-" placeholder:"OLD" help:"URL of another service. The v1 at --url is compared with the v1 at this URL instead of with the v2 at --url. Both services must have the same IDs (idmap import)."`
	V1Key    string   `name:"v1-key" env:"PARTNERAPI_V1_KEY" placeholder:"KEY" help:"API key for the other service. Default: the same key."`
	Tolerate []string `env:"-" placeholder:"FIELD,…" help:"Fields of v1 items, or headers, that may differ between the two services."`
	JSON     bool     `name:"json" env:"-" help:"Print the report as JSON."`
}

// Validate rejects a missing key, and --tolerate without --v1-url.
func (f parityFlags) Validate() error {
	if len(f.Tolerate) > 0 && f.V1URL == "" {
		return errors.New("--tolerate requires --v1-url; the guide lists the differences allowed between v1 and v2")
	}
	return f.ValidateKey()
}

// config returns the configuration of a comparison by the flags. The comparison shows its progress on the error stream.
func (f parityFlags) config(s cli.Env) parity.Config {
	lineEnd := ""
	if output.IsTerminal(s.Err) {
		lineEnd = "\n" // ends the line of the bar
	}
	return parity.Config{
		URL: f.URL, Key: f.Key, OldURL: f.V1URL, OldKey: f.V1Key, Tolerate: f.Tolerate,
		Facade:   v1compat.Declare(v1compat.Config{}),
		Progress: output.NewBar(s.Err, "comparing"),
		Waiting:  func(text string) { fmt.Fprintln(s.Err, lineEnd+text) },
	}
}

// report prints a report; err is the error that ended the comparison early, or nil. It returns an error of exit status
// 1 if values differ, otherwise, if err is not nil, one of exit status 2.
func (f parityFlags) report(s cli.Env, r *parity.Report, err error) error {
	write, to := r.WriteText, s.Out
	if f.JSON {
		write, to = r.WriteJSON, output.ForJSON(s.Out)
	}
	if len(r.Operations) > 0 || f.JSON { // without operations, nothing was compared
		if err := write(to); err != nil {
			return err
		}
	}
	switch n := r.Different(); {
	case n > 0 && err != nil:
		return fmt.Errorf("differing values: %d; the comparison is incomplete: %w", n, err)
	case n > 0:
		return fmt.Errorf("differing values: %d", n)
	case errors.Is(err, context.Canceled):
		return incomplete{errors.New("the comparison stopped early and found no differences up to that point")}
	case err != nil:
		return incomplete{err}
	}
	return nil
}

// incomplete is an error of exit status 2: not all was compared.
type incomplete struct{ error }

// ExitCode implements kong.ExitCoder.
func (incomplete) ExitCode() int { return 2 }

type compareCmd struct {
	parityFlags
	Sample *int   `env:"-" placeholder:"N" xor:"much" help:"Maximum number of objects to compare per kind and parent, spread evenly. Default: 20."`
	All    bool   `env:"-" xor:"much" help:"Compare all objects."`
	Writes string `env:"-" placeholder:"CLIENT" help:"Client in which to compare writes instead of reads, identified by its numeric ID in v1, its ID or UUID in v2, or its name. Through each version, the command creates, changes and removes a collection, a user and a membership, and compares what both versions return after each write. The created users remain as inactive users."`
}

// Validate rejects an empty sample, and --writes for two services.
func (c compareCmd) Validate() error {
	switch {
	case c.Sample != nil && *c.Sample < 1:
		return errors.New("--sample must be at least 1; --all compares everything")
	case c.Writes != "" && c.V1URL != "":
		return errors.New("--writes compares one service; omit --v1-url")
	}
	return c.parityFlags.Validate()
}

// Run compares v1 with v2, or v1 of two services (--v1-url); with --writes, what v1 and v2 show after writes.
func (c compareCmd) Run(ctx context.Context, s cli.Env) error {
	config := c.config(s)
	if c.Writes != "" {
		client, err := remote.FindClient(ctx, client.Config{URL: c.URL, Key: c.Key, UserAgent: parity.UserAgent}, c.Writes)
		if err != nil {
			return c.report(s, &parity.Report{}, fmt.Errorf("--writes: %w", err))
		}
		r, made, err := parity.Writes(ctx, config, client)
		for _, line := range made {
			fmt.Fprintln(s.Err, "created", line)
		}
		return c.report(s, r, err)
	}
	switch {
	case c.Sample != nil:
		config.Sample = *c.Sample
	case !c.All:
		config.Sample = parity.DefaultSample
	}
	r, err := parity.Compare(ctx, config)
	return c.report(s, r, err)
}

type replayCmd struct {
	parityFlags
	File string `arg:"" type:"existingfile" help:"HAR file, or file with lines of the form [GET] /v1/path?query, which you can extract from an access log with jq or awk; - for standard input."`
}

// Help says what is compared.
func (replayCmd) Help() string {
	return `The exit status is 0 if all lines were compared and all responses are equal, and 1 if some responses differ. The exit status is 2 if a line is invalid or is not a read request to v1, or if only error responses were compared. In a HAR file, entries that are not read requests to v1 are skipped.`
}

// Run repeats the requests of the file and compares the responses.
func (c replayCmd) Run(ctx context.Context, s cli.Env) (err error) {
	in, _, shutFile, err := output.OpenInput(s, c.File, "") // the progress of reading is not shown
	if err != nil {
		return incomplete{err}
	}
	defer database.CloseInto(shutFile, &err)
	r, err := parity.Replay(ctx, c.config(s), in, func(n int, reason string) {
		fmt.Fprintf(s.Err, "%s:%d: %s\n", c.File, n, reason)
	})
	return c.report(s, r, err)
}
