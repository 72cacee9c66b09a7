package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// guidesTool is the name of the tool that searches the guides. It runs no operation.
const guidesTool = "docs_search"

// Passage is a part of a guide.
type Passage struct {
	// Title is the title of the guide, and of the section if the passage is not its beginning.
	Title string `json:"title"`
	// URL is the address of the passage on the page of the guide.
	URL  string `json:"url"`
	Text string `json:"text"`
}

const (
	// maxQuery is the maximum length of a query, in characters.
	maxQuery = 200
	// defaultPassages is the number of passages without a limit, and mostPassages the maximum limit.
	defaultPassages, mostPassages = 5, 10
)

// guidesInput and guidesOutput are the schemas of the tool's arguments and of its structured result.
const (
	guidesInput = `{"type":"object","properties":{
		"limit":{"type":"integer","minimum":1,"maximum":10,"description":"Default: 5."},
		"query":{"type":"string","description":"A few search words, such as verify webhook signature."}},
		"required":["query"],"additionalProperties":false}`
	guidesOutput = `{"type":"object","properties":{"passages":{"type":"array","items":{"type":"object","properties":{
		"text":{"type":"string"},"title":{"type":"string"},"url":{"type":"string"}},"required":["text","title","url"]}}},
		"required":["passages"]}`
)

// addGuidesTool adds the tool that searches the guides, in the releases that have it.
func (s *Server) addGuidesTool() error {
	if s.SearchGuides == nil || s.Release < op.V2_5 {
		return nil
	}
	no := false
	described := sdk.Tool{
		Name: guidesTool, Description: "Search the guides. Returns the best-matching passages with their page URLs.",
		InputSchema: json.RawMessage(guidesInput),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no},
	}
	structured := described
	structured.OutputSchema = json.RawMessage(guidesOutput)
	t := &tool{
		Name: guidesTool, withoutSchemas: &described, withSchemas: &structured, input: &shape{},
		arguments: map[string]argument{
			"query": {in: inQuery, kind: openapi3.TypeString}, "limit": {in: inQuery, kind: openapi3.TypeInteger},
		},
	}
	s.byName[guidesTool] = t
	return json.Unmarshal([]byte(guidesInput), t.input)
}

// searchGuides runs the tool that searches the guides. It counts against the key's budget as a call of an operation does.
func (s *Server) searchGuides(ctx context.Context, t *tool, arguments []byte) (*sdk.CallToolResult, error) {
	m := messageOf(ctx)
	query, limit, err := guidesQuery(t.parseArguments(arguments, m.view.schemas))
	if limitErr := s.Count(m.request.Context()); limitErr != nil {
		err = limitErr
	}
	if err != nil {
		_, envelope := s.Envelope(m.request, err, m.id)
		return &sdk.CallToolResult{IsError: true, Content: textContent(escapeInvisible(envelope))}, nil
	}
	found, err := s.SearchGuides(query, limit)
	if err != nil {
		return nil, fmt.Errorf("search the guides: %w", err)
	}
	if !m.view.schemas {
		return &sdk.CallToolResult{Content: textContent(escapeInvisible([]byte(formatPassages(found))))}, nil
	}
	text, err := json.Marshal(map[string]any{"passages": append([]Passage{}, found...)}) // not null
	text = escapeInvisible(text)
	return &sdk.CallToolResult{Content: textContent(text), StructuredContent: json.RawMessage(text)}, err
}

// textContent returns the content of a result that is one text.
func textContent(text []byte) []sdk.Content {
	return []sdk.Content{&sdk.TextContent{Text: string(text)}}
}

// guidesQuery returns the arguments of a search, or InvalidRequest with all their faults.
func guidesQuery(p *callParts) (query string, limit int, err error) {
	query, limit = strings.TrimSpace(p.query.Get("query")), defaultPassages
	switch {
	case !p.given["query"]:
		p.fault("query", "is required")
	case p.query.Has("query") && query == "": // otherwise it is no text, and has a fault
		p.fault("query", "must not be blank")
	case utf8.RuneCountInString(query) > maxQuery:
		p.fault("query", fmt.Sprintf("must be at most %d characters", maxQuery))
	}
	if text := p.query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > mostPassages {
			p.fault("limit", fmt.Sprintf("must be between 1 and %d", mostPassages))
		}
	}
	return query, limit, domain.ErrInvalidFields(p.faults)
}

// formatPassages returns passages as text.
func formatPassages(found []Passage) string {
	if len(found) == 0 {
		return "No passages match. Try other search words."
	}
	texts := make([]string, len(found))
	for i, p := range found {
		texts[i] = "# " + p.Title + "\n" + p.URL + "\n\n" + strings.TrimSpace(p.Text)
	}
	return strings.Join(texts, "\n\n")
}
