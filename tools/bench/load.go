package main

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// workers is how many requests are in progress at a time where throughput is
// measured.
const workers = 8

// load is a number of connections that send the same requests, round robin.
type load struct {
	server, database int // their processes
	connections      []*connection
	requests         [][]byte
	next             atomic.Int64
	// The processor time that the runs took, of the server and the database.
	serverTime, databaseTime time.Duration
}

func (b *bench) newLoad(server *child, requests [][]byte) *load {
	l := &load{server: server.pid(), database: b.data.server, requests: requests}
	for range workers {
		l.connections = append(l.connections, dial(server.address))
	}
	return l
}

func (l *load) close() {
	for _, c := range l.connections {
		_ = c.Close()
	}
}

// String shows the processor time that a request took.
func (l *load) String() string {
	n := time.Duration(max(l.next.Load(), 1))
	return fmt.Sprintf("%s and database %s", l.serverTime/n, l.databaseTime/n)
}

// run sends requests for a while and returns how many were answered a second.
func (l *load) run(ctx context.Context, long time.Duration) float64 {
	group, ctx := errgroup.WithContext(ctx)
	var answered atomic.Int64
	l.serverTime -= processor(l.server)
	l.databaseTime -= childProcessors(l.database)
	begin := time.Now()
	for _, c := range l.connections {
		group.Go(func() error {
			for ctx.Err() == nil && time.Since(begin) < long {
				r := l.requests[int(l.next.Add(1))%len(l.requests)]
				if err := c.send(r, io.Discard); err != nil {
					return err
				}
				answered.Add(1)
			}
			return ctx.Err()
		})
	}

	check(group.Wait())
	took := time.Since(begin)
	l.serverTime += processor(l.server)
	l.databaseTime += childProcessors(l.database)
	return float64(answered.Load()) / took.Seconds()
}

// againstReference compares requests a second with the hand-written server, once it
// is sure that both answer the same.
func (b *bench) againstReference(paths ...string) finder {
	return func(ctx context.Context) figure { return b.against(ctx, b.reference, paths) }
}

// againstUsual is againstReference, with the hand-written server that has the usual
// middlewares, which runs only meanwhile. The header is that of all requests.
func (b *bench) againstUsual(header string, paths ...string) finder {
	return b.beside("usual", func(ctx context.Context, usual *child) figure {
		return b.against(ctx, usual, paths, header)
	})
}

func (b *bench) against(ctx context.Context, reference *child, paths []string, headers ...string) figure {
	for _, path := range paths[:min(len(paths), 20)] {
		b.same(reference, b.get(path))
	}
	requests := make([][]byte, len(paths))
	for i, path := range paths {
		requests[i] = request("GET", path, b.keys[0], nil, headers...)
	}
	ours, theirs := b.newLoad(b.service, requests), b.newLoad(reference, requests)
	defer ours.close()
	defer theirs.close()
	f := rates(ctx, b.times(40), ours, theirs)
	fmt.Fprintf(b.progress, "  processor time per request: service %s, reference %s\n", ours, theirs)
	return f
}

// rates runs two loads in alternating rounds, of which the first is not counted. It
// shows the medians of their rates, and that of the rounds' ratios, which what else
// the machine does hardly moves.
func rates(ctx context.Context, rounds int, loads ...*load) figure {
	var all [2][]float64
	var ratios []float64
	for round := range rounds + 1 {
		var now [2]float64
		for turn := range loads {
			of := (round + turn) % len(loads)
			now[of] = loads[of].run(ctx, 250*time.Millisecond)
		}
		if round > 0 {
			all[0], all[1] = append(all[0], now[0]), append(all[1], now[1])
			ratios = append(ratios, now[0]/now[1])
		}
	}
	return figure{value: median(ratios), ours: fmt.Sprintf("%.0f/s", median(all[0])),
		reference: fmt.Sprintf("%.0f/s", median(all[1]))}
}

// same fails for servers that answer a request differently, but for cursors, which each writes its own way, and the time
// of the reading.
func (b *bench) same(reference *child, request []byte) {
	var answers [2]object
	for i, server := range []*child{b.service, reference} {
		answers[i] = ask[object](server.address, request)
		if p, ok := answers[i]["page"].(object); ok {
			p["next_cursor"], p["as_of"] = p["next_cursor"] != nil, p["as_of"] != nil
		}
	}
	if !reflect.DeepEqual(answers[0], answers[1]) {
		fail("the service and the reference answer differently:\n%v\n%v", answers[0], answers[1])
	}
}
