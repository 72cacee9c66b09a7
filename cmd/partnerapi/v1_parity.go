package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"partnerapi/cmd/internal/bar"
	"partnerapi/v1compat"
	"partnerapi/v1compat/parity"
	v2 "partnerapi/v2"
)

type parityCmd struct {
	Compare compareCmd `cmd:"" default:"withargs" help:"Compare what v1 and v2 say of everything that a key reaches. The default."`
	Record  recordCmd  `cmd:"" help:"Record the requests of v1 that read, of access logs and HAR files."`
	Replay  replayCmd  `cmd:"" help:"Make recorded requests of v1 and those of v2 that follow them, and compare the answers."`
}

// parityFlags say what is compared, and how it is reported.
type parityFlags struct {
	keyFlag
	URL      string   `name:"url" env:"-" default:"http://127.0.0.1:8080" placeholder:"BASE" help:"The address of the service, without /v1."`
	V1URL    string   `name:"v1-url" env:"-" placeholder:"OLD" help:"The address of another service, whose v1 is compared with this one's in the place of v2. Its ids are the same (idmap import)."`
	V1Key    string   `name:"v1-key" env:"PARTNERAPI_V1_KEY" placeholder:"KEY" help:"An API key of the other service. Default: the same key."`
	Tolerate []string `env:"-" placeholder:"FIELD,…" help:"Fields of v1's items, or headers, in which the two services may differ."`
	JSON     bool     `name:"json" env:"-" help:"Print the report as JSON."`
}

// Validate refuses an absent key.
func (f parityFlags) Validate() error {
	if len(f.Tolerate) > 0 && f.V1URL == "" {
		return errors.New("--tolerate is for --v1-url: what v1 and v2 may differ in, the rules of the guide say")
	}
	return f.validateKey()
}

func (f parityFlags) config(s streams) parity.Config {
	return parity.Config{
		URL: f.URL, Key: f.Key, OldURL: f.V1URL, OldKey: f.V1Key, Tolerate: f.Tolerate,
		Facade: v1compat.New(v2.New(nil, nil), v1compat.Config{}), Progress: bar.New(s.err, "comparing"),
	}
}

// report prints a report, whatever ended the comparison. The error says by its exit
// status whether there are differences (1), or the comparison did not come to its end
// (2).
func (f parityFlags) report(s streams, r *parity.Report, err error) error {
	write := r.WriteText
	if f.JSON {
		write = r.WriteJSON
	}
	if len(r.Operations) > 0 || f.JSON {
		if failed := write(s.out); failed != nil {
			return failed
		}
	}
	switch n := r.Different(); {
	case n > 0 && err != nil:
		return fmt.Errorf("values that differ: %d; and the comparison did not come to its end: %w", n, err)
	case n > 0:
		return fmt.Errorf("values that differ: %d", n)
	case errors.Is(err, context.Canceled):
		return incomplete{errors.New("stopped before the end; no difference until then")}
	case err != nil:
		return incomplete{err}
	}
	return nil
}

// incomplete is that something could not be compared.
type incomplete struct{ error }

// ExitCode is the exit status: 2.
func (incomplete) ExitCode() int { return 2 }

// Unwrap is the reason.
func (e incomplete) Unwrap() error { return e.error }

type compareCmd struct {
	parityFlags
	Sample *int   `env:"-" placeholder:"N" xor:"much" help:"Compare at most N objects of a kind and parent, spread evenly. Default: 20."`
	All    bool   `env:"-" xor:"much" help:"Compare all objects."`
	Writes string `env:"-" placeholder:"CLIENT" help:"Instead, make a collection, a user and a membership in this client, change and remove them through each version, and compare what both show after each write. CLIENT is its number in v1, or its id in v2. The users stay, inactive."`
}

// Validate refuses a sample of nothing.
func (c compareCmd) Validate() error {
	switch {
	case c.Sample != nil && *c.Sample < 1:
		return errors.New("--sample must be at least 1; --all compares everything")
	case c.Writes != "" && c.V1URL != "":
		return errors.New("--writes is for one service: leave --v1-url out")
	}
	return c.parityFlags.Validate()
}

// Run compares.
func (c compareCmd) Run(ctx context.Context, s streams) error {
	config := c.config(s)
	if c.Writes != "" {
		config.Progress = nil
		r, made, err := parity.Writes(ctx, config, c.Writes)
		for _, line := range made {
			fmt.Fprintln(s.err, "made", line)
		}
		return c.report(s, r, err)
	}
	switch {
	case c.Sample != nil:
		config.Sample = *c.Sample
	case !c.All:
		config.Sample = 20
	}
	r, err := parity.Compare(ctx, config)
	return c.report(s, r, err)
}

type recordCmd struct {
	Files []string `arg:"" name:"file" type:"existingfile" help:"Access logs (common or combined format, Caddy's JSON, this service's JSON), and HAR files."`
	Out   string   `short:"o" env:"-" placeholder:"FILE" help:"Where the requests are written. Default: standard output."`
}

// Run records. Lines that cannot be read are told on standard error.
func (c recordCmd) Run(s streams) (err error) {
	recorder, err := parity.NewRecorder(v1compat.New(v2.New(nil, nil), v1compat.Config{}))
	if err != nil {
		return err
	}
	for _, name := range c.Files {
		if err := recordFile(recorder, name, s.err); err != nil {
			return err
		}
	}
	out := s.out
	if c.Out != "" {
		file, err := os.Create(c.Out)
		if err != nil {
			return err
		}
		defer closing(file.Close, &err)
		out = file
	}
	done, err := recorder.Write(out)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "%d requests, %d of them reads of v1, %d recorded\n", done.Seen, done.Kept, done.Distinct)
	if done.Full {
		fmt.Fprintln(s.err, "more requests differed than are recorded: give smaller files")
	}
	return nil
}

func recordFile(recorder *parity.Recorder, name string, errs io.Writer) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	err = recorder.Read(file, func(n int, reason string) {
		fmt.Fprintf(errs, "%s: %d: %s\n", name, n, reason)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

type replayCmd struct {
	parityFlags
	File string `arg:"" type:"existingfile" help:"What parity record made."`
}

// Run replays.
func (c replayCmd) Run(ctx context.Context, s streams) error {
	file, err := os.Open(c.File)
	if err != nil {
		return incomplete{err}
	}
	defer file.Close()
	config := c.config(s)
	config.Progress = nil
	r, err := parity.Replay(ctx, config, file, func(n int, reason string) {
		fmt.Fprintf(s.err, "%s:%d: %s\n", c.File, n, reason)
	})
	return c.report(s, r, err)
}
