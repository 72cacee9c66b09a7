package mcp

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Toolsets: the groups of operations, of which a caller may ask for some, so that an
// agent pays for the descriptions of those tools only that it needs.

// usualToolsets are those of a caller who names none (decisions 12.1).
var usualToolsets = []string{"clients", "users", "risk", "training", "phishing", "reports"}

// allToolsets is the name that stands for all.
const allToolsets = "all"

// toolsets is a set of names.
type toolsets map[string]bool

// view is what a message may see.
type view struct {
	rights
	// schemas says that tools have output schemas, and results structured content.
	schemas  bool
	toolsets toolsets
}

// rights are those of a key and its session.
type rights struct {
	read, write, allClients bool
	readOnly                bool
}

func (r rights) allow(m *op.Meta) bool {
	switch {
	case m.AllClients && !r.allClients, m.Scope == domain.Write && r.readOnly:
		return false
	case m.Scope == domain.Write:
		return r.write
	}
	return r.read
}

func (v view) shows(m *op.Meta) bool { return v.toolsets[m.Resource()] && v.allow(m) }

// toolsetsOf are the toolsets that a request asks for: by ?toolsets, or else by the
// header X-MCP-Toolsets. InvalidRequest for one that there is not.
func (s *Server) toolsetsOf(r *http.Request) (toolsets, error) {
	asked := cmp.Or(r.URL.Query().Get("toolsets"), r.Header.Get("X-MCP-Toolsets"))
	if strings.TrimSpace(asked) == "" {
		return s.usual, nil
	}
	chosen := toolsets{}
	for name := range strings.SplitSeq(asked, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == allToolsets:
			return s.all, nil
		case name != "" && !s.all[name]:
			names := slices.Sorted(maps.Keys(s.all))
			return nil, domain.ErrInvalid("toolsets", "must be all, or of "+strings.Join(names, ", "))
		}
		chosen[name] = true
	}
	return chosen, nil
}
