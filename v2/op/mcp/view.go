package mcp

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Toolsets are the operations by resource. A caller may select some of them, and single tools, so that an agent reads only
// the descriptions of the tools that it needs.

// DefaultToolsets are the toolsets of a caller who names neither toolsets nor tools (decisions 12).
var DefaultToolsets = []string{"key", "clients", "users", "risk", "training", "phishing", "reports"}

// allToolsets is the name for all toolsets.
const allToolsets = "all"

// names is a set of names of toolsets or tools.
type names map[string]bool

// selection is the tools that a caller selects.
type selection struct {
	toolsets, tools names
	// guides says that the search of the guides is selected.
	guides bool
}

// view selects the tools that a message lists, and their form.
type view struct {
	rights
	selection
	// schemas says that tools have output schemas, and that results have structured content.
	schemas bool
}

// rights are what the scopes and the access of a key permit in a session.
type rights struct {
	read, write, allClients bool
	readOnly                bool
}

// allow reports whether the rights permit the operation. In a read-only session they permit no write, whatever the key.
func (r rights) allow(m *op.Meta) bool {
	switch {
	case m.AllClients && !r.allClients, m.Scope == domain.Write && r.readOnly:
		return false
	case m.Scope == domain.Write:
		return r.write
	case m.Scope == domain.AnyScope:
		return r.read || r.write
	}
	return r.read
}

// shows reports whether the view lists the tool.
func (v view) shows(t *tool) bool {
	if t.operation == nil {
		return v.guides
	}
	m := t.operation.Meta()
	return (v.toolsets[m.Resource()] || v.tools[t.Name]) && v.allow(m)
}

// viewOf returns the tools that a view shows, in its form.
func (s *Server) viewOf(v view, all []*sdk.Tool) []*sdk.Tool {
	shown := []*sdk.Tool{} // not null
	for _, listed := range all {
		switch t := s.byName[listed.Name]; {
		case !v.shows(t):
		case v.schemas:
			shown = append(shown, t.withSchemas)
		default:
			shown = append(shown, t.withoutSchemas)
		}
	}
	return shown
}

// named returns the names that a request has in a query parameter, otherwise in a header, separated by commas or by
// repetition.
func named(query url.Values, h http.Header, parameter, header string) names {
	found := names{}
	given := cmp.Or(strings.Join(query[parameter], ","), strings.Join(h.Values(header), ","))
	for name := range strings.SplitSeq(given, ",") {
		if name = strings.TrimSpace(name); name != "" {
			found[name] = true
		}
	}
	return found
}

// selectionOf returns the tools that a request selects: the toolsets in ?toolsets, otherwise in the header X-MCP-Toolsets,
// and the tools in ?tools, otherwise in X-MCP-Tools. If it names tools only, it selects no others. Without a name it
// selects the default toolsets. For an unknown name, selectionOf returns InvalidRequest.
func (s *Server) selectionOf(query url.Values, h http.Header) (out selection, err error) {
	out = selection{toolsets: named(query, h, "toolsets", "X-MCP-Toolsets"), guides: true}
	for _, name := range slices.Sorted(maps.Keys(out.toolsets)) {
		if name != allToolsets && !s.all[name] {
			known := slices.Sorted(maps.Keys(s.all))
			return out, domain.ErrInvalid("toolsets", "must be all, or one or more of "+strings.Join(known, ", "))
		}
	}
	if s.Release >= op.V2_5 {
		out.tools = named(query, h, "tools", "X-MCP-Tools")
	}
	for _, name := range slices.Sorted(maps.Keys(out.tools)) {
		if s.byName[name] == nil {
			return out, domain.ErrInvalid("tools", "must be tool names, such as clients_list; there is no tool "+domain.Cut(name, maxToolName))
		}
	}
	switch {
	case out.toolsets[allToolsets]:
		out.toolsets = s.all
	case len(out.toolsets) > 0:
	case len(out.tools) > 0:
		out.guides = out.tools[guidesTool]
	default:
		out.toolsets = s.defaults
	}
	return out, nil
}

// maxToolName is how much of an unknown name an error shows, in characters.
const maxToolName = 64
