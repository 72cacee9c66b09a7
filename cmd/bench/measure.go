package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"partnerapi/domain"
)

// bench is what the measures share.
type bench struct {
	options
	data               *data
	service, reference *child
	// keys are several, for walks by offset are each key's own.
	keys     [3]string
	progress io.Writer
}

// prepare fills the database and starts both servers.
func prepare(ctx context.Context, o options, progress io.Writer) (b *bench, err error) {
	b = &bench{options: o, progress: progress}
	if b.data, err = openData(ctx, o, progress); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	for i := range b.keys {
		if b.keys[i], err = b.data.key(ctx, fmt.Sprintf("bench %d", i), domain.Read); err != nil {
			return b, err
		}
	}
	env := []string{envURL + "=" + b.data.url, envPartner + "=" + b.data.partner.UUID()}
	if o.profiles != "" {
		if err = os.MkdirAll(o.profiles, 0o755); err != nil {
			return b, err
		}
		env = append(env, envProfile+"=yes")
	}
	if b.service, err = start("serve-service", progress, env...); err != nil {
		return b, err
	}
	b.reference, err = start("serve-reference", progress, env...)
	return b, err
}

func (b *bench) close() error {
	var errs []error
	for _, c := range []*child{b.service, b.reference} {
		if c != nil {
			errs = append(errs, c.stop())
		}
	}
	return errors.Join(append(errs, b.data.close())...)
}

// measure is one thing to be measured.
type measure struct {
	name string
	// prepare makes the data that run needs beside the seed's; nil for none.
	prepare func(context.Context, io.Writer) error
	run     func(context.Context) ([]result, error)
}

// measureAll runs the measures, those that change the data after the others,
// and looks at the memory last.
func (b *bench) measureAll(ctx context.Context) ([]result, error) {
	results, err := b.perform(ctx, slices.Concat(b.againstReference(), b.reads(), b.agents(), b.transfers()))
	if err == nil && older.measure != nil {
		var more []result
		more, err = older.measure(ctx, b)
		results = append(results, more...)
	}
	if err == nil {
		var more []result
		more, err = b.perform(ctx, slices.Concat(
			b.writes(), []measure{{"sending", nil, b.drain}, {"ingesting", nil, b.ingest}},
			b.reports(), b.frameworks(), b.syncs(), b.events(), b.deliveries(),
		))
		results = append(results, more...)
	}
	if err != nil {
		return nil, err
	}
	peak, err := b.service.peakMB()
	if err != nil {
		return nil, err
	}
	return append(results, result{name: "peak resident memory, MB", ours: fmt.Sprintf("%.0f", peak), value: peak,
		bar: 150}), nil
}

// perform runs those of the measures that are wanted.
func (b *bench) perform(ctx context.Context, measures []measure) (results []result, err error) {
	for _, m := range measures {
		if !strings.Contains(m.name, b.only) {
			continue
		}
		if m.prepare != nil {
			if err := m.prepare(ctx, b.progress); err != nil {
				return nil, fmt.Errorf("prepare %s: %w", m.name, err)
			}
		}
		fmt.Fprintln(b.progress, "measuring", m.name)
		end := b.profiled(m.name)
		got, err := m.run(ctx)
		if err := errors.Join(err, end()); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		results = append(results, got...)
	}
	return results, nil
}

// times is how often something is timed.
func (o options) times(n int) int {
	if o.quick {
		return n / 5
	}
	return n
}

// profiled profiles the service, where that is wanted, until the function it
// returns is called.
func (b *bench) profiled(name string) (end func() error) {
	if b.profiles == "" {
		return func() error { return nil }
	}
	seconds := 10
	if b.quick {
		seconds = 3
	}
	done := make(chan error, 1)
	go func() { done <- b.profile(name, seconds) }()
	return func() error { return <-done }
}

func (b *bench) profile(name string, seconds int) error {
	response, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", b.service.said, seconds))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	file, err := os.Create(filepath.Join(b.profiles, fileName(name)+".pprof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}

// againstReference compares requests a second with the hand-written server.
func (b *bench) againstReference() (measures []measure) {
	ids := make([]string, len(b.data.clients))
	for i, id := range b.data.clients {
		ids[i] = "/v2/clients/" + id.String()
	}
	users := "/v2/clients/" + b.data.clients[0].String() + "/users?limit="
	for _, m := range []struct {
		name  string
		paths []string
		bar   float64
	}{
		{"GET /v2/clients/{id}", ids, 0.9},
		{"GET /v2/clients?limit=100", []string{"/v2/clients?limit=100"}, 1},
		{"GET /v2/clients/{id}/users?limit=50", []string{users + "50"}, 0.9},
		{"GET /v2/clients/{id}/users?limit=500", []string{users + "500"}, 0.9},
	} {
		fresh := func(ctx context.Context, _ io.Writer) error { return b.data.db.ForceSummaries(ctx) }
		measures = append(measures, measure{m.name, fresh, func(ctx context.Context) ([]result, error) {
			got, err := b.rates(ctx, m.paths)
			return []result{{
				name: m.name, ours: perSecond(got.a), reference: perSecond(got.b), value: got.ratio, bar: m.bar, atLeast: true,
			}}, err
		}})
	}
	return measures
}

// rates runs the same requests against both servers, once it is sure that
// they say the same.
func (b *bench) rates(ctx context.Context, paths []string) (compared, error) {
	requests := make([][]byte, len(paths))
	for i, path := range paths {
		requests[i] = request(path, b.keys[0])
	}
	for _, r := range requests[:min(len(requests), 20)] {
		if err := b.same(r); err != nil {
			return compared{}, err
		}
	}
	ours, err := newLoad(b.service, b.data.server, requests)
	if err != nil {
		return compared{}, err
	}
	defer ours.close()
	theirs, err := newLoad(b.reference, b.data.server, requests)
	if err != nil {
		return compared{}, err
	}
	defer theirs.close()
	rounds, long := 40, 250*time.Millisecond
	if b.quick {
		rounds = 10
	}
	got, err := inTurns(ctx, ours, theirs, rounds, long)
	a, aDatabase := ours.perRequest()
	r, rDatabase := theirs.perRequest()
	fmt.Fprintf(b.progress, "  processor time per request: service %s and database %s, reference %s and database %s\n",
		a, aDatabase, r, rDatabase)
	return got, err
}

// same reports servers that answer a request differently, but for cursors,
// which each writes its own way.
func (b *bench) same(request []byte) error {
	var answers [2]map[string]any
	for i, address := range []string{b.service.said, b.reference.said} {
		c, err := dial(address)
		if err != nil {
			return err
		}
		var body bytes.Buffer
		err = errors.Join(c.send(request, &body), c.Close())
		if err != nil {
			return err
		}
		if err := json.Unmarshal(body.Bytes(), &answers[i]); err != nil {
			return err
		}
		if p, ok := answers[i]["page"].(map[string]any); ok {
			p["next_cursor"] = p["next_cursor"] != nil
		}
	}
	if !reflect.DeepEqual(answers[0], answers[1]) {
		return fmt.Errorf("the service and the reference answer differently:\n%v\n%v", answers[0], answers[1])
	}
	return nil
}
