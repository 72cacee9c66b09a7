package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// workers is how many requests are under way at a time where throughput is
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

func (b *bench) newLoad(server *child, requests [][]byte) (*load, error) {
	l := &load{server: server.pid(), database: b.data.server, requests: requests}
	for range workers {
		c, err := dial(server.address)
		if err != nil {
			return nil, err
		}
		l.connections = append(l.connections, c)
	}
	return l, nil
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
func (l *load) run(ctx context.Context, long time.Duration) (float64, error) {
	var group sync.WaitGroup
	var answered atomic.Int64
	var failed atomic.Pointer[error]
	l.serverTime -= processor(l.server)
	l.databaseTime -= childProcessors(l.database)
	begin := time.Now()
	for _, c := range l.connections {
		group.Go(func() {
			for failed.Load() == nil && ctx.Err() == nil && time.Since(begin) < long {
				r := l.requests[int(l.next.Add(1))%len(l.requests)]
				if err := c.send(r, io.Discard); err != nil {
					failed.Store(&err)
					return
				}
				answered.Add(1)
			}
		})
	}

	group.Wait()
	took := time.Since(begin)
	l.serverTime += processor(l.server)
	l.databaseTime += childProcessors(l.database)
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(answered.Load()) / took.Seconds(), ctx.Err()
}

// againstReference compares requests a second with the hand-written server, once it
// is sure that both answer the same.
func (b *bench) againstReference(paths ...string) finder {
	return func(ctx context.Context) (figure, error) { return b.against(ctx, b.reference, paths) }
}

// againstUsual is againstReference, with the hand-written server that has the usual
// middlewares, which runs only meanwhile. The header is that of all requests.
func (b *bench) againstUsual(header string, paths ...string) finder {
	return func(ctx context.Context) (figure, error) {
		usual, err := b.serve("usual")
		if err != nil {
			return figure{}, err
		}
		f, err := b.against(ctx, usual, paths, header)
		return f, errors.Join(err, usual.stop())
	}
}

func (b *bench) against(ctx context.Context, reference *child, paths []string, headers ...string) (f figure, err error) {
	for _, path := range paths[:min(len(paths), 20)] {
		if err := b.same(reference, b.get(path)); err != nil {
			return f, err
		}
	}
	requests := make([][]byte, len(paths))
	for i, path := range paths {
		requests[i] = request("GET", path, b.keys[0], nil, headers...)
	}
	ours, err := b.newLoad(b.service, requests)
	if err != nil {
		return f, err
	}
	defer ours.close()
	theirs, err := b.newLoad(reference, requests)
	if err != nil {
		return f, err
	}
	defer theirs.close()
	f, err = rates(ctx, b.times(40), ours, theirs)
	fmt.Fprintf(b.progress, "  processor time per request: service %s, reference %s\n", ours, theirs)
	return f, err
}

// rates runs two loads in alternating rounds, of which the first is not counted. It
// shows the medians of their rates, and that of the rounds' ratios, which what else
// the machine does hardly moves.
func rates(ctx context.Context, rounds int, loads ...*load) (figure, error) {
	var all [2][]float64
	var ratios []float64
	for round := range rounds + 1 {
		var now [2]float64
		for turn := range loads {
			of := (round + turn) % len(loads)
			got, err := loads[of].run(ctx, 250*time.Millisecond)
			if err != nil {
				return figure{}, err
			}
			now[of] = got
		}
		if round > 0 {
			all[0], all[1] = append(all[0], now[0]), append(all[1], now[1])
			ratios = append(ratios, now[0]/now[1])
		}
	}
	return figure{value: median(ratios), ours: fmt.Sprintf("%.0f/s", median(all[0])),
		reference: fmt.Sprintf("%.0f/s", median(all[1]))}, nil
}

// same reports servers that answer a request differently, but for cursors,
// which each writes its own way.
func (b *bench) same(reference *child, request []byte) error {
	var answers [2]object
	for i, server := range []*child{b.service, reference} {
		if err := ask(server.address, request, &answers[i]); err != nil {
			return err
		}
		if p, ok := answers[i]["page"].(object); ok {
			p["next_cursor"] = p["next_cursor"] != nil
		}
	}
	if !reflect.DeepEqual(answers[0], answers[1]) {
		return fmt.Errorf("the service and the reference answer differently:\n%v\n%v", answers[0], answers[1])
	}
	return nil
}
