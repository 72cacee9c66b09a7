package v1compat

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v1compat/retire"
	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
)

// guide is the path of the migration guide, which has a page for each resource.
const guide = "/docs/migrating"

// notRetired is the state without any retirement.
var notRetired = &retire.State{}

// retirement returns the current state of v1's retirement.
func (f *Facade) retirement() *retire.State {
	if f.Keeper == nil {
		return notRetired
	}
	return f.Keeper.State()
}

// guideLinks returns the Link header values that lead to the guide, by route name; the entry "" is for everything
// else. Appending to a value copies it: its capacity is its length.
func (f *Facade) guideLinks() map[string][]string {
	link := func(place string) []string {
		return []string{"<" + f.Root + place + `>; rel="deprecation"; type="text/html"`}
	}
	links := map[string][]string{"": link(guide)}
	for _, r := range f.routes {
		links[r.ID] = link(r.Guide)
	}
	return links
}

// guidePage returns the guide's page about the route, which is named after the resource.
func (r *route) guidePage() string {
	if r.ID == "sentemails" { // not under users, the tag of its operation
		return "mails"
	}
	return strings.ReplaceAll(r.operation.Meta().Resource(), "_", "-")
}

// setRetirementHeaders sets the Deprecation, Sunset and Link headers once v1's end is announced (decisions 11.1). links
// has the values of Link by route, from guideLinks; "" is for everything else.
func (f *Facade) setRetirementHeaders(c *gin.Context, operation string, links map[string][]string) {
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

// codeGone is the error code of a request that the key's phase refuses: v1's own, as v2 has no phases.
const codeGone domain.Code = "gone"

// httpStatus returns the HTTP status of a code of v1.
func httpStatus(code domain.Code) int {
	if code == codeGone {
		return http.StatusGone
	}
	return op.StatusOf(code)
}

// goneFailure describes codeGone in v1's document.
var goneFailure = openapi.Failure{
	Status: http.StatusGone, Code: codeGone,
	Description: "`gone`: version 1 no longer accepts requests with this API key, or temporarily rejects them; `message` says what " +
		"to call in version 2. `Retry-After`, if present, is the number of seconds until requests are accepted again.",
	Message: "version 1 is switched off for this key; call GET /v2/clients instead",
}

// checkPhase returns the error of a request that v1 refuses for the key's phase or rehearsal (decisions 11.6), and links
// the successor; nil if the request is allowed. An Additive route has neither phases nor a successor.
func (r *route) checkPhase(c *gin.Context) error {
	state := r.facade.retirement()
	if r.Additive || state.Unrestricted() {
		return nil
	}
	key, now := retire.KeyOf(domain.CallerFrom(c.Request.Context())), r.facade.Clock.Now()
	refusal, refused := state.Refused(key, r.operation.Meta().Scope == domain.Write, now)
	if !refused {
		return nil
	}
	if r.facade.Usage != nil {
		r.facade.Usage.CountRefusal(refusal.Cause)
	}
	addLink(c, r.goneLink(c))
	e := &domain.Error{Code: codeGone, Message: r.goneMessage(state, refusal)}
	if !refusal.Until.IsZero() {
		e.RetryAfter = refusal.Until.Sub(now)
	}
	return e
}

// goneMessage returns the reason why version 1 refuses, the call to make instead, the sunset, and the guide's address.
func (r *route) goneMessage(state *retire.State, refusal retire.Refusal) string {
	var text strings.Builder
	text.WriteString(goneReason(state, refusal))

	m := r.Successor.Meta()
	text.WriteString("; call " + methodAndPath(m.Method, "/v2", m.Path) + " instead")
	if m.Since > r.facade.Release {
		text.WriteString(", which comes with release " + m.Since.String() + " of version 2")
	}
	if a := state.Announcement; a != nil {
		text.WriteString("; the sunset of version 1 is " + retire.FormatTime(a.Sunset))
	}
	text.WriteString("; see " + r.facade.Root + r.Guide)
	return text.String()
}

// goneReason returns the reason why version 1 refuses.
func goneReason(state *retire.State, refusal retire.Refusal) string {
	until := ""
	if !refusal.Until.IsZero() {
		until = " until " + refusal.Until.Format(time.RFC3339)
	}
	if state.EndedAt != nil {
		return "version 1 has ended"
	}
	if refusal.Rehearsal {
		return "version 1 is switched off for this key" + until + ", as a rehearsal that you can end with DELETE /v1/rehearsal"
	}
	switch refusal.Phase {
	case retire.ReadOnly:
		return "version 1 does not accept writes with this key" + until
	case retire.Brownout:
		return "version 1 is unavailable" + until + ", in preparation for its end"
	}
	return "version 1 is switched off for this key" + until
}

// anchor returns the fragment of a migration guide page for an operation of v1: the id that Markdown gives to the
// heading "METHOD PATH", such as "GET /v1/clients/{client_id}/users". Letters become lower case; a space, a hyphen
// and an underscore become a hyphen; other characters are dropped, so parameters may be written :client_id too.
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
