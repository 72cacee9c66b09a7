package v1compat

import (
	"github.com/gin-gonic/gin"

	"partnerapi/v2/op"
)

// Every answer of success names the request of v2 that answers the same, in a
// Link (RFC 8288) with the relation successor-version (RFC 5829): decisions 11.3.
// The request is written from the very input that the route called v2 with, or,
// where the route's operation is v1's own, from the public one that a function
// beside its translators makes of it.

const (
	// maxLink is the longest value of the header in bytes.
	maxLink = 1000
	// maxLimit is the largest page of v2.
	maxLimit = 500

	linkStart, linkEnd = "</v2", `>; rel="successor-version"`
)

// reply is what a route answers.
type reply struct {
	out any
	// next is the input of the successor that answers the same; nil for none.
	next any
}

// ownCall is call for a route whose operation is v1's own: its callers are to call
// the successor. next is the successor's input for one that was called.
func ownCall[In, V2In, V2Out, Out, Next, NextOut any](
	f *Facade, meta Meta, o *op.Op[V2In, V2Out], to func(*In) *V2In, from func(*V2Out) *Out,
	successor *op.Op[Next, NextOut], next func(*V2In) *Next,
) {
	meta.Successor = successor
	callNext(f, meta, o, to, from, func(called *V2In) any { return next(called) })
}

// ownList is list for a route whose callers are to call the successor with another
// input than the route's operation was called with. next returns it, nil for none,
// and the Paging in it. Its page is nil where none was read.
func ownList[In, V2In, Row, Item, Next, NextRow any](
	f *Facade, meta Meta, o *op.Op[V2In, op.Page[Row]], to func(*In) (*V2In, *op.Paging), item func(Row) Item,
	successor *op.Op[Next, op.Page[NextRow]], next func(*V2In, *op.Page[Row]) (*Next, *op.Paging),
) {
	meta.Successor = successor
	listNext(f, meta, o, to, item, func(called *V2In, page *op.Page[Row]) (any, *op.Paging) {
		in, paging := next(called, page)
		if in == nil {
			return nil, nil
		}
		return in, paging
	})
}

// successorPage is the successor's page with the same objects as one of v1, which
// has that many rows; false where there is none. Where the orders differ that is the
// whole list only.
func successorPage(page asked, rows int, whole, reordered bool) (op.Paging, bool) {
	switch {
	case page.offset > 0, reordered && !whole:
		return op.Paging{}, false
	case page.limit <= maxLimit:
		return op.Paging{Limit: page.limit}, true
	}
	return op.Paging{Limit: maxLimit}, whole && rows <= maxLimit
}

// firstPage is the page of the successor for one of v1 of which no row was read:
// where the same objects cannot be promised, one of the usual size.
func firstPage(page asked, reordered bool) op.Paging {
	if p, ok := successorPage(page, 0, false, reordered); ok {
		return p
	}
	return op.Paging{Limit: defaultLimit}
}

// defaultLimit is the limit of v2's lists where none is given.
const defaultLimit = 100

// followed reports whether the route has a successor that is in the release that is
// served.
func (r *route) followed() bool {
	return !r.facade.Plain && !r.Additive && r.Successor.Meta().Since <= r.facade.Release
}

// link is the value of the header Link that leads to the successor with the
// input; empty where it is left out.
func (r *route) link(next any) string {
	if next == nil || !r.followed() {
		return ""
	}
	b, err := op.AppendTarget(append(make([]byte, 0, 256), linkStart...), r.Successor, next)
	if err != nil {
		return ""
	}
	if b = append(b, linkEnd...); len(b) > maxLink {
		return ""
	}
	return string(b)
}

// addLink adds the header that leads to the successor with the input.
func (r *route) addLink(c *gin.Context, next any) {
	if link := r.link(next); link != "" {
		c.Writer.Header().Add("Link", link)
	}
}
