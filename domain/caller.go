package domain

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// Scope is what a key may do.
type Scope string

// The scopes of decisions 1.7.
const (
	Read  Scope = "read"
	Write Scope = "write"
	// AnyScope is required by operations that every key may call. No key has it.
	AnyScope Scope = "any"
)

// Values lists the scopes of keys.
func (Scope) Values() []string { return texts(Read, Write) }

// Caller is who makes a request: one API key, and what it reaches.
type Caller struct {
	Key     KeyID
	Partner PartnerID
	// Prefix is the clear start of the key, for logs and metrics.
	Prefix string
	// AllClients says that the key reaches every client of its partner;
	// otherwise it reaches those listed for it in the database.
	AllClients bool
	Scopes     []Scope
	// Networks are those that the key may be used from; empty means everywhere.
	Networks []netip.Prefix
	// ExpiresAt is when the key stops working; zero means never.
	ExpiresAt time.Time
	// Demo marks a key that works only on a server started for a demonstration.
	Demo bool
}

// Can reports whether the caller has the scope; any scope satisfies AnyScope.
func (c *Caller) Can(s Scope) bool {
	return slices.Contains(c.Scopes, s) || s == AnyScope && len(c.Scopes) > 0
}

// KeyEndsSoon is how long before its expiry a key is reported as ending.
const KeyEndsSoon = 30 * 24 * time.Hour

type callerKey struct{}

// WithCaller returns a context in which c makes the request.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// WithRequest is WithCaller for a request that has an id.
func WithRequest(ctx context.Context, c *Caller, id string) context.Context {
	return &request{ctx, c, id}
}

// request is the context of a request: one allocation for its caller and its id.
type request struct {
	context.Context
	caller *Caller
	id     string
}

type requestKey struct{}

// Value returns the caller and the request under their keys.
func (r *request) Value(key any) any {
	switch key.(type) {
	case callerKey:
		return r.caller
	case requestKey:
		return r
	}
	return r.Context.Value(key)
}

// RequestFrom returns the id of the request that ctx belongs to, as its response
// shows it; empty where there is none.
func RequestFrom(ctx context.Context) string {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r.id
	}
	return ""
}

// CallerFrom returns who makes the request. A context without a caller has
// one that reaches nothing and may do nothing.
func CallerFrom(ctx context.Context) *Caller {
	if c, ok := ctx.Value(callerKey{}).(*Caller); ok {
		return c
	}
	return &Caller{}
}
