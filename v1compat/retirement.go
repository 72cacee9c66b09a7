package v1compat

import (
	"github.com/gin-gonic/gin"

	"partnerapi/v1compat/retire"
)

// guide is the migration guide, where the pages show it.
const guide = "/docs/migrating"

// untouched is v1 without any retirement.
var untouched = retire.NewState(retire.Facts{})

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
	link := func(anchor string) []string {
		return []string{"<" + guide + anchor + `>; rel="deprecation"; type="text/html"`}
	}
	links := map[string][]string{"": link("")}
	for _, r := range f.routes {
		if !r.Additive {
			links[r.ID] = link("#" + r.anchor())
		}
	}
	return links
}

// anchor is where the guide describes the route.
func (r *route) anchor() string { return Anchor(r.Method, "/v1"+r.Path) }

// mark adds to the headers of a response that v1 ends, and when, once that is
// announced (decisions 11.2). links are marks.
func (f *Facade) mark(c *gin.Context, operation string, links map[string][]string) {
	deprecation, sunset := f.retirement().Headers()
	if deprecation == nil {
		return
	}
	link, ok := links[operation]
	if !ok {
		link = links[""]
	}
	h := c.Writer.Header()
	h["Deprecation"], h["Sunset"], h["Link"] = deprecation, sunset, link
}
