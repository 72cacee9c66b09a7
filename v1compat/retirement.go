package v1compat

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v1compat/retire"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/op/openapi"
)

// guide is the migration guide, where the pages show it. It has a page for each resource.
const guide = "/docs/migrating"

// untouched is v1 without any retirement.
var untouched = &retire.State{}

// retirement is how far the retirement of v1 is now.
func (f *Facade) retirement() *retire.State {
	if f.Lifecycle == nil {
		return untouched
	}
	return f.Lifecycle()
}

// marks are the values of the header Link that lead from operations to the guide,
// by the names of routes; that of "" leads from all others. Nothing appends to them
// in place.
func (f *Facade) marks() map[string][]string {
	link := func(place string) []string { return []string{"<" + place + `>; rel="deprecation"; type="text/html"`} }
	links := map[string][]string{"": link(guide)}
	for _, r := range f.routes {
		links[r.ID] = link(r.Guide)
	}
	return links
}

// guidePage is the page of the guide that describes the route.
func (r *route) guidePage() string {
	if r.ID == "sentemails" {
		return "mails"
	}
	return strings.ReplaceAll(r.operation.Meta().Resource(), "_", "-")
}

// mark adds to the headers of a response that v1 ends, and when, once that is
// announced (decisions 11.2). links are marks.
func (f *Facade) mark(c *gin.Context, operation string, links map[string][]string) {
	a := f.retirement().Announcement
	if a == nil {
		return
	}
	link, ok := links[operation]
	if !ok {
		link = links[""]
	}
	h := c.Writer.Header()
	h.Set("Deprecation", a.Deprecation())
	h.Set("Sunset", a.SunsetHeader())
	h["Link"] = link
}

// gone is the code of what a key's phase refuses: v1's own, as v2 has no phases.
const gone domain.Code = "gone"

// httpStatus is the HTTP status of a code of v1.
func httpStatus(code domain.Code) int {
	if code == gone {
		return http.StatusGone
	}
	return ginop.StatusOf(code)
}

// goneFailure is the failure as v1's document has it.
var goneFailure = openapi.Failure{
	Status: http.StatusGone, Code: gone,
	Description: "`gone`: version 1 does not answer this key any more, or not now. `message` says what " +
		"to call in version 2. With `Retry-After`, it answers again after so many seconds.",
	Message: "version 1 is switched off for this key: call GET /v2/clients in its place",
}

// refused reports what the phase of the key has v1 answer to a request, beside its
// headers; nil where it is not refused (decisions 11.6).
func (r *route) refused(c *gin.Context) error {
	state := r.facade.retirement()
	if r.Additive || state.Idle() {
		return nil
	}
	key, now := retire.KeyOf(domain.CallerFrom(c.Request.Context())), r.facade.Clock.Now()
	refusal, refused := state.Refused(key, r.operation.Meta().Scope == domain.Write, now)
	if !refused {
		return nil
	}
	r.linkWhenGone(c)
	e := &domain.Error{Code: gone, Message: r.whyGone(state, refusal)}
	if !refusal.Until.IsZero() {
		e.RetryAfter = refusal.Until.Sub(now)
	}
	return e
}

// whyGone says what happened to version 1, what to call in its place, when it ends,
// and where to read more.
func (r *route) whyGone(state *retire.State, refusal retire.Refusal) string {
	var text strings.Builder
	text.WriteString(happened(state, refusal))

	m := r.Successor.Meta()
	text.WriteString(": call " + placed(m.Method, "/v2", m.Path) + " in its place")
	if m.Since > r.facade.Release {
		text.WriteString(", which comes with release " + m.Since.String() + " of version 2")
	}
	if a := state.Announcement; a != nil {
		text.WriteString("; the sunset of version 1 is " + retire.Moment(a.Sunset))
	}
	text.WriteString("; see " + r.Guide)
	return text.String()
}

// happened is why version 1 does not answer.
func happened(state *retire.State, refusal retire.Refusal) string {
	until := ""
	if !refusal.Until.IsZero() {
		until = " until " + refusal.Until.Format(time.RFC3339)
	}
	if state.EndedAt != nil {
		return "version 1 has ended"
	}
	switch refusal.Phase {
	case retire.ReadOnly:
		return "version 1 takes no more writes from this key" + until
	case retire.Brownout:
		return "version 1 is away" + until + ", as an exercise for its end"
	}
	return "version 1 is switched off for this key" + until
}

// anchor is where a page of the migration guide describes an operation of v1: the id that
// the pages' Markdown gives the heading "METHOD PATH", such as "GET
// /v1/clients/{client_id}/users". Letters are in lower case, a space, a hyphen and an
// underscore are a hyphen, and other signs go, so parameters may be written
// :client_id too.
func anchor(method, path string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		case r == ' ', r == '-', r == '_':
			return '-'
		}
		return -1
	}, method+" "+path)
}
