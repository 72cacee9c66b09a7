package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	netmail "net/mail"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"
)

// letter is a mail that a mail server was given.
type letter struct{ id, to string } // the id is of the Message-ID, before the @

// postOffice is a real mail server, which does with each mail what the test
// wants.
type postOffice struct {
	t       *testing.T
	address string
	smtp    *smtp.Server
	// handle may accept a mail by take, and says whether to answer that it is
	// accepted.
	handle func(l letter, take func()) bool

	mu      sync.Mutex
	offered int
	taken   []letter
}

// takeAll accepts every mail.
func takeAll(_ letter, take func()) bool {
	take()
	return true
}

func openPostOffice(t *testing.T, handle func(letter, func()) bool) *postOffice {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &postOffice{t: t, address: listener.Addr().String(), handle: handle}
	p.smtp = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &visit{office: p}, nil }))
	p.smtp.ErrorLog = log.New(io.Discard, "", 0)
	go func() { _ = p.smtp.Serve(listener) }()
	t.Cleanup(p.close)
	return p
}

// close returns when the last client has gone: from then on nothing is taken.
func (p *postOffice) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.smtp.Shutdown(ctx); err != nil && !errors.Is(err, smtp.ErrServerClosed) {
		p.t.Errorf("close the mail server: %v", err)
	}
}

// locked does what mu guards.
func (p *postOffice) locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// await waits until the mail server was offered or took what reached wants, which may read what mu guards.
func (p *postOffice) await(reached func() bool) {
	p.t.Helper()
	await(p.t, "the mail server gets the mails", func() (is bool) {
		p.locked(func() { is = reached() })
		return is
	})
}

func (p *postOffice) all() []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.taken)
}

// count is how often the mail with an id was taken.
func (p *postOffice) count(id string) (n int) {
	for _, l := range p.all() {
		if l.id == id {
			n++
		}
	}
	return n
}

// visit is what a client does on one connection.
type visit struct {
	office *postOffice
	to     string
}

func (v *visit) Reset()                               {}
func (v *visit) Logout() error                        { return nil }
func (v *visit) Mail(string, *smtp.MailOptions) error { return nil }
func (v *visit) Rcpt(to string, _ *smtp.RcptOptions) error {
	v.to = to
	return nil
}

func (v *visit) Data(r io.Reader) error {
	m, err := netmail.ReadMessage(r)
	if err == nil {
		_, err = io.Copy(io.Discard, m.Body)
	}
	if err != nil {
		return err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(m.Header.Get("Message-ID"), "<"), "@")
	l := letter{id: id, to: v.to}
	v.office.locked(func() { v.office.offered++ })
	if !v.office.handle(l, func() { v.office.locked(func() { v.office.taken = append(v.office.taken, l) }) }) {
		return smtp.ErrDataReset
	}
	return nil
}
