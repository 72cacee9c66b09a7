package domain

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"
)

// Scope is a permission of a key.
type Scope string

// The scopes of decisions 1.7.
const (
	Read  Scope = "read"
	Write Scope = "write"
	// AnyScope is the scope of operations that every key with a scope may call. No key has it.
	AnyScope Scope = "any"
)

// Values lists the scopes of keys.
func (Scope) Values() []string { return texts(Read, Write) }

// Caller is the API key that makes a request, with its access.
type Caller struct {
	Key     KeyID
	Partner PartnerID
	// Prefix is the beginning of the key that is not secret, for lists and metrics. A key that was rotated has several
	// texts: it is that of the newest one.
	Prefix string
	// UsedPrefix is that of the text with which the request was sent, and FirstPrefix that of the text with which the key
	// was created. They may be empty if they equal Prefix.
	UsedPrefix, FirstPrefix string
	// AllClients is true if the key has access to all clients of its partner. Otherwise it reaches the clients that are
	// listed for it in the database.
	AllClients bool
	// Only limits the access to one client, to which the key has access, whatever is listed for the key. It is the zero ID
	// for no limit.
	Only   ClientID
	Scopes []Scope
	// Networks are the networks from which the key may be used; empty means any.
	Networks []netip.Prefix
	// ExpiresAt is the time at which the key or the used text expires; zero means never.
	ExpiresAt time.Time
	// Demo marks a key that works only on a server started for a demonstration.
	Demo bool
}

// Used returns the prefix of the text with which the request was sent, for the audit trail and the log.
func (c *Caller) Used() string { return cmp.Or(c.UsedPrefix, c.Prefix) }

// Name returns a name of the key that does not change when it is rotated, for budgets and positions: the prefix of its
// first text.
func (c *Caller) Name() string { return cmp.Or(c.FirstPrefix, c.Prefix) }

// Can reports whether the caller has the scope. AnyScope is satisfied by any scope.
func (c *Caller) Can(s Scope) bool {
	return slices.Contains(c.Scopes, s) || s == AnyScope && len(c.Scopes) > 0
}

// LimitTo returns the caller with the access of a key that is limited to one client. The caller must have access to it.
func (c *Caller) LimitTo(only ClientID) *Caller {
	limited := *c
	limited.AllClients, limited.Only = false, only
	return &limited
}

type onlyKey struct{}

// WithOnly returns a context in which the callers of requests are limited to one client (Caller.LimitTo).
func WithOnly(ctx context.Context, only ClientID) context.Context {
	return context.WithValue(ctx, onlyKey{}, only)
}

// OnlyFrom returns the client to which callers are limited in ctx; the zero ID without a limit.
func OnlyFrom(ctx context.Context) ClientID {
	only, _ := ctx.Value(onlyKey{}).(ClientID)
	return only
}

// KeyEndsSoon is how long before its expiry a key is reported as expiring soon.
const KeyEndsSoon = 30 * 24 * time.Hour

type callerKey struct{}

// WithCaller returns a context in which c makes the request.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// WithRequest returns a context in which c makes the request with the given id.
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

// Value returns the caller for callerKey, the request for requestKey, and the values of the parent context.
func (r *request) Value(key any) any {
	switch key.(type) {
	case callerKey:
		return r.caller
	case requestKey:
		return r
	}
	return r.Context.Value(key)
}

// RequestFrom returns the id of the request of ctx, as in its response, or "" if there is none.
func RequestFrom(ctx context.Context) string {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r.id
	}
	return ""
}

// CallerFrom returns the caller of ctx. If there is none, it returns a caller without access.
func CallerFrom(ctx context.Context) *Caller {
	if c, ok := ctx.Value(callerKey{}).(*Caller); ok {
		return c
	}
	return &Caller{}
}
